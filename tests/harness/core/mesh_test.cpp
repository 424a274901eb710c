#include "harness/core/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "harness/core/error.h"
#include "harness/core/tensor.h"

namespace gpubench {
namespace {

using testing::ElementsAre;

// Ranks by (dp, tp): 0 = (0, 0), 1 = (0, 1), 2 = (0, 2), 3 = (1, 0), 4 = (1, 1), 5 = (1, 2).
Mesh two_by_three() { return Mesh({{"dp", 2}, {"tp", 3}}); }

TEST(Mesh, AGroupHasTheRanksThatDifferAlongItsAxisOnly) {
  const Mesh mesh = two_by_three();
  EXPECT_EQ(mesh.ranks(), 6);
  EXPECT_THAT(mesh.group(4, "tp").members(), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.group(4, "dp").members(), ElementsAre(1, 4));
  EXPECT_THAT(mesh.group(4, std::array{0, 1}).members(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(mesh.place(5, mesh.axis("dp")), 1);
  EXPECT_EQ(mesh.place(5, mesh.axis("tp")), 2);
}

TEST(Mesh, KnowsTheAxisOfAGroup) {
  const Mesh mesh = two_by_three();
  EXPECT_EQ(mesh.axis_of(RankGroup({1, 4})), mesh.axis("dp"));
  EXPECT_EQ(mesh.axis_of(RankGroup({3, 4, 5})), mesh.axis("tp"));
  EXPECT_EQ(mesh.axis_of(RankGroup({4, 3, 5})), std::nullopt);  // another order, another group
  EXPECT_EQ(mesh.axis_of(RankGroup({0, 4})), std::nullopt);
  EXPECT_EQ(mesh.axis_of(RankGroup({5, 8})), std::nullopt);
  EXPECT_EQ(mesh.axis_of(RankGroup::first(6)), std::nullopt);
}

TEST(Mesh, AxesThatMakeNoSenseAreRefused) {
  EXPECT_THROW(Mesh({{"dp", 2}, {"dp", 2}}), ProgramError);
  EXPECT_THROW(Mesh({{"dp", 0}}), ProgramError);
  EXPECT_THROW(Mesh({{"dp", 1 << 11}, {"tp", 1 << 10}}), ProgramError);
  EXPECT_THROW((void)two_by_three().axis("pp"), ProgramError);
  EXPECT_THROW((void)two_by_three().group(6, "tp"), ProgramError);
}

TEST(RankGroup, NamesEachMemberOnceInItsOrder) {
  const RankGroup group({7, 2, 5});
  EXPECT_THAT(group.members(), ElementsAre(7, 2, 5));
  EXPECT_EQ(group.position(5), 2);
  EXPECT_FALSE(group.contains(3));
  EXPECT_NE(group, RankGroup({2, 5, 7}));
  EXPECT_THROW(RankGroup({1, 2, 1}), ProgramError);
  EXPECT_THROW(RankGroup({-1}), ProgramError);
}

TEST(RankGroup, IsShortInWords) {
  EXPECT_EQ(RankGroup({7, 2, 5}).to_string(), "7, 2, 5");
  EXPECT_EQ(RankGroup::first(64).to_string(), "0 to 63");
  EXPECT_EQ(RankGroup({3, 11, 19, 27, 35}).to_string(), "3 to 35 by 8");
  EXPECT_EQ(RankGroup({0, 1, 2, 3, 5}).to_string(), "0, 1, 2, 3, 5");
}

TensorSpec part_on(int dp, int tp, std::vector<AxisSpread> spread, const Shape& shape) {
  TensorSpec spec = tensor("x", DType::f32, shape, Role::input);
  for (AxisSpread& one : spread) {
    one.part = one.mesh_axis == 0 ? dp : tp;
    one.parts = one.mesh_axis == 0 ? 2 : 3;
  }
  spec.placement.spread = std::move(spread);
  spec.placement.rank = 3 * dp + tp;
  spec.placement.ranks = 6;
  return spec;
}

AxisSpread sharded(int mesh_axis, int tensor_axis) { return {AxisSpread::Kind::sharded, mesh_axis, tensor_axis}; }
AxisSpread partial(int mesh_axis) { return {AxisSpread::Kind::partial, mesh_axis}; }

// Rows over dp and columns over tp: [4, 6] of [2, 2] each. Element [1, 0] of the part of (1, 2) is [3, 4] of the whole.
TEST(GlobalIndex, IsThePlaceOfAnElementInTheTensorThatAllPartsMakeUp) {
  const TensorSpec part = part_on(1, 2, {sharded(0, 0), sharded(1, 1)}, {2, 2});
  EXPECT_EQ(global_shape(part), Shape({4, 6}));
  EXPECT_EQ(global_index(part, 2), 3 * 6 + 4);
  EXPECT_EQ(global_run(part), 2);
}

// One axis of the tensor over both: dp cuts it in halves, tp these in thirds.
TEST(GlobalIndex, OfTwoShardsOfOneAxisTheFirstCutsCoarsest) {
  const TensorSpec part = part_on(1, 2, {sharded(0, 0), sharded(1, 0)}, {5});
  EXPECT_EQ(global_shape(part), Shape({30}));
  EXPECT_EQ(global_index(part, 3), 15 + 10 + 3);
}

TEST(GlobalIndex, AddendsLieBehindEachOther) {
  const TensorSpec part = part_on(1, 2, {sharded(0, 0), partial(1)}, {2, 2});
  EXPECT_EQ(global_shape(part), Shape({3, 4, 2}));
  EXPECT_EQ(global_index(part, 1), 2 * 8 + 2 * 2 + 1);
}

AxisSpread in_sections(int mesh_axis, int tensor_axis, std::vector<std::int64_t> sections) {
  AxisSpread spread = sharded(mesh_axis, tensor_axis);
  spread.sections = std::move(sections);
  return spread;
}

// Rows of 6 + 3 + 3 over tp, which has three: the last has the rows 4, 5, 8 and 11.
TEST(GlobalIndex, OfSectionsEachIsCutByItself) {
  const TensorSpec part = part_on(0, 2, {in_sections(1, 0, {6, 3, 3})}, {4, 2});
  EXPECT_EQ(global_shape(part), Shape({12, 2}));
  EXPECT_EQ(global_index(part, 2), 5 * 2);
  EXPECT_EQ(global_index(part, 5), 8 * 2 + 1);
  EXPECT_EQ(global_index(part, 6), 11 * 2);
  EXPECT_EQ(global_run(part), 2);
}

// Halves over dp, each of two sections of 3 over tp: of the second half the last has rows 2 and 5, 8 and 11 of all.
TEST(GlobalIndex, SectionsMayBeOfAShard) {
  const TensorSpec part = part_on(1, 2, {sharded(0, 0), in_sections(1, 0, {3, 3})}, {2});
  EXPECT_EQ(global_index(part, 0), 8);
  EXPECT_EQ(global_index(part, 1), 11);
}

TEST(GlobalIndex, AllPartsTogetherAreTheWholeAndOverlapNowhere) {
  for (const std::vector<AxisSpread>& spread :
       {std::vector{sharded(0, 0), sharded(1, 2)}, std::vector{sharded(0, 1), sharded(1, 1)},
        std::vector{partial(0), sharded(1, 0)}, std::vector{partial(0), partial(1)},
        std::vector{sharded(0, 0), in_sections(1, 2, {6, 3, 3})}, std::vector{sharded(0, 0), in_sections(1, 0, {3, 3})},
        std::vector{in_sections(0, 0, {4, 4, 4}), sharded(1, 0)}}) {
    std::set<std::int64_t> seen;
    std::int64_t whole = 0;
    for (int dp = 0; dp < 2; ++dp) {
      for (int tp = 0; tp < 3; ++tp) {
        const TensorSpec part = part_on(dp, tp, spread, {2, 3, 4});
        whole = global_shape(part).elements();
        for (std::int64_t i = 0; i < part.shape.elements(); ++i) {
          EXPECT_TRUE(seen.insert(global_index(part, i)).second);
          const std::int64_t in_run = i % global_run(part);
          EXPECT_EQ(global_index(part, i), global_index(part, i - in_run) + in_run);
        }
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), whole);
    EXPECT_EQ(*seen.rbegin(), whole - 1);
  }
}

}  // namespace
}  // namespace gpubench
