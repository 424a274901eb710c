// Programs: who produces what, which bytes values share, and what must therefore wait for what.
#include "harness/core/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "harness/core/error.h"

namespace gpubench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr OpKind some_kind{"some_op"};

TensorSpec f32(const char* name, Shape shape = {4}) {
  return tensor(name, DType::f32, std::move(shape), Role::activation);
}

int op(Program& p, const char* label, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  p.append({some_kind, {}, {}, std::move(inputs), std::move(outputs), label});
  return static_cast<int>(p.ops().size()) - 1;
}

// One third of a [4, 6] storage: columns [first, first + 2).
ValueId columns(Program& p, ValueId whole, const char* name, std::int64_t first) {
  TensorSpec spec = f32(name, {4, 2});
  spec.layout.strides = {6, 1};
  return p.part(whole, spec, first);
}

TEST(Program, ANameBelongsToOneTensor) {
  Program p;
  p.add(f32("x"));
  EXPECT_THROW(p.reserve(f32("x")), ProgramError);
  EXPECT_EQ(p.unique_name("x"), "x.2");
  EXPECT_EQ(p.unique_name("y"), "y");
}

TEST(Program, ALabelBelongsToOneOp) {
  Program p;
  const ValueId x = p.add(f32("x"));
  op(p, "first", {x}, {p.reserve(f32("y"))});
  EXPECT_THROW(op(p, "first", {x}, {p.reserve(f32("z"))}), ProgramError);
}

TEST(Program, NothingIsReadBeforeItIsProduced) {
  Program p;
  const ValueId x = p.reserve(f32("x"));
  EXPECT_FALSE(p.available(x));
  EXPECT_THROW(op(p, "reader", {x}, {p.reserve(f32("y"))}), ProgramError);
}

TEST(Program, NothingIsProducedTwice) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId y = p.reserve(f32("y"));
  op(p, "writer", {x}, {y});
  EXPECT_THROW(op(p, "again", {x}, {y}), ProgramError);
  EXPECT_THROW(op(p, "over the source", {y}, {x}), ProgramError);
}

TEST(Program, AnOpWaitsForTheProducersOfItsInputs) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId y = p.reserve(f32("y"));
  const ValueId z = p.reserve(f32("z"));
  op(p, "a", {x}, {y});
  op(p, "b", {x}, {z});
  op(p, "c", {y, z}, {p.reserve(f32("w"))});
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1)));
}

TEST(Program, APartMayNotReachOutsideItsWhole) {
  Program p;
  const ValueId whole = p.add(f32("whole", {4, 6}));
  EXPECT_NO_THROW(columns(p, whole, "last", 4));
  EXPECT_THROW(columns(p, whole, "outside", 5), ProgramError);
  EXPECT_THROW(columns(p, whole, "before", -1), ProgramError);
  EXPECT_THROW(p.part(whole, tensor("bf16", DType::bf16, {4}, Role::activation), 0), ProgramError);
}

TEST(Program, APartLiesAtItsFirstElement) {
  Program p;
  const ValueId whole = p.add(f32("whole", {4, 6}));
  const ValueId part = columns(p, whole, "part", 2);
  EXPECT_EQ(p.value(part).offset_bytes, 8);
  EXPECT_EQ(p.value(part).storage, p.value(whole).storage);
  EXPECT_TRUE(p.available(part));  // the source's storage is filled whole
  EXPECT_EQ(p.bytes(), 96);        // and counted once
}

TEST(Program, AWholeIsAvailableOnceAllItsPartsAre) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId whole = p.reserve(f32("whole", {4, 6}));
  const ValueId a = columns(p, whole, "a", 0);
  const ValueId b = columns(p, whole, "b", 2);
  const ValueId c = columns(p, whole, "c", 4);
  op(p, "makes a and b", {x}, {a, b});
  EXPECT_FALSE(p.available(whole));
  EXPECT_TRUE(p.available(a));
  op(p, "makes c", {x}, {c});
  EXPECT_TRUE(p.available(whole));
}

