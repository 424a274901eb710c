// The backend's overhead over oneDNN: gemm and convolution through Backend::time(), compared with a plain loop over the
// same primitive, in alternating blocks of one process. The goal is 0.98 of the plain loop's rate.
//
//   onednn_overhead_bench            all shapes, 21 pairs of blocks each
//   onednn_overhead_bench --smoke    small shapes; fails if the results differ
#include <fmt/core.h>
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/usable_isa.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace {

using Clock = std::chrono::steady_clock;
using dnnl::memory;
using testing::ProgramRun;

memory::data_type type_of(DType type) { return type == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32; }

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

struct Direct {
  std::function<void()> run;
  memory result;
};

memory memory_of(const memory::desc& desc, const std::vector<std::byte>& bytes) {
  memory result(desc, engine());
  if (!bytes.empty()) std::memcpy(result.get_data_handle(), bytes.data(), bytes.size());
  return result;
}

template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments...};
#else
  return {typename Primitive::desc(arguments...), engine()};
#endif
}

struct Contender {
  std::string title;
  double flop = 0.0;
  std::unique_ptr<ProgramRun> run;
  ValueId result;
  Direct direct;
};

Contender gemm_contender(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  Program program;
  const ValueId a = program.add(tensor("a", dtype, Shape{m, k}, Role::activation));
  const ValueId b = program.add(tensor("b", dtype, Shape{k, n}, Role::parameter));
  const ValueId c = gemm(program, {}, Math{}, "gemm", a, b).c;
  Contender contender{fmt::format("gemm {} {}x{}x{}", name(dtype), m, n, k),
                      2e-9 * static_cast<double>(m * n * k),
                      std::make_unique<ProgramRun>(testing::shared_backend(), program),
                      c,
                      {}};
  contender.run->set_random(a, 1);
  contender.run->set_random(b, 2, 0.1);
  contender.run->run();
  const auto desc = describe<dnnl::matmul>(memory::desc({m, k}, type_of(dtype), memory::format_tag::ab),
                                           memory::desc({k, n}, type_of(dtype), memory::format_tag::ab),
                                           memory::desc({m, n}, type_of(dtype), memory::format_tag::ab));
  const memory am = memory_of(desc.src_desc(), contender.run->bytes_of(a));
  const memory bm = memory_of(desc.weights_desc(), contender.run->bytes_of(b));
  const memory cm(desc.dst_desc(), engine());
  contender.direct = {[primitive = dnnl::matmul(desc), am, bm, cm] {
                        primitive.execute(stream(), {{DNNL_ARG_SRC, am}, {DNNL_ARG_WEIGHTS, bm}, {DNNL_ARG_DST, cm}});
                        stream().wait();
                      },
                      cm};
  return contender;
}

// As in hand-written code: NHWC in place, the filter reordered in each call, since training changes it each time.
Contender convolution_contender(DType dtype, std::int64_t n, std::int64_t hw, std::int64_t c, std::int64_t k,
                                std::int64_t r, std::int64_t stride) {
  const std::int64_t pad = r / 2;
  Conv2d conv;
  conv.stride_h = conv.stride_w = stride;
  conv.pad_h = conv.pad_w = pad;
  Program program;
  const ValueId x = program.add(tensor("x", dtype, Shape{n, hw, hw, c}, Role::activation));
  const ValueId filter = program.add(tensor("filter", dtype, Shape{k, r, r, c}, Role::parameter));
  const ValueId y = conv2d_forward(program, conv, Math{}, "conv", x, filter);
  const std::int64_t p = program.spec(y).shape[1];
  Contender contender{fmt::format("conv {} {}x{}x{}x{} k={} {}x{}/{}", name(dtype), n, hw, hw, c, k, r, r, stride),
                      2e-9 * static_cast<double>(n * p * p * k * c * r * r),
                      std::make_unique<ProgramRun>(testing::shared_backend(), program),
                      y,
                      {}};
  contender.run->set_random(x, 1);
  contender.run->set_random(filter, 2, 0.1);
  contender.run->run();
  const memory::data_type type = type_of(dtype);
  const memory::desc ohwi({k, c, r, r}, type, memory::format_tag::acdb);
  const auto desc =
      describe<dnnl::convolution_forward>(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                          memory::desc({n, c, hw, hw}, type, memory::format_tag::nhwc),
                                          memory::desc({k, c, r, r}, type, memory::format_tag::any),
                                          memory::desc({n, k, p, p}, type, memory::format_tag::nhwc),
                                          memory::dims{stride, stride}, memory::dims{pad, pad}, memory::dims{pad, pad});
  const memory xm = memory_of(desc.src_desc(), contender.run->bytes_of(x));
  const memory plain = memory_of(ohwi, contender.run->bytes_of(filter));
  const memory packed(desc.weights_desc(), engine());
  const memory ym(desc.dst_desc(), engine());
  contender.direct = {
      [primitive = dnnl::convolution_forward(desc), reorder = dnnl::reorder(plain, packed), xm, plain, packed,
       ym]() mutable {
        reorder.execute(stream(), {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, packed}});
        primitive.execute(stream(), {{DNNL_ARG_SRC, xm}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, ym}});
        stream().wait();
      },
      ym};
  return contender;
}

