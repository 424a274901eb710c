#include "harness/parity/projection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "harness/parity/end_to_end.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "reference/ops/grouped_gemm.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace projection_test {

void run_perfectly(JudgedProgram& memory) {
  TextbookMachine machine(memory.program());
  machine.fill_sources("test/case", 42, memory.program());  // as JudgedProgram does
  machine.run();
  for (const ValueId id : memory.program().op(0).outputs) {
    for (std::int64_t at = 0; at < memory.view(id).shape().elements(); ++at) memory.set(id, at, machine.view(id)[at]);
  }
}

JudgePolicy sampling(double flop, std::uint64_t seed = 1) { return {CheckMode::sample, flop, seed, 2}; }

double rms(const TensorView& view) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < view.shape().elements(); ++i) squares += view[i] * view[i];
  return std::sqrt(squares / static_cast<double>(view.shape().elements()));
}

struct Problem {
  std::string name;
  std::function<Program()> build;
  double budget = 0.0;  ///< other than small_budget()
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const bool ta = (transposes & 1) != 0, tb = (transposes & 2) != 0;
      all.push_back({std::string("gemm") + " " + std::string(name(type)) + " " + std::to_string(transposes), [=] {
                       Program p;
                       const Shape a = ta ? Shape{24, 96} : Shape{96, 24}, b = tb ? Shape{130, 24} : Shape{24, 130};
                       Gemm g;
                       g.transpose_a = ta;
                       g.transpose_b = tb;
                       g.bias = true;
                       g.alpha = 0.75;
                       gemm(p, g, Math{}, "op", p.add(tensor("a", type, a, Role::input, Fill::normal(1.0))),
                            p.add(tensor("b", type, b, Role::parameter, Fill::normal(1.0))),
                            {{}, p.add(tensor("bias", type, {130}, Role::parameter, Fill::normal(1.0))), {}});
                       return p;
                     }});
    }
    all.push_back({std::string("batched") + " " + std::string(name(type)) + " " + std::to_string(0), [=] {
                     Program p;
                     gemm(p, Gemm{}, Math{}, "op",
                          p.add(tensor("a", type, {3, 40, 16}, Role::input, Fill::normal(1.0))),
                          p.add(tensor("b", type, {3, 16, 64}, Role::input, Fill::normal(1.0))));
                     return p;
                   }});
    Conv2d conv;
    conv.pad_h = conv.pad_w = 1;
    all.push_back({std::string("conv forward") + " " + std::string(name(type)) + " " + std::to_string(0), [=] {
                     Program p;
                     conv2d_forward(p, conv, Math{}, "op",
                                    p.add(tensor("x", type, {2, 9, 9, 16}, Role::input, Fill::normal(1.0))),
                                    p.add(tensor("w", type, {40, 3, 3, 16}, Role::parameter, Fill::normal(1.0))));
                     return p;
                   }});
    all.push_back({std::string("conv data") + " " + std::string(name(type)) + " " + std::to_string(0), [=] {
                     Program p;
                     conv2d_backward_data(p, conv, Math{}, "op",
                                          p.add(tensor("dy", type, {2, 9, 9, 16}, Role::gradient, Fill::normal(1.0))),
                                          p.add(tensor("w", type, {16, 3, 3, 40}, Role::parameter, Fill::normal(1.0))),
                                          9, 9);
                     return p;
                   }});
    all.push_back({std::string("conv filter") + " " + std::string(name(type)) + " " + std::to_string(0), [=] {
                     Program p;
                     conv2d_backward_filter(
                         p, conv, Math{}, "op", p.add(tensor("x", type, {2, 9, 9, 16}, Role::input, Fill::normal(1.0))),
                         p.add(tensor("dy", type, {2, 9, 9, 40}, Role::gradient, Fill::normal(1.0))), 3, 3);
                     return p;
                   }});
    const auto grouped = [=](bool gradient) {
      Program p;
      const ValueId a = p.add(tensor("a", type, {60, 40}, Role::input, Fill::normal(1.0)));
      const ValueId b =
          p.add(tensor("b", type, gradient ? Shape{60, 64} : Shape{3, 40, 64}, Role::parameter, Fill::normal(1.0)));
      const ValueId sizes = p.add(tensor("sizes", DType::i32, {3}, Role::input, Fill::integers(19, 20)));
      gradient ? grouped_gemm_backward_weight(p, Math{}, "op", a, b, sizes)
               : grouped_gemm(p, {}, Math{}, "op", a, b, sizes);
      return p;
    };
    all.push_back({"grouped gemm " + std::string(name(type)), [=] { return grouped(false); }});
    all.push_back({"gradient of grouped gemm " + std::string(name(type)), [=] { return grouped(true); }});
    // Enough input and output channels that sums along only one of them would exceed the budget.
    all.push_back({"conv filter along two axes " + std::string(name(type)),
                   [=] {
                     Program p;
                     conv2d_backward_filter(
                         p, conv, Math{}, "op", p.add(tensor("x", type, {1, 9, 9, 64}, Role::input, Fill::normal(1.0))),
                         p.add(tensor("dy", type, {1, 9, 9, 72}, Role::gradient, Fill::normal(1.0))), 3, 3);
                     return p;
                   },
                   2e5});
  }
  return all;
}

