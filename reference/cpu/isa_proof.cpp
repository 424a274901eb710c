#include <fmt/core.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "harness/core/dtype.h"
#include "harness/core/error.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/own_kernel_proof.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu {
namespace {

// Tiny oneDNN products with known results: whole numbers so small that every sum is exact in any order.

using Numbers = std::vector<float>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// -1, 0 and 1, without a pattern that survives a permutation.
Numbers small_numbers(std::int64_t count, std::uint32_t seed) {
  Numbers numbers(index(count));
  for (float& number : numbers) {
    seed = seed * 1664525U + 1013904223U;
    number = static_cast<float>((seed >> 16U) % 3U) - 1.0F;
  }
  return numbers;
}

// Numbers of one type, aligned to a cache line for oneDNN.
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

// Runs the work on three operands; `result` starts with numbers that no result has.
bool computes_correctly(const OneDnnWork& work, DType dtype, std::array<Numbers, 3> numbers, std::size_t result) {
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

// Images [side][side][channels], filters [channels out][3][3][channels in] as in the suites; padding 1.
constexpr std::int64_t side = 8, channels = 64, taps = 3;

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
  return {.a = {dtype, {m, k}, {k, 1}}, .b = {dtype, {k, n}, {n, 1}}, .c = {dtype, {m, n}, {n, 1}}};
}

ConvolutionRequest convolution_request(DType dtype, ConvolutionRequest::Pass pass) {
  const MemoryShape image{dtype, {1, channels, side, side}, {side * side * channels, 1, side * channels, channels}};
  ConvolutionRequest request;
  request.pass = pass;
  request.source = request.destination = image;
  request.filter = {dtype, {channels, channels, taps, taps}, {taps * taps * channels, 1, taps * channels, channels}};
  request.padding = {1, 1};
  return request;
}

// Gets "the bf16 matmul (onednn:brgemm:avx512_core_amx_bf16)" and a function that runs it: false if a number is wrong.
using TryProduct = std::function<void(const std::string& name, const std::function<bool()>& computes_correctly)>;

template <class Plan, class Known>
void offer(const char* what, DType dtype, std::size_t result, const Plan& plan, const Known& known,
           const TryProduct& with) {
  try {
    const OneDnnWork work = plan();
    if (work.is_reference_code()) return;
    with(fmt::format("the {} {} ({})", name(dtype), what, work.implementation()),
         [&] { return computes_correctly(work, dtype, known(), result); });
  } catch (const Unsupported&) {  // bf16 without instructions for it
  }
}

// Calls `with` for a matrix product and the three passes of a convolution in f32 and bf16. Skips reference code, which
// proves no instruction set. Sizes allow whole AMX tiles, below which oneDNN does not use AMX: 64 rows, 64 columns, 128
// or 576 terms.
void for_each_known_product(const OneDnn& onednn, const TryProduct& with) {
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

using Stage = IsaProof::Stage;

/// Seconds after which a trial counts as hanging; normally it takes milliseconds.
constexpr unsigned patience_s = 60;

// The child writes lines: "baseline", "own <isa>", "isa <isa>", "onednn <product>", "right", "fault <how>", "passed".
// The last line shows what it was doing when it died.
void report(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
}

constexpr const char* wrong = "fault gave a wrong result";

bool try_everything(const IsaLimit& limit, int pipe) {
  const auto computes_correctly = [&](const std::string& line, const auto& holds) {
    report(pipe, line);
    const bool right = holds();
    report(pipe, right ? "right" : wrong);
    return right;
  };
  limit_vector_kernels({"avx2"});
  if (!computes_correctly("baseline", vector_kernels_hold)) return false;
  for (const OwnKernels& kernels : own_kernels()) {
    if (!kernels.announced() || limit.barred.contains(kernels.isa)) continue;
    std::set<std::string> barred = limit.barred;
    if (kernels.isa == "avx2") barred.insert("avx512");
    limit_vector_kernels(barred);
    if (!computes_correctly("own " + kernels.isa, kernels.hold)) return false;
  }
  report(pipe, "onednn its start");
  const OneDnn onednn(limit.onednn);
  report(pipe, "isa " + onednn_isa());
  bool all = true;
  for_each_known_product(onednn, [&](const std::string& product, const auto& holds) {
    all = all && computes_correctly("onednn " + product, holds);
  });
  return all;
}

[[noreturn]] void be_child(const IsaLimit& limit, int pipe) {
  // Dies silently: no core file, no handler. SIGSEGV keeps its handler, which may emulate CPUID.
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGILL, SIGFPE, SIGBUS, SIGABRT, SIGALRM, SIGINT, SIGTERM})
    (void)std::signal(signal, SIG_DFL);
  (void)::alarm(patience_s);
  (void)::dup2(STDERR_FILENO, STDOUT_FILENO);  // a library's output must not mix with this program's
  omp_set_num_threads(1);
  try {
    if (try_everything(limit, pipe)) report(pipe, "passed");
  } catch (const std::exception& error) {
    std::string text = error.what();
    for (char& c : text) c = c == '\n' ? ' ' : c;
    report(pipe, "fault failed: " + text);
  }
  ::_exit(0);  // no flushing or destruction of the parent's state
}

std::string read_all(int pipe) {
  std::string text;
  char block[512];
  while (true) {
    const ssize_t count = ::read(pipe, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block, static_cast<std::size_t>(count));
  }
}

std::string end_of(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != child) return "ended unseen";
  if (!WIFSIGNALED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return fmt::format("took more than {} s", patience_s);
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name == nullptr ? fmt::format("died with signal {}", WTERMSIG(status)) : fmt::format("died with SIG{}", name);
}

IsaProof read_proof(const std::string& text) {
  IsaProof proof;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (word == "isa") {
      proof.onednn = rest;
    } else if (word == "fault") {
      proof.fault = rest;
    } else if (word == "right") {
      proof.step = "what comes after " + proof.step;
    } else if (word == "passed") {
      proof.stage = Stage::passed;
    } else {
      proof.stage = word == "baseline" ? Stage::baseline : word == "own" ? Stage::own : Stage::onednn;
      proof.step = rest;
      proof.tried.push_back(line);
    }
  }
  return proof;
}

}  // namespace

IsaProof prove_in_child(const IsaLimit& limit) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) throw BackendError(fmt::format("cpu: cannot create a pipe: {}", std::strerror(errno)));
  (void)std::fflush(nullptr);  // else a child that flushes would print buffered output again
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_child(limit, ends[1]);
  }
  const int error = errno;
  ::close(ends[1]);
  const std::string text = child < 0 ? "" : read_all(ends[0]);
  ::close(ends[0]);
  if (child < 0) {
    throw BackendError(
        fmt::format("cpu: cannot start a process for trying the instruction sets: {}", std::strerror(error)));
  }
  const std::string end = end_of(child);
  IsaProof proof = read_proof(text);
  if (proof.stage != Stage::passed && proof.fault.empty()) proof.fault = end;
  return proof;
}

}  // namespace gpubench::cpu
