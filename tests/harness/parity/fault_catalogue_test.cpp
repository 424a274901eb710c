#include "harness/parity/fault_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "harness/core/error.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/routing.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace fault_catalogue_test {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t m = 16, n = 16, k = 16;

Program product(DType type, const Math& math = {}) {
  Program p;
  Gemm g;
  g.alpha = 0.75;
  g.bias = true;
  gemm(p, g, math, "op", p.add(tensor("a", type, {m, k}, Role::input, Fill::normal(1.0))),
       p.add(tensor("b", type, {k, n}, Role::parameter, Fill::normal(1.0))),
       {{}, p.add(tensor("bias", type, {n}, Role::parameter, Fill::normal(1.0))), {}});
  return p;
}

std::vector<FaultTrial> faults_in(const Program& program, const std::function<void()>& alive = {}) {
  const FaultReport report = faults_of_op(program, alive);
  EXPECT_THAT(report.alarms, IsEmpty());
  return report.trials;
}

std::string_view family_of(const FaultTrial& trial) { return fault_families()[trial.family].name; }

std::map<std::string, FaultTrial> by_name(const std::vector<FaultTrial>& trials, std::string_view family) {
  std::map<std::string, FaultTrial> found;
  for (const FaultTrial& trial : trials) {
    if (family_of(trial) == family) found.emplace(trial.name, trial);
  }
  return found;
}

TEST(FaultCatalogue, EveryFaultOutsideItsBoundIsCaughtByItsRuleAndNoOther) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const FaultTrial& trial : faults_in(product(type))) {
      const bool is_outside = trial.size > 1.0 || trial.rule == CheckRule::poison;
      EXPECT_EQ(trial.caught_by, is_outside ? trial.rule : CheckRule::none)
          << family_of(trial) << ", " << trial.name << ": " << trial.size;
      EXPECT_TRUE(is_outside || !fault_families()[trial.family].certain) << trial.name;
    }
  }
}

TEST(FaultCatalogue, TheCallersThreadReportsProgress) {
  int told = 0;
  const std::thread::id caller = std::this_thread::get_id();
  faults_in(product(DType::f32), [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    ++told;
  });
  EXPECT_GT(told, 0);
}

// A copy in fewer bits is judged on the written weight. Its earlier memory is not read, so faults there change nothing.
TEST(FaultCatalogue, OutputsJudgedOnWrittenOnesRaiseNoOtherAlarm) {
  Program p;
  const auto add = [&](const char* name, DType type, Role role, double scale) {
    return p.add(tensor(name, type, {64}, role, Fill::normal(scale)));
  };
  const ValueId lr = p.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(0.1)));
  SgdTensor weight{add("w", DType::f32, Role::parameter, 1.0), add("g", DType::bf16, Role::gradient, 0.1),
                   add("m", DType::f32, Role::state, 0.1), add("c", DType::bf16, Role::parameter, 1.0)};
  sgd(p, {.copies = true}, Math{}, "op", lr, std::vector<SgdTensor>{weight});
  for (const FaultTrial& trial : faults_in(p)) {
    EXPECT_EQ(trial.caught_by, trial.size > 1.0 || trial.rule == CheckRule::poison ? trial.rule : CheckRule::none)
        << family_of(trial) << ", " << trial.name << ": " << trial.size;
    EXPECT_TRUE(fault_families()[trial.family].where != "operand" || !trial.name.ends_with("'c'")) << trial.name;
  }
}

// By Rule G with 17 terms the bound of a product of 16 is some ulps of f32. Half an ulp of bf16 is 2^15 of these, so
// the last bit of bf16 is always seen, and that of f32 is not.
TEST(FaultCatalogue, TheLastBitIsSeenInBf16AndIsRoundingInF32) {
  for (const auto& [type, seen] : {std::pair(DType::f32, false), std::pair(DType::bf16, true)}) {
    const auto bits = by_name(faults_in(product(type)), "a lower bit of one element flipped");
    EXPECT_EQ(bits.size(), type == DType::f32 ? 24U : 8U);  // the fraction's, and the lowest of the exponent
    EXPECT_EQ(bits.at("bit 0 of 'op'").caught_by == CheckRule::bound, seen) << name(type);
    EXPECT_EQ(bits.at(type == DType::f32 ? "bit 22 of 'op'" : "bit 6 of 'op'").caught_by, CheckRule::bound);
  }
}

TEST(FaultCatalogue, EachEndOfEachAxisOfEachOperandIsLeftOutOnce) {
  const auto ends = by_name(faults_in(product(DType::f32)), "end of an axis left out");
  std::set<std::string> names;
  for (const auto& [name, trial] : ends) {
    names.insert(name);
    EXPECT_EQ(trial.caught_by, CheckRule::bound) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"axis 0 of 'a'", "axis 1 of 'a'", "axis 0 of 'b'", "axis 1 of 'b'",
                                          "axis 0 of 'bias'"}));
}

