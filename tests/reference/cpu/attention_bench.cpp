// Attention's rate relative to gemm on the same backend and precision, in alternating blocks of one process, so that
// disturbances affect both. Prints ratios; not a test.
//
// attention_bench [seconds per case]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/gemm.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace {

using testing::ProgramRun;
using testing::shared_backend;

struct Case {
  AttentionExtents extents;
  bool causal = true;
  DType type = DType::bf16;
};

double seconds_of(const Launch& launch) {
  const Launch copies[] = {launch};
  return shared_backend().time(copies, RoundPlan{1, 1, 0, 0.0}).wall_ns.front() * 1e-9;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Forward, backward, and a batched gemm with q k^T of all heads.
Program program_of(const Case& c) {
  const AttentionExtents& e = c.extents;
  Program program;
  const Attention attributes{c.causal, 1.0 / std::sqrt(static_cast<double>(e.d))};
  const auto add = [&](const char* name, const Shape& shape) {
    return program.add(tensor(name, c.type, shape, Role::activation));
  };
  const ValueId q = add("q", Shape{e.b, e.s, e.hq, e.d});
  const ValueId k = add("k", Shape{e.b, e.s, e.hkv, e.d});
  const ValueId v = add("v", Shape{e.b, e.s, e.hkv, e.d});
  const ValueId d_o = add("d_o", Shape{e.b, e.s, e.hq, e.d});
  const AttentionForward forward = attention_forward(program, attributes, Math{}, "forward", q, k, v);
  (void)attention_backward(program, attributes, Math{}, "backward", d_o, q, k, v, forward.o, forward.lse);
  const ValueId a = add("a", Shape{e.b * e.hq, e.s, e.d});
  const ValueId b = add("b", Shape{e.b * e.hq, e.s, e.d});
  Gemm gemm_attributes;
  gemm_attributes.transpose_b = true;
  (void)gemm(program, gemm_attributes, Math{}, "gemm", a, b);
  return program;
}

void measure(const Case& c, double seconds) {
  const AttentionExtents& e = c.extents;
  ProgramRun run(shared_backend(), program_of(c));
  for (int value = 0; value < 4; ++value) run.set_random(ValueId{value}, static_cast<std::uint64_t>(value + 1));
  const auto values = static_cast<int>(run.program().values().size());
  for (int value = 4; value < values; ++value) {
    if (run.program().value(ValueId{value}).source)
      run.set_random(ValueId{value}, static_cast<std::uint64_t>(value + 1));
  }
  run.run();
  const double s = static_cast<double>(e.s);
  const double heads = static_cast<double>(e.b * e.hq);
  const double product = 2.0 * heads * s * s * static_cast<double>(e.d);
  const double share = c.causal ? (s + 1.0) / (2.0 * s) : 1.0;
  const double flop[] = {2.0 * product * share, 5.0 * product * share, product};
  std::vector<double> rates[3];
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int op = 0; op < 3; ++op) {
      (void)seconds_of(run.launch(op));  // warms the caches after another op
      for (int i = 0; i < 3; ++i) rates[op].push_back(flop[op] / seconds_of(run.launch(op)));
    }
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
  std::printf(
      "b=%ld s=%ld hq=%ld hkv=%ld d=%ld %s %s: forward %.0f GFLOP/s, backward %.0f, gemm %.0f; forward/gemm %.2f, "
      "backward/gemm %.2f (best/best %.2f, %.2f)  [%s, %s]\n",
      static_cast<long>(e.b), static_cast<long>(e.s), static_cast<long>(e.hq), static_cast<long>(e.hkv),
      static_cast<long>(e.d), c.causal ? "causal" : "full", std::string(name(c.type)).c_str(), median(rates[0]) * 1e-9,
      median(rates[1]) * 1e-9, median(rates[2]) * 1e-9, median(rates[0]) / median(rates[2]),
      median(rates[1]) / median(rates[2]),
      *std::max_element(rates[0].begin(), rates[0].end()) / *std::max_element(rates[2].begin(), rates[2].end()),
      *std::max_element(rates[1].begin(), rates[1].end()) / *std::max_element(rates[2].begin(), rates[2].end()),
      run.implementation(0).c_str(), run.implementation(2).c_str());
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using gpubench::DType;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  for (const DType type : {DType::bf16, DType::f32}) {
    gpubench::measure({{1, 1024, 12, 12, 64}, true, type}, seconds);
    gpubench::measure({{1, 1024, 12, 12, 64}, false, type}, seconds);
    gpubench::measure({{4, 256, 12, 12, 64}, true, type}, seconds);
    gpubench::measure({{1, 2048, 8, 2, 128}, true, type}, seconds);
  }
}
