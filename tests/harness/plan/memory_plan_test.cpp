// Memory reuse: which storages may share a slot, and the dependencies that this adds.
#include "harness/plan/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>
#include <set>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace memory_plan_test {

using ::testing::ElementsAre;

ValueId source(Program& p, const std::string& name, std::int64_t rows = 4) {
  return p.add(tensor(name, DType::f32, {rows, 4}, Role::input, Fill::normal(1.0)));
}

StorageId storage_of(const Program& p, ValueId id) { return p.value(id).storage; }

// y0 = a + a, y1 = y0 + y0, ...: the last one is the result, and two neighbors are live at a time.
struct Chain {
  Program p;
  std::vector<ValueId> y;
  explicit Chain(int n) {
    ValueId last = source(p, "a");
    for (int i = 0; i < n; ++i) y.push_back(last = add(p, {}, "y" + std::to_string(i), last, last));
  }
  [[nodiscard]] StorageId storage(int i) const { return storage_of(p, y[static_cast<std::size_t>(i)]); }
};

TEST(MemoryPlan, OneSegmentKeepsEverything) {
  const Chain chain(5);
  const MemoryPlan plan = plan_memory(chain.p, 1);
  EXPECT_FALSE(plan.reuses());
  EXPECT_EQ(plan.bytes(), chain.p.bytes());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(plan.keeps_memory(chain.storage(i)));
}

TEST(MemoryPlan, AChainAlternatesBetweenTwoSlotsAndKeepsItsResult) {
  const Chain chain(6);

  const MemoryPlan plan = minimal_memory(chain.p);

  EXPECT_EQ(plan.bytes(), 4 * 64);  // a, two for y0 ... y4, and y5
  EXPECT_THAT(plan.slot(chain.storage(0)).storages, ElementsAre(chain.storage(0), chain.storage(2), chain.storage(4)));
  EXPECT_THAT(plan.slot(chain.storage(1)).storages, ElementsAre(chain.storage(1), chain.storage(3)));
  EXPECT_FALSE(plan.is_shared(chain.storage(5)));
  EXPECT_FALSE(plan.keeps_memory(chain.storage(0)));
  EXPECT_TRUE(plan.keeps_memory(chain.storage(4)));
  EXPECT_EQ(plan.follows[static_cast<std::size_t>(chain.storage(2).index)], chain.storage(0));
}

TEST(MemoryPlan, NothingIsReusedWithinASegment) {
  const Chain chain(6);
  const MemoryPlan plan = plan_memory(chain.p, 2);  // ops 0 to 2, and 3 to 5
  EXPECT_EQ(plan.segments, 2);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < i; ++j)
      EXPECT_NE(plan.slot_of[static_cast<std::size_t>(chain.storage(i).index)],
                plan.slot_of[static_cast<std::size_t>(chain.storage(j).index)]);
  }
  EXPECT_EQ(plan.bytes(), 5 * 64);  // a, y0 to y2 (y2 is read later), y5; y3 and y4 reuse two of them
}

// If y of a norm is read, its unread mean and rstd may be overwritten by the readers of y. If y is not read either, all
// three are results.
TEST(MemoryPlan, UnreadOutputsOfAnOpWithAReadOutputAreReused) {
  Program p;
  const ValueId x = source(p, "x");
  const ValueId one = p.add(tensor("one", DType::f32, {4}, Role::parameter, Fill::normal(1.0)));
  const LayerNormForward norm = layer_norm_forward(p, {}, {}, "norm", x, one, one);
  EXPECT_FALSE(minimal_memory(p).reuses());
  const ValueId a = column_sum(p, {}, "a", norm.y);  // 4 elements, like mean and rstd
  add(p, {}, "b", a, a);

  const MemoryPlan plan = minimal_memory(p);

  EXPECT_THAT(plan.slot(storage_of(p, a)).storages,
              testing::Contains(testing::AnyOf(storage_of(p, norm.mean), storage_of(p, norm.rstd))));
}

TEST(MemoryPlan, AnInPlaceUpdateIsOneStorageAndStateIsNeverShared) {
  Program p;
  const ValueId a = source(p, "a");
  const ValueId c = source(p, "c");
  const ValueId g = add(p, {}, "g", a, a);                           // op 0
  const ValueId norm = gradient_norm(p, {}, "norm", std::array{g});  // op 1
  clip(p, {}, {}, "clip", norm, std::array{g});                      // op 2 overwrites g, which no later op reads
  const ValueId h = add(p, {}, "h", a, a);                           // op 3
  gemm(p, {.beta = 1.0}, {}, "c2", h, h, {.c_in = c});               // op 4 overwrites c

  const MemoryPlan plan = minimal_memory(p);

  EXPECT_FALSE(plan.is_shared(storage_of(p, g)));  // its last version is a result
  EXPECT_FALSE(plan.is_shared(storage_of(p, c)));
  EXPECT_FALSE(plan.is_shared(storage_of(p, a)));
}