TEST(Program, DisjointPartsDoNotWaitForEachOtherButTheWholeWaitsForAll) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId whole = p.reserve(f32("whole", {4, 6}));
  const ValueId a = columns(p, whole, "a", 0);
  const ValueId b = columns(p, whole, "b", 2);
  const ValueId c = columns(p, whole, "c", 4);
  op(p, "makes a", {x}, {a});
  op(p, "makes b", {x}, {b});
  op(p, "makes c", {x}, {c});
  op(p, "reads b", {b}, {p.reserve(f32("y"))});
  op(p, "reads whole", {whole}, {p.reserve(f32("z"))});
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre(1), ElementsAre(0, 1, 2)));
  EXPECT_FALSE(p.overlaps(a, b));
  EXPECT_TRUE(p.overlaps(a, whole));
}

TEST(Program, AnUpdateWaitsForEveryReaderOfTheOldVersion) {
  Program p;
  const ValueId w = p.add(f32("w"));
  const ValueId y = p.reserve(f32("y"));
  op(p, "reads old", {w}, {y});
  const ValueId next = p.update(w, "w'");
  op(p, "updates", {w, y}, {next});
  op(p, "reads new", {next}, {p.reserve(f32("z"))});
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
  EXPECT_EQ(p.value(next).storage, p.value(w).storage);
  EXPECT_EQ(p.value(next).updates, w);
}

TEST(Program, ADirectWriteAfterReadIsADependencyWithoutAnyDataFlow) {
  Program p;
  const ValueId w = p.add(f32("w"));
  const ValueId g = p.add(f32("g"));
  op(p, "reads old", {w}, {p.reserve(f32("y"))});
  op(p, "updates", {g}, {p.update(w, "w'")});
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), ElementsAre(0)));
}

// Every pair of ops, by the definition: one of them writes bytes that the other reads or writes.
std::vector<std::vector<int>> dependencies_by_pairs(const Program& p) {
  const auto touch = [&p](std::span<const ValueId> a, std::span<const ValueId> b) {
    for (const ValueId x : a) {
      for (const ValueId y : b) {
        if (p.overlaps(x, y)) return true;
      }
    }
    return false;
  };
  std::vector<std::vector<int>> waits(p.ops().size());
  for (int later = 0; later < static_cast<int>(waits.size()); ++later) {
    for (int earlier = 0; earlier < later; ++earlier) {
      const OpCall& a = p.op(earlier);
      const OpCall& b = p.op(later);
      if (touch(a.outputs, b.inputs) || touch(a.inputs, b.outputs) || touch(a.outputs, b.outputs))
        waits[static_cast<std::size_t>(later)].push_back(earlier);
    }
  }
  return waits;
}

TEST(Program, AnOpWaitsForExactlyThoseThatTouchItsBytes) {
  std::minstd_rand random(1);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  Program p;
  std::vector<ValueId> there{p.add(f32("x")), p.add(f32("y"))};
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    std::vector<ValueId> inputs{there[below(there.size())], there[below(there.size())]};
    std::vector<ValueId> outputs;
    switch (below(3)) {
      case 0: outputs = {p.reserve(f32(("a" + number).c_str()))}; break;
      case 1: outputs = {p.update(there[below(there.size())], "b" + number)}; break;
      default: {
        const ValueId whole = p.reserve(f32(("c" + number).c_str(), {4, 6}));
        for (const std::int64_t first : {0, 2, 4})
          outputs.push_back(columns(p, whole, ("c" + number + "." + std::to_string(first)).c_str(), first));
      }
    }
    op(p, number.c_str(), inputs, outputs);
    there.insert(there.end(), outputs.begin(), outputs.end());
  }

  EXPECT_EQ(p.dependencies(), dependencies_by_pairs(p));
}

TEST(Program, MoreOpsThanItMayHaveAreRefused) {
  Program p;
  const ValueId x = p.add(f32("x"));
  for (std::size_t i = 0; i < Program::most_ops; ++i) op(p, std::to_string(i).c_str(), {x}, {});

  EXPECT_THROW(op(p, "one more", {x}, {}), ProgramError);
}

TEST(Program, StorageThatTheTimedOpsOverwriteIsState) {
  Program p;
  const ValueId w = p.add(f32("w"));
  const ValueId x = p.add(f32("x"));
  const ValueId y = p.reserve(f32("y"));
  op(p, "forward", {w, x}, {y});
  op(p, "updates", {w, y}, {p.update(w, "w'")});
  EXPECT_TRUE(p.is_state(p.value(w).storage));
  EXPECT_FALSE(p.is_state(p.value(x).storage));
  EXPECT_FALSE(p.is_state(p.value(y).storage));  // made anew by each replay
}

