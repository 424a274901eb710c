#include "harness/core/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
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
  EXPECT_EQ(p.unique_name("x"), "x.2");  // as long as nothing has it
  p.reserve(f32("x.2"));
  p.reserve(f32("x.3"));
  EXPECT_EQ(p.unique_name("x"), "x.4");
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

TEST(Program, APartOfElementsOfFourBitsBeginsAtAByte) {
  Program p;
  const ValueId whole = p.reserve(tensor("whole", DType::f4_e2m1, {12}, Role::activation));
  EXPECT_THROW(p.part(whole, tensor("odd", DType::f4_e2m1, {4}, Role::activation), 3), ProgramError);
  const ValueId even = p.part(whole, tensor("even", DType::f4_e2m1, {4}, Role::activation), 4);
  EXPECT_EQ(p.value(even).offset_bytes, 2);
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
  EXPECT_EQ(p.bytes(), 96);        // counted once
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

TEST(Program, AWholeStaysAvailableWhenOneOfItsPartsIsUpdated) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId whole = p.reserve(f32("whole", {4, 6}));
  const ValueId a = columns(p, whole, "a", 0);
  op(p, "makes all", {x}, {a, columns(p, whole, "b", 2), columns(p, whole, "c", 4)});
  op(p, "updates a", {a}, {p.update(a, "a'")});
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

// Order by definition, for every pair of `ops`: one writes bytes that the other reads or writes, or a third op lies
// between them.
std::vector<std::vector<bool>> order_by_pairs(const Program& p, std::span<const int> ops) {
  const auto touch = [&p](std::span<const ValueId> a, std::span<const ValueId> b) {
    for (const ValueId x : a) {
      for (const ValueId y : b) {
        if (p.overlaps(x, y)) return true;
      }
    }
    return false;
  };
  std::vector<std::vector<bool>> before(ops.size(), std::vector<bool>(ops.size()));
  for (std::size_t later = 0; later < ops.size(); ++later) {
    for (std::size_t earlier = later; earlier-- > 0;) {
      const OpCall& a = p.op(ops[earlier]);
      const OpCall& b = p.op(ops[later]);
      if (!touch(a.outputs, b.inputs) && !touch(a.inputs, b.outputs) && !touch(a.outputs, b.outputs)) continue;
      before[later][earlier] = true;
      for (std::size_t first = 0; first < earlier; ++first)
        before[later][first] = before[later][first] || before[earlier][first];
    }
  }
  return before;
}

std::vector<std::vector<bool>> order_of(const std::vector<std::vector<int>>& waits) {
  std::vector<std::vector<bool>> before(waits.size(), std::vector<bool>(waits.size()));
  for (std::size_t later = 0; later < waits.size(); ++later) {
    for (const int earlier : waits[later]) {
      before[later][static_cast<std::size_t>(earlier)] = true;
      for (std::size_t first = 0; first < later; ++first)
        before[later][first] = before[later][first] || before[static_cast<std::size_t>(earlier)][first];
    }
  }
  return before;
}

Program random_program(unsigned seed) {
  std::minstd_rand random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  Program p;
  std::vector<ValueId> there{p.add(f32("x", {4, 6})), p.add(f32("y", {4, 6}))};
  const auto any = [&] { return there[below(there.size())]; };
  for (int i = 0; i < 120; ++i) {
    const std::string number = std::to_string(i);
    std::vector<ValueId> inputs{any(), any()};
    std::vector<ValueId> outputs;
    switch (below(4)) {
      case 0: outputs = {p.reserve(f32(("a" + number).c_str(), {4, 6}))}; break;
      case 1: outputs = {p.update(any(), "b" + number)}; break;
      case 2: {
        const ValueId of = any();
        const std::string name = "v" + number;
        if (p.spec(of).shape == Shape{4, 6})
          inputs.push_back(columns(p, of, name.c_str(), 2 * static_cast<std::int64_t>(below(3))));
        else  // columns of columns, and parts of these
          inputs.push_back(p.part(of, f32(name.c_str(), {1}),
                                  p.spec(of).shape == Shape{4, 2} ? static_cast<std::int64_t>(below(2)) : 0));
        there.push_back(inputs.back());
        break;
      }
      default: {
        const ValueId whole = p.reserve(f32(("c" + number).c_str(), {4, 6}));
        for (const std::int64_t first : {0, 2, 4})
          outputs.push_back(columns(p, whole, ("c" + number + "." + std::to_string(first)).c_str(), first));
        there.push_back(whole);
      }
    }
    op(p, number.c_str(), inputs, outputs);
    there.insert(there.end(), outputs.begin(), outputs.end());
  }
  return p;
}

TEST(Program, TheOrderOfOpsIsThatOfThoseThatTouchTheirBytes) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const Program p = random_program(seed);
    std::vector<int> all(p.ops().size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order_of(p.dependencies()), order_by_pairs(p, all)) << "seed " << seed;
  }
}