TEST(MemoryPlan, AnOpThatReusesMemoryWaitsForAllUsersOfThePreviousStorage) {
  Program p;
  const ValueId a = source(p, "a");
  const ValueId x = add(p, {}, "x", a, a);  // op 0
  const ValueId y = add(p, {}, "y", x, x);  // op 1 reads x
  const ValueId z = add(p, {}, "z", a, a);  // op 2 reads no result, but takes the slot of x
  add(p, {}, "out", y, z);                  // op 3
  const MemoryPlan plan = minimal_memory(p);
  ASSERT_EQ(plan.follows[static_cast<std::size_t>(storage_of(p, z).index)], storage_of(p, x));

  std::vector<int> all(4);
  std::iota(all.begin(), all.end(), 0);

  EXPECT_THAT(dependencies(p, plan, all)[2], ElementsAre(0, 1));
  EXPECT_TRUE(p.dependencies()[2].empty());
  EXPECT_EQ(dependencies(p, plan_memory(p, 1), all), p.dependencies());
}

TEST(MemoryPlan, RanksShareNoMemory) {
  Program p;
  std::array<std::vector<ValueId>, 2> y;
  std::array<ValueId, 2> last;
  for (int rank = 0; rank < 2; ++rank) {
    TensorSpec spec = tensor(name_on_rank("a", rank, 2), DType::f32, {4, 4}, Role::input, Fill::normal(1.0));
    spec.placement = Placement::on(rank, 2);
    last[static_cast<std::size_t>(rank)] = p.add(spec);
  }
  for (int i = 0; i < 5; ++i) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      last[rank] = add(p, {}, name_on_rank("y" + std::to_string(i), static_cast<int>(rank), 2), last[rank], last[rank]);
      y[rank].push_back(last[rank]);
    }
  }
  const MemoryPlan plan = minimal_memory(p);
  EXPECT_EQ(plan.bytes(), 2 * 4 * 64);
  for (const MemorySlot& slot : plan.slots) {
    for (const StorageId id : slot.storages) EXPECT_EQ(p.storage(id).rank, slot.rank);
  }
}

// Simulates the slots: every op must find the values that it reads.
TEST(MemoryPlan, InRandomProgramsEveryOpFindsItsInputsWithAnySegments) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Program p;
    std::vector<ValueId> matrices{source(p, "a"), source(p, "b")};
    for (int op = 0; op < 30; ++op) {
      const std::string label = "v" + std::to_string(op);
      const ValueId left = matrices[any(matrices.size())];
      const ValueId right = matrices[any(matrices.size())];
      if (any(4) == 0) {
        const std::size_t i = any(matrices.size());
        matrices[i] = gemm(p, {.beta = 1.0}, {}, label, left, right, {.c_in = matrices[i]}).c;  // in place
        continue;
      }
      matrices.push_back(add(p, {}, label, left, right));
    }
    for (const int segments : {1, 2, 3, 7, 30, 1000}) {
      const MemoryPlan plan = plan_memory(p, segments);
      std::vector<int> holder(plan.slots.size(), -1);
      for (const Storage& storage : p.storages()) {
        const StorageId id{static_cast<int>(&storage - p.storages().data())};
        if (p.value(p.values_in(id).front()).source) {
          const auto slot = static_cast<std::size_t>(plan.slot_of[static_cast<std::size_t>(id.index)]);
          EXPECT_EQ(holder[slot], -1);
          holder[slot] = id.index;
        }
        EXPECT_LE(storage.bytes, plan.slot(id).bytes);
      }
      for (const OpCall& call : p.ops()) {
        const auto slot_of = [&](ValueId id) {
          return static_cast<std::size_t>(plan.slot_of[static_cast<std::size_t>(storage_of(p, id).index)]);
        };
        std::set<std::size_t> read;
        for (const ValueId id : call.inputs) {
          EXPECT_EQ(holder[slot_of(id)], storage_of(p, id).index) << seed << " " << segments << " " << call.label;
          read.insert(slot_of(id));
        }
        for (const ValueId id : call.outputs) {
          const bool in_place = holder[slot_of(id)] == storage_of(p, id).index;
          EXPECT_TRUE(in_place || !read.contains(slot_of(id))) << "an op's result lies on what it reads";
          holder[slot_of(id)] = storage_of(p, id).index;
        }
      }
      for (int i = 0; i < static_cast<int>(p.values().size()); ++i) {  // results are still there
        const ValueId id{i};
        if (p.values_in(storage_of(p, id)).back() != id || !p.readers(id).empty()) continue;
        EXPECT_TRUE(plan.keeps_memory(storage_of(p, id)));
      }
      EXPECT_LE(plan.bytes(), p.bytes());
    }
  }
}

}  // namespace memory_plan_test
}  // namespace gpubench