TEST(Program, WhatASetUpOpMadeAndATimedOpOverwritesIsState) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId y = p.reserve(f32("y"));
  p.begin(Phase::setup);
  op(p, "prepares", {x}, {y});
  EXPECT_FALSE(p.is_state(p.value(y).storage));
  p.begin(Phase::timed);
  op(p, "updates", {y}, {p.update(y, "y'")});
  EXPECT_TRUE(p.is_state(p.value(y).storage));
  EXPECT_EQ(p.op(0).phase, Phase::setup);
  EXPECT_EQ(p.op(1).phase, Phase::timed);
}

TEST(Program, TheTextNamesTensorsOpsPartsAndUpdates) {
  Program p;
  const ValueId whole = p.add(f32("whole", {4, 6}));
  const ValueId part = columns(p, whole, "part", 2);
  op(p, "label", {part}, {p.update(part, "part'")});
  const std::string text = p.to_string();
  EXPECT_THAT(text, HasSubstr("whole: f32[4, 6]  activation, filled"));
  EXPECT_THAT(text, HasSubstr("part: f32[4, 2]  activation, part of whole"));
  EXPECT_THAT(text, HasSubstr("part': f32[4, 2]  activation, part of whole, updates part"));
  EXPECT_THAT(text, HasSubstr("label = some_op(part) -> part'"));
}

TEST(Program, PartsAndUpdatesLieInTheMemoryOfTheirStorage) {
  Program p;
  TensorSpec spec = tensor("x", DType::f32, {8}, Role::input);
  spec.placement = Placement::in(Memory::pinned_host);
  const ValueId x = p.add(std::move(spec));
  const ValueId half = p.part(x, tensor("half", DType::f32, {4}, Role::input), 4);
  const ValueId next = p.update(x, "x'");

  EXPECT_EQ(p.storage(p.value(x).storage).memory, Memory::pinned_host);
  EXPECT_EQ(p.spec(half).placement.memory, Memory::pinned_host);
  EXPECT_EQ(p.spec(next).placement.memory, Memory::pinned_host);
}

TEST(Program, AnOpBelongsToTheRankOfItsTensorsOrToAllOfThem) {
  Program p;
  const auto on = [&](const char* name, int rank) {
    TensorSpec spec = tensor(name_on_rank(name, rank, 2), DType::f32, {8}, Role::input);
    spec.placement.rank = rank;
    spec.placement.ranks = 2;
    return p.add(std::move(spec));
  };
  const ValueId a = on("a", 0);
  const ValueId b = on("a", 1);
  const ValueId half = p.part(b, tensor("half@1", DType::f32, {4}, Role::input), 4);

  EXPECT_EQ(p.spec(half).placement.rank, 1);
  EXPECT_EQ(p.storage(p.value(b).storage).rank, 1);
  EXPECT_EQ(p.spec(a).name, "a@0");
  EXPECT_EQ(p.spec(b).global_name(), "a");
  EXPECT_EQ(rank_of(p, OpCall{OpKind{"some_op"}, {}, {}, {b, half}, {}, "on one"}), 1);
  EXPECT_EQ(rank_of(p, OpCall{OpKind{"some_op"}, {}, {}, {a, b}, {}, "on both"}), std::nullopt);
  EXPECT_EQ(rank_of(specs_of(p, std::array{a, b})), std::nullopt);
  EXPECT_EQ(rank_of(specs_of(p, std::array{a})), 0);
}

TEST(Program, TensorsThatAreTooManyBytesTogetherAreRefused) {
  Program p;
  p.add(tensor("a", DType::f32, {std::int64_t{1} << 47}, Role::input));
  p.add(tensor("b", DType::f32, {std::int64_t{1} << 47}, Role::input));
  EXPECT_EQ(p.bytes(), std::int64_t{1} << 50);
  p.add(tensor("c", DType::u8, {1}, Role::input));
  EXPECT_THROW((void)p.bytes(), ProgramError);
}

}  // namespace
}  // namespace gpubench