double block_s(const Direct& direct, std::int64_t calls) {
  const Clock::time_point begin = Clock::now();
  for (std::int64_t call = 0; call < calls; ++call) direct.run();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double block_s(const Launch& launch, std::int64_t calls) {
  return testing::shared_backend().time({&launch, 1}, {1, calls, 0, 0.0}).wall_ns[0] * 1e-9;
}

// Prints a row: rates, and the backend's rate over the plain loop's with the 95% interval of the pairs' median.
void compare(const Contender& contender, int pairs, double block_seconds) {
  const Launch& launch = contender.run->launch(0);
  contender.direct.run();
  const std::int64_t calls =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(block_seconds / block_s(contender.direct, 1)));
  (void)block_s(contender.direct, calls);
  (void)block_s(launch, calls);
  std::vector<double> ratios, plain, ours;
  for (int pair = 0; pair < pairs; ++pair) {
    const bool ours_first = pair % 2 == 0;
    const double first = ours_first ? block_s(launch, calls) : block_s(contender.direct, calls);
    const double second = ours_first ? block_s(contender.direct, calls) : block_s(launch, calls);
    ours.push_back(ours_first ? first : second);
    plain.push_back(ours_first ? second : first);
    ratios.push_back(plain.back() / ours.back());
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(plain.begin(), plain.end());
  std::sort(ours.begin(), ours.end());
  // Ranks of the 95% interval of the median: n/2 -+ 1.96 sqrt(n)/2 for any distribution.
  const double half_width = 0.98 * std::sqrt(static_cast<double>(pairs));
  const auto rank = [&](double at) { return ratios[static_cast<std::size_t>(std::clamp(at, 0.0, pairs - 1.0))]; };
  const auto middle = static_cast<std::size_t>(pairs / 2);
  const double gflop = contender.flop * static_cast<double>(calls);
  fmt::print("{:38} {:9.1f} {:9.1f}   {:.3f} [{:.3f}, {:.3f}]  {}\n", contender.title, gflop / plain[middle],
             gflop / ours[middle], ratios[middle], rank(std::floor(pairs / 2.0 - half_width)),
             rank(std::ceil(pairs / 2.0 + half_width)), contender.run->implementation(0));
  std::fflush(stdout);  // show each row at once
}

// Both sides run the same library on the same numbers: they agree within a few roundings of the largest result.
bool agree(const Contender& contender) {
  contender.direct.run();
  const std::vector<double> ours = contender.run->get(contender.result);
  const DType dtype = contender.run->program().spec(contender.result).dtype;
  const auto* data = static_cast<const std::byte*>(contender.direct.result.get_data_handle());
  double largest = 0.0, apart = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double plain = load(dtype, data + i * size_of(dtype));
    largest = std::max(largest, std::abs(plain));
    if (!(std::abs(ours[i] - plain) <= apart)) apart = std::abs(ours[i] - plain);
  }
  const bool same = largest > 0.0 && apart <= 64.0 * unit_roundoff(dtype) * largest;
  if (!same) fmt::print(stderr, "{}: the two sides differ by {}, largest result {}\n", contender.title, apart, largest);
  return same;
}

int run_bench(bool smoke) {
  std::vector<std::function<Contender()>> contenders;
  // Before making an engine: opening the backend limits oneDNN to usable instruction sets.
  (void)testing::shared_backend();
  const bool has_bf16 = cpu::onednn_multiplies_bf16();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && !has_bf16) continue;
    if (smoke) {
      contenders.emplace_back([dtype] { return gemm_contender(dtype, 64, 48, 32); });
      contenders.emplace_back([dtype] { return convolution_contender(dtype, 1, 14, 16, 32, 3, 1); });
      continue;
    }
    for (const std::int64_t size : {128, 256, 512, 1024})
      contenders.emplace_back([dtype, size] { return gemm_contender(dtype, size, size, size); });
    contenders.emplace_back([dtype] { return gemm_contender(dtype, 1024, 2304, 768); });
    contenders.emplace_back([dtype] { return gemm_contender(dtype, 1024, 3072, 768); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 56, 64, 64, 3, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 14, 256, 256, 3, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 56, 256, 64, 1, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 224, 3, 64, 7, 2); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 28, 128, 128, 3, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 14, 1024, 256, 1, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 7, 512, 512, 3, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 7, 512, 2048, 1, 1); });
    contenders.emplace_back([dtype] { return convolution_contender(dtype, 4, 56, 256, 512, 1, 2); });
  }
  fmt::print("{:38} {:>9} {:>9}   {}\n", "GFLOP/s, medians of blocks", "oneDNN", "backend", "backend / oneDNN [95%]");
  bool all_agree = true;
  for (const auto& make : contenders) {
    const Contender contender = make();
    all_agree = agree(contender) && all_agree;
    compare(contender, smoke ? 3 : 21, smoke ? 0.001 : 0.05);
  }
  return all_agree ? 0 : 1;
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) { return gpubench::run_bench(argc > 1 && std::strcmp(argv[1], "--smoke") == 0); }
