#include "harness/run/recheck_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace {

using Kind = ValueLocation::Kind;

ValueId source(Program& p, const std::string& name) {
  return p.add(tensor(name, DType::f32, {4, 4}, Role::input, Fill::normal(1.0)));
}

TEST(RecheckPlan, AProgramThatOverwritesNothingIsJudgedWhereItStands) {
  Program p;
  const ValueId a = source(p, "a");
  add(p, {}, "second", add(p, {}, "first", a, a), a);

  const RecheckPlan plan = plan_recheck(p, plan_memory(p, 1));

  EXPECT_TRUE(plan.pauses.empty());
  for (const OpLocations& op : plan.ops) EXPECT_TRUE(op.all_at_end());
}

TEST(RecheckPlan, AnUpdatedSourceIsReadFromWhatWasRestored) {
  Program p;
  gemm(p, {.beta = 1.0}, {}, "g", source(p, "a"), source(p, "b"), {.c_in = source(p, "c")});

  const RecheckPlan plan = plan_recheck(p, plan_memory(p, 1));

  EXPECT_TRUE(plan.pauses.empty());
  ASSERT_EQ(plan.ops[0].inputs.size(), 3U);
  EXPECT_EQ(plan.ops[0].inputs[0].kind, Kind::end);
  EXPECT_EQ(plan.ops[0].inputs[2].kind, Kind::restored);
  EXPECT_EQ(plan.ops[0].outputs[0].kind, Kind::end);
}

TEST(RecheckPlan, AnIntermediateThatIsOverwrittenNeedsAPauseBeforeThat) {
  Program p;
  const ValueId g = add(p, {}, "g", source(p, "a"), source(p, "b"));  // op 0
  const ValueId norm = gradient_norm(p, {}, "norm", std::array{g});   // op 1
  clip(p, {}, {}, "clip", norm, std::array{g});                       // op 2 overwrites g

  const RecheckPlan plan = plan_recheck(p, plan_memory(p, 1));

  ASSERT_EQ(plan.pauses.size(), 1U);
  EXPECT_EQ(plan.pauses[0].before_op, 2);
  EXPECT_EQ(plan.pauses[0].storages, std::set<int>{p.value(g).storage.index});
  EXPECT_EQ(plan.ops[0].outputs[0], (ValueLocation{Kind::pause, 2}));
  EXPECT_EQ(plan.ops[1].inputs[0], (ValueLocation{Kind::pause, 2}));
  EXPECT_EQ(plan.ops[2].inputs[0].kind, Kind::end);  // the norm
  EXPECT_EQ(plan.ops[2].inputs[1], (ValueLocation{Kind::pause, 2}));
  EXPECT_EQ(plan.ops[2].outputs[0].kind, Kind::end);
}

TEST(RecheckPlan, OnePauseServesEverythingThatCanBeSeenThen) {
  // g and h both exist before op 2, and ops 2 and 3 overwrite them: one pause is enough.
  Program p;
  const ValueId a = source(p, "a");
  const ValueId b = source(p, "b");
  const ValueId g = add(p, {}, "g", a, b);              // op 0
  const ValueId h = add(p, {}, "h", b, a);              // op 1
  gemm(p, {.beta = 1.0}, {}, "g2", a, b, {.c_in = g});  // op 2
  gemm(p, {.beta = 1.0}, {}, "h2", a, b, {.c_in = h});  // op 3

  const RecheckPlan plan = plan_recheck(p, plan_memory(p, 1));

  ASSERT_EQ(plan.pauses.size(), 1U);
  EXPECT_EQ(plan.pauses[0].before_op, 2);
  EXPECT_EQ(plan.pauses[0].storages.size(), 2U);
}

TEST(RecheckPlan, ValuesThatNeverExistTogetherNeedAPauseEach) {
  Program p;
  const ValueId a = source(p, "a");
  const ValueId b = source(p, "b");
  const ValueId g = add(p, {}, "g", a, b);                                   // op 0
  const ValueId g2 = gemm(p, {.beta = 1.0}, {}, "g2", a, b, {.c_in = g}).c;  // op 1
  gemm(p, {.beta = 1.0}, {}, "g3", a, b, {.c_in = g2});                      // op 2

  const RecheckPlan plan = plan_recheck(p, plan_memory(p, 1));

  ASSERT_EQ(plan.pauses.size(), 2U);
  EXPECT_EQ(plan.pauses[0].before_op, 1);
  EXPECT_EQ(plan.pauses[1].before_op, 2);
}

}  // namespace
}  // namespace gpubench