TEST(Program, OpsThatAreLeftOutTakeNoOtherOrderWithThem) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const Program p = random_program(seed);
    std::vector<int> some;
    for (int op = 0; op < static_cast<int>(p.ops().size()); op += 1 + op % 3) some.push_back(op);
    EXPECT_EQ(order_of(p.dependencies(some)), order_by_pairs(p, some)) << "seed " << seed;
  }
}

TEST(Program, OpsAfterAnOverwriteWaitForThatAlone) {
  Program p;
  ValueId sum = p.add(f32("sum"));
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    op(p, ("reads " + number).c_str(), {sum}, {p.reserve(f32(("y" + number).c_str()))});
    const ValueId next = p.update(sum, "sum" + number);
    op(p, ("updates " + number).c_str(), {sum}, {next});
    sum = next;
  }
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1), ElementsAre(1, 2),
                                            ElementsAre(3), ElementsAre(3, 4)));
}

TEST(Program, OpsAfterAnOverwriteOfAllPartsWaitForThatAlone) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId whole = p.reserve(f32("whole", {4, 6}));
  op(p, "makes all", {x}, {columns(p, whole, "a", 0), columns(p, whole, "b", 2), columns(p, whole, "c", 4)});
  const ValueId next = p.update(whole, "whole'");
  op(p, "updates", {whole}, {next});
  op(p, "reads", {next}, {p.reserve(f32("y"))});
  EXPECT_THAT(p.dependencies(), ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
}

TEST(Program, KnowsTheReadersOfAValue) {
  Program p;
  const ValueId x = p.add(f32("x"));
  const ValueId half = p.part(x, f32("half", {2}), 0);
  op(p, "a", {x}, {p.reserve(f32("y"))});
  op(p, "b", {half, x, x}, {p.reserve(f32("z"))});
  EXPECT_THAT(p.readers(x), ElementsAre(0, 1, 1));
  EXPECT_THAT(p.readers(half), ElementsAre(1));
  EXPECT_THAT(p.values_in(p.value(x).storage), ElementsAre(x, half));
}

TEST(Program, KnowsWhichValuesAreThereAtTheEnd) {
  Program p;
  const ValueId w = p.add(f32("w"));
  const ValueId y = p.reserve(f32("y"));
  op(p, "makes", {w}, {y});
  const ValueId whole = p.reserve(f32("whole", {4, 6}));
  const ValueId a = columns(p, whole, "a", 0);
  op(p, "makes the parts", {w}, {a, columns(p, whole, "b", 2), columns(p, whole, "c", 4)});
  const ValueId next = p.update(y, "y'"), later = p.update(whole, "whole'");
  op(p, "updates", {y}, {next});
  EXPECT_FALSE(p.survives(w));  // no op made it
  EXPECT_FALSE(p.survives(y));
  EXPECT_TRUE(p.survives(next));
  EXPECT_TRUE(p.survives(a));
  op(p, "updates the whole", {whole}, {later});
  EXPECT_FALSE(p.survives(a));
  EXPECT_TRUE(p.survives(later));
}

TEST(Program, MoreOpsThanItMayHaveAreRefused) {
  Program p;
  const ValueId x = p.add(f32("x"));
  for (std::size_t i = 0; i < Program::max_ops; ++i) op(p, std::to_string(i).c_str(), {x}, {});

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
  EXPECT_FALSE(p.is_state(p.value(y).storage));  // rewritten by each replay
}

TEST(Program, ResultsOfSetUpOpsThatTimedOpsOverwriteAreState) {
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

TEST(Program, AnOpBelongsToTheRankOfItsTensorsOrToAGroup) {
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
  OpCall alone{OpKind{"some_op"}, {}, {}, {b}, {}, "of a group that is not held whole"};
  alone.group = RankGroup({1, 5});
  EXPECT_EQ(rank_of(p, alone), std::nullopt);
  EXPECT_THROW(p.append({OpKind{"some_op"}, {}, {}, {a, b}, {}, "without a group"}), ProgramError);
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