// A budget for a sample of a tenth, and sums.
double small_budget(const Problem& problem, const Program& program) {
  return problem.budget > 0.0 ? problem.budget : std::max(cost_of(program, program.op(0)).flop / 4.0, 2e5);
}

TEST(Projection, EachLinearOpIsComparedWholeAndWithoutAlarm) {
  for (const Problem& problem : problems()) {
    JudgedProgram memory(problem.build());
    run_perfectly(memory);
    const ValueId out = memory.program().op(0).outputs[0];
    const OpParity parity = memory.judged(sampling(small_budget(problem, memory.program())));
    EXPECT_EQ(parity.verdict, Verdict::pass) << problem.name << ": " << parity.reason;
    EXPECT_LT(parity.judged, parity.elements) << problem.name;
    ASSERT_TRUE(parity.projected.has_value()) << problem.name;
    EXPECT_EQ(*parity.projected, memory.view(out).shape().elements()) << problem.name;
    EXPECT_GT(*parity.projected_fault, 0.0) << problem.name;
    EXPECT_LT(*parity.projected_fault, 12.0) << problem.name;
  }
}

TEST(Projection, ASingleElementOffByTheStatedAmountIsFoundAnywhere) {
  for (const Problem& problem : problems()) {
    JudgedProgram memory(problem.build());
    run_perfectly(memory);
    const ValueId out = memory.program().op(0).outputs[0];
    const JudgePolicy policy = sampling(small_budget(problem, memory.program()));
    const double fault = *memory.judged(policy).projected_fault * rms(memory.view(out));
    const std::int64_t elements = memory.view(out).shape().elements();
    int tried = 0;
    for (std::int64_t at = 0; at < elements; at += 1 + elements / 23) {
      const double right = memory.get(out, at);
      memory.set(out, at, right + (right > 0.0 ? -1.01 : 1.01) * fault);  // no new extreme
      EXPECT_EQ(memory.judged(policy).verdict, Verdict::fail) << problem.name << " element " << at;
      memory.set(out, at, right);
      ++tried;
    }
    EXPECT_GT(tried, 20) << problem.name;
  }
}

TEST(Projection, AWrongTileOfALargeProductIsFoundWithEverySeed) {
  Program p;
  Gemm g;
  const ValueId a = p.add(tensor("a", DType::bf16, {1024, 32}, Role::input, Fill::normal(1.0)));
  const ValueId b = p.add(tensor("b", DType::bf16, {32, 2304}, Role::parameter, Fill::normal(1.0)));
  const ValueId c = gemm(p, g, Math{}, "op", a, b).c;
  JudgedProgram memory(std::move(p));
  run_perfectly(memory);
  for (std::int64_t i = 0; i < 16; ++i) {  // the neighbouring tile, 16 x 16
    for (std::int64_t j = 0; j < 16; ++j)
      memory.set(c, (608 + i) * 2304 + 1248 + j, memory.get(c, (608 + i) * 2304 + 1264 + j));
  }
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    EXPECT_EQ(memory.judged(sampling(20e6, seed)).verdict, Verdict::fail) << seed;
}

TEST(Projection, AProjectionBeyondTheBudgetIsSkipped) {
  JudgedProgram memory(problems().front().build());
  run_perfectly(memory);
  const OpParity parity = memory.judged(sampling(1e4));
  EXPECT_EQ(parity.verdict, Verdict::pass) << parity.reason;
  EXPECT_FALSE(parity.projected.has_value());
}

}  // namespace projection_test
}  // namespace gpubench