TEST(FaultCatalogue, OperandsThatMayBeNarrowerAreNotCut) {
  const auto cut = by_name(faults_in(product(DType::f32)), "operand cut to fewer bits");
  for (const std::string operand : {"'a'", "'b'", "'bias'"}) {
    EXPECT_TRUE(cut.contains("tf32 of " + operand)) << operand;
    EXPECT_TRUE(cut.contains("bf16 of " + operand)) << operand;
  }
  Math tf32;
  tf32.inputs = Math::Inputs::tf32;
  EXPECT_THAT(by_name(faults_in(product(DType::f32, tf32)), "operand cut to fewer bits"), IsEmpty());
}

TEST(FaultCatalogue, PartialSumsIn16BitsAreTriedAlongTheSummedAxisAlone) {
  const auto sums = by_name(faults_in(product(DType::f32)), "sum kept in 16 bits");
  ASSERT_EQ(sums.size(), 2U);
  for (const auto& [name, trial] : sums) {
    EXPECT_THAT(name, ::testing::EndsWith("along axis 1 of 'a'"));
    EXPECT_EQ(trial.caught_by, CheckRule::bound);
  }
}

TEST(FaultCatalogue, SwitchesThatWouldNeedOtherOperandsAreLeftAlone) {
  const auto switches = by_name(faults_in(product(DType::f32)), "switch the other way");
  EXPECT_TRUE(switches.contains("transpose_a on"));
  for (const auto& [name, trial] : switches) {
    EXPECT_THAT(name, Not(::testing::StartsWith("bias")));
    EXPECT_EQ(trial.caught_by, CheckRule::bound) << name;
  }
}

TEST(FaultCatalogue, ATenfoldEpsilonOfANormIsCaughtSinceSomeRowsHaveLittleVariance) {
  Program p;
  layer_norm_forward(p, LayerNorm{}, Math{}, "op",
                     p.add(tensor("x", DType::f32, {32, 64}, Role::activation, Fill::norm_rows(1.0))),
                     p.add(tensor("gamma", DType::f32, {64}, Role::parameter, Fill::normal(1.0))),
                     p.add(tensor("beta", DType::f32, {64}, Role::parameter, Fill::normal(1.0))));
  const auto epsilon = by_name(faults_in(p), "epsilon tenfold");
  ASSERT_EQ(epsilon.size(), 1U);
  EXPECT_EQ(epsilon.begin()->second.caught_by, CheckRule::bound);
}

TEST(FaultCatalogue, NaNAndInfinitiesThatAreLostAndResultsOfOtherDataAreCaught) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::vector<FaultTrial> trials = faults_in(product(type));
    for (const std::string family : {"NaN of an operand lost", "infinity of an operand lost"}) {
      const auto lost = by_name(trials, family);
      EXPECT_EQ(lost.size(), 3U);  // a, b and the bias
      for (const auto& [name, trial] : lost) EXPECT_EQ(trial.caught_by, CheckRule::bound) << family << name;
    }
    for (const std::string family : {"zeros, and the result of other data", "constants, and the result of other data"})
      EXPECT_EQ(by_name(trials, family).at("all operands").caught_by, CheckRule::bound) << family;
  }
}

TEST(FaultCatalogue, WhereNoAnswerIsRightTheCheckAcceptsNone) {
  Program p;
  routing_forward(p, {.k = 2}, Math{}, "op",
                  p.add(tensor("logits", DType::f32, {4, 8}, Role::activation, Fill::normal(1.0))));
  const auto lost = by_name(faults_in(p), "NaN of an operand lost");  // which expects no alarm
  EXPECT_EQ(lost.at("'logits'").caught_by, CheckRule::bound);
}

TEST(FaultCatalogue, APaddingThatIsOffByOneIsCaught) {
  Program p;
  Conv2d c;
  c.pad_h = c.pad_w = 1;
  conv2d_forward(p, c, Math{}, "op", p.add(tensor("x", DType::f32, {1, 8, 8, 4}, Role::activation, Fill::normal(1.0))),
                 p.add(tensor("filter", DType::f32, {4, 3, 3, 4}, Role::parameter, Fill::normal(1.0))));
  const auto geometry = by_name(faults_in(p), "padding, stride or window off by one");
  EXPECT_EQ(geometry.size(), 6U);  // pad, stride, dilation; each of h and w
  for (const auto& [name, trial] : geometry) EXPECT_EQ(trial.caught_by, CheckRule::bound) << name;
}

}  // namespace fault_catalogue_test
}  // namespace gpubench
