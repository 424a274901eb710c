#include "reference/cpu/onednn_products.h"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "harness/core/dtype.h"
#include "harness/core/error.h"

namespace gpubench::cpu {
namespace {

using Numbers = std::vector<float>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// -1, 0 and 1, without a pattern that a permutation would leave as it is.
Numbers small_numbers(std::int64_t count, std::uint32_t seed) {
  Numbers numbers(index(count));
  for (float& number : numbers) {
    seed = seed * 1664525U + 1013904223U;
    number = static_cast<float>((seed >> 16U) % 3U) - 1.0F;
  }
  return numbers;
}

// Numbers in memory as oneDNN wants it: of one type, at the beginning of a cache line.
class Operand {
 public:
  Operand(DType dtype, const Numbers& numbers) : dtype_(dtype), count_(numbers.size()), bytes_(allocated(bytes())) {
    for (std::size_t i = 0; i < count_; ++i) store(dtype_, at(i), static_cast<double>(numbers[i]));
  }
  explicit Operand(std::size_t workspace_bytes) : count_(workspace_bytes), bytes_(allocated(workspace_bytes)) {}
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] bool holds(const Numbers& wanted) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (load(dtype_, at(i)) != static_cast<double>(wanted[i])) return false;
    }
    return true;
  }

 private:
  static std::unique_ptr<std::byte, void (*)(void*)> allocated(std::size_t bytes) {
    constexpr std::size_t line = 64;
    return {static_cast<std::byte*>(std::aligned_alloc(line, (bytes + line) / line * line)), std::free};
  }
  [[nodiscard]] std::size_t bytes() const { return count_ * static_cast<std::size_t>(size_of(dtype_)); }
  [[nodiscard]] std::byte* at(std::size_t i) const {
    return bytes_.get() + i * static_cast<std::size_t>(size_of(dtype_));
  }

  DType dtype_ = DType::u8;
  std::size_t count_;
  std::unique_ptr<std::byte, void (*)(void*)> bytes_;
};

MemoryShape dense(DType dtype, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides) {
  return {dtype, std::move(extents), std::move(strides)};
}

// Runs the work on three operands, of which `result` begins as numbers that it never gives.
bool comes_right(const OneDnnWork& work, DType dtype, std::array<Numbers, 3> numbers, std::size_t result) {
  const Numbers wanted = std::exchange(numbers[result], Numbers(numbers[result].size(), 0.5F));
  const std::array<Operand, 3> operands{Operand(dtype, numbers[0]), Operand(dtype, numbers[1]),
                                        Operand(dtype, numbers[2])};
  const Operand workspace(work.workspace_bytes());
  const std::array<std::byte*, 3> places{operands[0].data(), operands[1].data(), operands[2].data()};
  work.bind(places, workspace.data())();
  return operands[result].holds(wanted);
}

constexpr std::int64_t m = 64, n = 64, k = 128;

std::array<Numbers, 3> known_matmul() {
  std::array<Numbers, 3> numbers{small_numbers(m * k, 1), small_numbers(k * n, 2), Numbers(index(m * n))};
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t p = 0; p < k; ++p) {
      const float a = numbers[0][index(row * k + p)];
      for (std::int64_t column = 0; column < n; ++column)
        numbers[2][index(row * n + column)] += a * numbers[1][index(p * n + column)];
    }
  }
  return numbers;
}

// Images [side][side][channels], filters [channels out][3][3][channels in], as the suites have them; padded by 1.
constexpr std::int64_t side = 8, channels = 64, taps = 3;

// Source, filter and destination; with `pass` the one that it computes in the place of the numbers it is not given.
std::array<Numbers, 3> known_convolution(ConvolutionRequest::Pass pass) {
  using Pass = ConvolutionRequest::Pass;
  std::array<Numbers, 3> numbers{small_numbers(side * side * channels, 3),
                                 small_numbers(channels * taps * taps * channels, 4),
                                 small_numbers(side * side * channels, 5)};
  auto& [source, filter, destination] = numbers;
  Numbers& result = pass == Pass::forward ? destination : pass == Pass::backward_data ? source : filter;
  result.assign(result.size(), 0.0F);
  for (std::int64_t place = 0; place < side * side * taps * taps; ++place) {
    const std::int64_t s = place % taps, r = place / taps % taps, q = place / (taps * taps) % side,
                       p = place / (taps * taps * side);
    const std::int64_t row = p + r - 1, column = q + s - 1;
    if (row < 0 || row >= side || column < 0 || column >= side) continue;
    float* x = source.data() + (row * side + column) * channels;
    float* y = destination.data() + (p * side + q) * channels;
    for (std::int64_t out = 0; out < channels; ++out) {
      float* w = filter.data() + ((out * taps + r) * taps + s) * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        if (pass == Pass::forward) y[out] += x[c] * w[c];
        if (pass == Pass::backward_data) x[c] += y[out] * w[c];
        if (pass == Pass::backward_filter) w[c] += x[c] * y[out];
      }
    }
  }
  return numbers;
}

MatmulRequest matmul_request(DType dtype) {
  MatmulRequest request;
  request.a = dense(dtype, {m, k}, {k, 1});
  request.b = dense(dtype, {k, n}, {n, 1});
  request.c = dense(dtype, {m, n}, {n, 1});
  return request;
}

ConvolutionRequest convolution_request(DType dtype, ConvolutionRequest::Pass pass) {
  const MemoryShape image =
      dense(dtype, {1, channels, side, side}, {side * side * channels, 1, side * channels, channels});
  ConvolutionRequest request;
  request.pass = pass;
  request.source = request.destination = image;
  request.filter =
      dense(dtype, {channels, channels, taps, taps}, {taps * taps * channels, 1, taps * channels, channels});
  request.padding = {1, 1};
  return request;
}

template <class Plan, class Known>
void offer(const char* what, DType dtype, std::size_t result, const Plan& plan, const Known& known,
           const std::function<void(const KnownProduct&)>& with) {
  try {
    const OneDnnWork work = plan();
    if (work.is_reference_code()) return;
    with({fmt::format("the {} {} ({})", name(dtype), what, work.implementation()),
          [&] { return comes_right(work, dtype, known(), result); }});
  } catch (const Unsupported&) {  // bf16 on a processor without AVX-512
  }
}

}  // namespace

void for_each_known_product(const OneDnn& onednn, const std::function<void(const KnownProduct&)>& with) {
  using Pass = ConvolutionRequest::Pass;
  struct Convolution {
    const char* name;
    Pass pass;
    std::size_t result;
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    offer(
        "matmul", dtype, 2, [&] { return matmul_work(onednn, matmul_request(dtype)); }, known_matmul, with);
    for (const Convolution& one : {Convolution{"convolution", Pass::forward, 2},
                                   Convolution{"convolution backward_data", Pass::backward_data, 0},
                                   Convolution{"convolution backward_filter", Pass::backward_filter, 1}}) {
      offer(
          one.name, dtype, one.result, [&] { return convolution_work(onednn, convolution_request(dtype, one.pass)); },
          [&] { return known_convolution(one.pass); }, with);
    }
  }
}

}  // namespace gpubench::cpu
