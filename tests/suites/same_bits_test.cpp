// --deterministic on the CPU: equal bits each time, in every op of the suites, for an equal number of threads.
#include <gtest/gtest.h>

#include <map>

#include "harness/core/error.h"
#include "harness/plan/plan.h"
#include "harness/run/prepared_case.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/transform/checkpoint.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

constexpr int threads = 2;
constexpr int runs = 3;

using StorageContents = std::map<int, std::vector<std::byte>>;

StorageContents left_by(PreparedCase& prepared) {
  StorageContents contents;
  prepared.reset(0);
  prepared.backend().run(prepared.timed(0));
  for (const std::vector<StorageId>& storages : {prepared.produced(), prepared.state()}) {
    for (const StorageId id : storages) {
      const HostBytes left = prepared.memory(0).block(id).read();
      contents[id.index].assign(left.bytes.begin(), left.bytes.end());
    }
  }
  return contents;
}

StorageContents first_run_of(const PlannedCase& planned, int repetitions, bool* same) {
  const std::unique_ptr<Backend> backend =
      planned.c.ranks == 1 ? open_cpu_backend(threads) : open_rank_group(open_cpu_ranks(planned.c.ranks));
  Arena arena(*backend);
  PreparedCase prepared(*backend, arena, planned, 42, backend->device().available_bytes, {.deterministic = true});
  prepared.set_up();
  prepared.make_copies(0);
  StorageContents first = left_by(prepared);
  for (int run = 1; run < repetitions; ++run) *same = *same && left_by(prepared) == first;
  return first;
}

TEST(SameBits, TheCpuGivesThemEachTimeAndInEachProcessThatOpensIt) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.precisions = {"f32", "bf16"};
  const std::vector<PlannedCase> cases = plan_cases(all_suites(), selection);
  ASSERT_GT(cases.size(), 40U);
  int compared = 0;
  for (const PlannedCase& planned : cases) {
    SCOPED_TRACE(planned.id());
    bool same = true;
    StorageContents once;
    try {
      once = first_run_of(planned, runs, &same);
    } catch (const Unsupported&) {  // links of a device, and bf16 if oneDNN lacks it: no bits to compare
      EXPECT_TRUE(planned.c.suite == "link" || planned.c.recipe == "bf16");
      continue;
    }
    ++compared;
    EXPECT_FALSE(once.empty());
    EXPECT_TRUE(same) << "within one opening";
    EXPECT_EQ(first_run_of(planned, 1, &same), once) << "between two openings";
  }
  EXPECT_GT(compared, 25);
}

class Recomputed final : public Workload {
 public:
  Recomputed(std::shared_ptr<const Workload> plain, RecomputeRule rule)
      : plain_(std::move(plain)), rule_(std::move(rule)) {}
  [[nodiscard]] WorkloadInfo info() const override { return plain_->info(); }
  [[nodiscard]] Grid grid() const override { return plain_->grid(); }
  [[nodiscard]] Program build(const Case& c) const override { return checkpoint(plain_->build(c), rule_); }
  [[nodiscard]] double items(const Case& c) const override { return plain_->items(c); }

 private:
  std::shared_ptr<const Workload> plain_;
  RecomputeRule rule_;
};

// Every tensor of the plain step, including gradients and updated weights.
TEST(SameBits, RecomputationLeavesThoseOfThePlainStep) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.precisions = {"f32", "bf16"};
  selection.fuse = false;  // so that both have the same tensors and ids
  selection.filters = {"gpt2_train_step/b=2"};
  int compared = 0;
  for (const PlannedCase& plain : plan_cases(all_suites(), selection)) {
    SCOPED_TRACE(plain.id());
    bool same = true;
    StorageContents want;
    try {
      want = first_run_of(plain, 1, &same);
    } catch (const Unsupported&) {
      continue;
    }
    for (const RecomputePolicy& policy : recompute_policies()) {
      if (!policy.rule) continue;
      PlannedCase again = plain;
      again.workload = std::make_shared<Recomputed>(plain.workload, policy.rule);
      const StorageContents got = first_run_of(with_program(again), 1, &same);
      EXPECT_GT(got.size(), want.size()) << policy.name;
      for (const auto& [storage, bytes] : want) EXPECT_EQ(got.at(storage), bytes) << policy.name << ": " << storage;
      ++compared;
    }
  }
  EXPECT_GE(compared, 3);
}

}  // namespace
}  // namespace gpubench
