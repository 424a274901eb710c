// Which values count as the same computation on the same data, and which don't.
#include "harness/verify/determinism_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/batches.h"

namespace gpubench {
namespace value_numbers_test {

constexpr Math f32_math{};

// y = x w of a batch; dw = x^T y, summed over the ranks; w2 = w + dw. Half of x is copied, by a part.
Program step() {
  Program p;
  TensorSpec spec = tensor("x", DType::f32, {4, 8}, Role::input, Fill::normal(1.0));
  spec.placement = Placement::shard(0);
  const ValueId x = p.add(spec);
  const ValueId w = p.add(tensor("w", DType::f32, {8, 8}, Role::parameter, Fill::normal(1.0)));
  const ValueId half = p.part(x, tensor("half", DType::f32, {2, 8}, Role::input), 16);
  copy(p, "copy", half);
  const ValueId y = gemm(p, {}, f32_math, "up", x, w).c;
  const ValueId dw = gemm(p, {.transpose_a = true}, f32_math, "dw", x, y).c;
  add(p, f32_math, "sum", w, dw);
  return p;
}

ValueId named(const Program& program, std::string_view op) {
  const auto found =
      std::ranges::find(program.ops(), op, [](const OpCall& call) { return std::string_view(call.label); });
  EXPECT_NE(found, program.ops().end()) << op;
  return found->outputs.front();
}

Program on_two_ranks() {
  const Program one = step();
  return data_parallel(one, {.ranks = 2}, std::array{named(one, "dw")});
}

TEST(ValueNumbers, OfWhatRanksComputeFromTheirOwnDataDiffer) {
  const Program program = on_two_ranks();
  const ValueNumbers numbers(program);
  for (const std::string op : {"up", "dw", "copy"})
    EXPECT_NE(numbers[named(program, op + "@0")], numbers[named(program, op + "@1")]) << op;
}

TEST(ValueNumbers, OfWhatASumOverTheRanksLeavesAreThoseOfReplicas) {
  const Program program = on_two_ranks();
  const ValueNumbers numbers(program);
  ASSERT_TRUE(numbers[named(program, "sum@0")].has_value());
  EXPECT_EQ(numbers[named(program, "sum@0")], numbers[named(program, "sum@1")]);
}

TEST(ValueNumbers, OfOneRankAloneAreThoseOfTheRankWhoseDataItHasUntilItMeetsOthers) {
  const Program program = on_two_ranks(), one = step();
  const ValueNumbers numbers(program);
  std::map<std::string, std::uint64_t> of_rank_1;
  for (const Value& value : program.values()) {
    if (value.source && !value.part_of && value.spec.placement.rank == 1)
      of_rank_1[std::string(value.spec.global_name())] = source_number(value.spec);
  }
  const ValueNumbers alone(one, of_rank_1);
  for (const std::string op : {"up", "dw", "copy"}) {
    EXPECT_EQ(alone[named(one, op)], numbers[named(program, op + "@1")]) << op;
    EXPECT_NE(alone[named(one, op)], numbers[named(program, op + "@0")]) << op;
  }
  EXPECT_NE(alone[named(one, "sum")], numbers[named(program, "sum@1")]) << "its sum is of one rank's gradient";
}

TEST(ValueNumbers, OtherAttributesArithmeticAndOperandsAreOtherValues) {
  Program p;
  const ValueId a = p.add(tensor("a", DType::f32, {8, 8}, Role::input, Fill::normal(1.0)));
  const ValueId b = p.add(tensor("b", DType::f32, {8, 8}, Role::input, Fill::normal(1.0)));
  const ValueId ab = gemm(p, {}, f32_math, "ab", a, b).c;
  const std::array others{gemm(p, {}, f32_math, "ba", b, a).c, gemm(p, {.transpose_a = true}, f32_math, "atb", a, b).c,
                          gemm(p, {}, Math{.accumulate = DType::f64}, "f64", a, b).c};
  const ValueId again = gemm(p, {}, f32_math, "again", a, b).c;
  const ValueNumbers numbers(p);
  EXPECT_EQ(numbers[ab], numbers[again]);
  for (const ValueId other : others) EXPECT_NE(numbers[ab], numbers[other]);
}

}  // namespace value_numbers_test
}  // namespace gpubench
