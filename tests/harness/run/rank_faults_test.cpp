// Faults between ranks, in the whole engine: each is found and named with its rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "harness/core/error.h"
#include "harness/run/case_memory.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"
#include "tests/harness/run/faulty_ranks.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace {

using testing::damaged;
using testing::interrupted;

std::vector<PlannedCase> cases(const std::string& filter, int ranks) {
  Selection selection;
  selection.suites = {"collectives", "transformer"};
  selection.filters = {filter};
  selection.tier = Tier::quick;
  selection.ranks = {ranks};
  return plan_cases(all_suites(), selection);
}

/// The workload's step of the smoke tier in this layout.
std::vector<PlannedCase> shared_steps(const std::string& workload, const RankLayout& layout) {
  Selection selection;
  selection.suites = {"transformer", "moe"};
  selection.filters = {workload + "_train_step/.*/f32/"};
  selection.tier = Tier::smoke;
  selection.layouts = {{.parallel = layout}};
  return plan_cases(all_suites(), selection);
}

using Records = std::map<std::string, CaseRecord>;

Records run_on(const std::vector<PlannedCase>& planned, const std::function<RankSet(int)>& open,
               double stall_limit_s = 15.0, std::int64_t memory_limit_bytes = 0) {
  RunOptions options = sim::smoke_options();
  options.memory_limit_bytes = memory_limit_bytes;
  options.open_ranks = [&](int ranks, const OwnImplementation*) { return open_rank_group(open(ranks), stall_limit_s); };
  sim::Remembering seen;
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  run_in_process(*alone, planned, options, seen, seen.stop);
  return std::move(seen.records);
}

/// The reason of the only case of the filter, on ranks with damaged collectives.
std::string reason_under(const testing::Damage& damage, const std::string& filter, int ranks = 4) {
  const std::vector<PlannedCase> planned = cases(filter, ranks);
  EXPECT_EQ(planned.size(), 1U) << filter;
  const Records seen = run_on(planned, [&](int count) {
    RankSet set = open_cpu_ranks(count);
    set.communicator = damaged(std::move(set.communicator), count, damage);
    return set;
  });
  const CaseRecord& record = seen.begin()->second;
  EXPECT_EQ(record.verdict, Verdict::fail) << record.id;
  return record.reason;
}

/// A rank whose plans take 1 s each; counts finished plans.
class PlansSlowly final : public ForwardingBackend {
 public:
  PlansSlowly(Backend& inner, std::unique_ptr<Backend> owner, std::atomic<int>& done)
      : ForwardingBackend(inner, std::move(owner)), done_(done) {}
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    Plan plan = inner().plan(call, tensors, options);
    ++done_;
    return plan;
  }

 private:
  std::atomic<int>& done_;
};

// Twice the limit of other work.
TEST(RankFailures, ARankThatPlansForLongIsNotLost) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {64}, Role::input));
  (void)add(program, Math{}, "sum", x, x);
  const std::vector<TensorSpec> specs = specs_of_call(program, program.op(0));
  std::atomic<int> done{0};
  const auto group = [&](double plan_limit_s) {
    RankSet set = open_cpu_ranks(2);
    for (std::unique_ptr<Backend>& rank : set.backends) {
      Backend& inner = *rank;
      rank = std::make_unique<PlansSlowly>(inner, std::move(rank), done);
    }
    return open_rank_group(std::move(set), 0.5, plan_limit_s);
  };
  EXPECT_NE(group(30.0)->plan(program.op(0), specs), nullptr);
  static Backend* const left_behind = group(0.0).release();  // its detached thread still runs
  EXPECT_THROW((void)left_behind->plan(program.op(0), specs), DeviceLost);
  while (done < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

float& element(const Tensor& tensor, std::int64_t i) { return reinterpret_cast<float*>(tensor.data)[i]; }

const std::string sum_case = "^collectives/all_reduce/bytes=65536/f32/x";
constexpr std::int64_t elements = 16384;

/// Adds `factor` times rank 2's contribution to [begin, end) of every rank's result.
testing::Damage wrong_share(float factor, std::int64_t begin, std::int64_t end) {
  return [=](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
    const Tensor& y = tensors[inputs + static_cast<std::size_t>(rank)];
    for (std::int64_t i = begin; i < end; ++i) element(y, i) += factor * element(tensors[2], i);
  };
}

TEST(CollectiveFaults, AMissingContributionIsNamedWithItsRankAndChunk) {
  const std::string reason = reason_under(wrong_share(-1.0F, 4096, 8192), sum_case);
  EXPECT_NE(reason.find("rank 2's contribution is missing, in chunk 1 of 4 (elements 4096 to 8191)"), std::string::npos)
      << reason;
}

TEST(CollectiveFaults, ADoubledContributionIsNamed) {
  const std::string reason = reason_under(wrong_share(1.0F, 0, elements), sum_case);
  EXPECT_NE(reason.find("rank 2's contribution is doubled"), std::string::npos) << reason;
}

TEST(CollectiveFaults, AStaleContributionIsSeenInTheRecheckAndNamed) {
  // Rank 1 contributes its first values, as a kernel that reads the previous run's buffer.
  const auto first = std::make_shared<std::vector<float>>();
  const std::string reason = reason_under(
      [=](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
        if (rank == 0 && first->empty()) first->assign(&element(tensors[1], 0), &element(tensors[1], 0) + elements);
        if (rank != 0) return;
        for (std::size_t other = 0; other < 4; ++other) {
          for (std::int64_t i = 0; i < elements; ++i)
            element(tensors[inputs + other], i) += (*first)[static_cast<std::size_t>(i)] - element(tensors[1], i);
        }
      },
      sum_case);
  EXPECT_NE(reason.find("rank 1's contribution is stale"), std::string::npos) << reason;
}

TEST(CollectiveFaults, AMisplacedContributionIsNamedWithItsDistance) {
  const std::string reason = reason_under(
      [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
        const Tensor& y = tensors[inputs + static_cast<std::size_t>(rank)];
        for (std::int64_t i = 0; i + 4096 < elements; ++i)
          element(y, i) += element(tensors[3], i + 4096) - element(tensors[3], i);
      },
      sum_case);
  EXPECT_NE(reason.find("rank 3's contribution is misplaced by 4096 elements"), std::string::npos) << reason;
}

TEST(CollectiveFaults, AnAbsentAverageIsNamed) {
  const std::string reason = reason_under(
      [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
        for (std::int64_t i = 0; i < elements; ++i)
          element(tensors[inputs + static_cast<std::size_t>(rank)], i) *= 4.0F;
      },
      "^collectives/all_reduce_avg/bytes=65536/f32/x4");
  EXPECT_NE(reason.find("the sum was not divided by the number of ranks"), std::string::npos) << reason;
}

// Within the bound, so only the comparison of all ranks' bits can find it.
TEST(CollectiveFaults, ARankThatDivergesIsNamedEvenWithinTheBound) {
  const std::string reason = reason_under(
      [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
        if (rank != 1) return;
        float& value = element(tensors[inputs + 1], 77);
        value = std::nextafter(value, 1e9F);
      },
      "^collectives/all_reduce/bytes=1048576/f32/normal/x3", 3);
  EXPECT_NE(reason.find("'y@0' and 'y@1' must hold the same bits and differ, first at y@1[77]"), std::string::npos)
      << reason;
}

TEST(CollectiveFaults, ABlockFromTheWrongRankIsNamed) {
  const std::string reason = reason_under(
      [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
        if (rank != 0) return;
        for (std::int64_t i = 0; i < elements / 4; ++i) {  // rank 3's part in the place of rank 1's
          element(tensors[inputs], elements / 4 + i) = element(tensors[3], i);
        }
      },
      "^collectives/all_gather/bytes=65536/f32/x4");
  EXPECT_NE(reason.find("what rank 3 sent is in the place of rank 1's block, in chunk 1 of 4"), std::string::npos)
      << reason;
}

TEST(CollectiveFaults, SoundRanksRaiseNoAlarm) {
  for (const int ranks : {2, 3}) {
    const Records seen = run_on(cases("bytes=65536/", ranks), open_cpu_ranks);
    EXPECT_GE(seen.size(), 10U);
    for (const auto& [id, record] : seen) EXPECT_EQ(record.verdict, Verdict::pass) << id << record.reason;
  }
}

// Three whole steps, every element judged.
TEST(CollectiveFaults, SoundRanksThatShareAStepRaiseNoAlarm) {
  const std::vector<std::pair<std::string, RankLayout>> steps{
      {"vit", {.fsdp = 2}}, {"vit", {.pp = 2}}, {"mixtral", {.ep = 2}}};
  for (const auto& [workload, layout] : steps) {
    const std::vector<PlannedCase> planned = shared_steps(workload, layout);
    ASSERT_EQ(planned.size(), 1U) << workload;
    for (const auto& [id, record] : run_on(planned, open_cpu_ranks))
      EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
  }
}

/// Rank 1 calls `what` before its op `label`.
std::function<RankSet(int)> with_trouble_on_rank_1(std::string label, std::function<void()> what) {
  return [=](int count) {
    RankSet set = open_cpu_ranks(count);
    set.backends[1] = interrupted(std::move(set.backends[1]), [=](const std::string& at) {
      if (at == label) what();
    });
    return set;
  };
}

const std::string step_case = "^transformer/gpt2_train_step/b=2,s=64,.*/f32/x2";

TEST(RankFailures, AnExceptionEndsTheCaseWithTheRankAndItsPlaceAndTheOthersGoOn) {
  std::vector<PlannedCase> planned = cases(step_case, 2);
  const std::vector<PlannedCase> more = cases("all_gather/bytes=65536/f32/x2", 2);
  planned.insert(planned.end(), more.begin(), more.end());
  ASSERT_EQ(planned.size(), 2U);

  const Records seen =
      run_on(planned, with_trouble_on_rank_1("block1.up@1", [] { throw BackendError("the device fell over"); }));

  const CaseRecord& broken = seen.at(planned[0].id());
  EXPECT_EQ(broken.verdict, Verdict::error);
  EXPECT_NE(broken.reason.find("rank 1: the device fell over (in 'block1.up@1')"), std::string::npos) << broken.reason;
  EXPECT_EQ(seen.at(planned[1].id()).verdict, Verdict::pass);
}

// In the sequenced step, in which the other rank waits in a collective for the failed one.
TEST(RankFailures, PeersThatWaitForAFailedRankAreReleased) {
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const Records seen = run_on(cases(step_case, 2), with_trouble_on_rank_1("block0.up@1", [runs] {
                                if (++*runs == 2) throw BackendError("gone");  // checked alone first
                              }));
  const CaseRecord& record = seen.begin()->second;
  EXPECT_EQ(record.verdict, Verdict::error);
  EXPECT_NE(record.reason.find("rank 1: gone (in 'block0.up@1') (in phase 'time')"), std::string::npos)
      << record.reason;
}

TEST(RankFailures, ARankThatComesLateEveryTimeIsNamedAndItsResultsStand) {
  using namespace std::chrono_literals;
  // A rank that sleeps before a collective delays all ranks, so it sleeps after the last one. Sleeping half of the time
  // since the last call converges to the duration of a step on any machine.
  const auto last = std::make_shared<std::chrono::steady_clock::time_point>(std::chrono::steady_clock::now());
  const Records seen = run_on(cases(step_case, 2), with_trouble_on_rank_1("clip@1+adamw@1", [last] {
                                const auto since = (std::chrono::steady_clock::now() - *last) / 2;
                                *last = std::chrono::steady_clock::now();
                                std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(since, 20ms, 500ms));
                              }));
  const CaseRecord& record = seen.begin()->second;
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.derived.ranks.has_value());
  EXPECT_EQ(record.derived.ranks->slowest, 1);
  const auto& flags = record.summary.flags;
  EXPECT_NE(std::find(flags.begin(), flags.end(), "rank 1 straggles"), flags.end());
}

TEST(RankFailures, ARankOutOfMemoryIsNamed) {
  const Records seen = run_on(cases(step_case, 2), with_trouble_on_rank_1("logits@1", [] { throw std::bad_alloc(); }));
  const CaseRecord& record = seen.begin()->second;
  EXPECT_EQ(record.verdict, Verdict::error);
  EXPECT_NE(record.reason.find("rank 1: out of memory (in 'logits@1')"), std::string::npos) << record.reason;
}

TEST(RankFailures, AHungRankEndsWithinItsDeadlineWithItsNameAndLosesTheDevice) {
  std::vector<PlannedCase> planned = cases(step_case, 2);
  const std::vector<PlannedCase> more = cases("all_gather/bytes=65536/f32/x2", 2);
  planned.insert(planned.end(), more.begin(), more.end());
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const auto begin = std::chrono::steady_clock::now();

  const Records seen = run_on(planned,
                              with_trouble_on_rank_1("block0.down@1",
                                                     [runs] {
                                                       if (++*runs == 2)
                                                         std::this_thread::sleep_for(std::chrono::hours(1));
                                                     }),
                              2.0);

  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  const CaseRecord& hung = seen.at(planned[0].id());
  EXPECT_EQ(hung.verdict, Verdict::error);
  EXPECT_NE(hung.reason.find("rank 1 has made no progress for 2 s, last in 'block0.down@1'; rank 0 was waiting"),
            std::string::npos)
      << hung.reason;
  // Without isolation no other process can continue.
  EXPECT_EQ(seen.at(planned[1].id()).verdict, Verdict::error);
}

// Reuses memory on both lanes of both ranks; faults are still found.
TEST(RankFailures, AStepOnReusedMemoryIsCheckedLikeAnyOther) {
  const std::vector<PlannedCase> planned = cases(step_case, 2);
  const CaseRecord all = run_on(planned, open_cpu_ranks).begin()->second;
  const Program program = planned.front().workload->build(planned.front().c);
  std::int64_t limit = guarded_bytes(plan_memory(program, 4)) + all.workspace_bytes.value();
  for (int i = 0; i < static_cast<int>(program.storages().size()); ++i) {
    if (program.is_state({i})) limit += guarded_bytes(program.storages()[static_cast<std::size_t>(i)].bytes);
  }
  const auto limited = [&](const std::function<RankSet(int)>& open) {
    return run_on(planned, open, 15.0, limit).begin()->second;
  };
  const CaseRecord right = limited(open_cpu_ranks);
  EXPECT_EQ(right.verdict, Verdict::pass) << right.reason;
  EXPECT_LT(right.memory_bytes, all.memory_bytes);
  EXPECT_NE(right.parity.coverage.find("; memory reused, "), std::string::npos) << right.parity.coverage;

  const CaseRecord wrong = limited([](int count) {
    RankSet set = open_cpu_ranks(count);
    const auto damage = [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
      if (rank == 1) element(tensors[inputs + 1], 0) += 1.0F;
    };
    set.communicator = damaged(std::move(set.communicator), count, damage);
    return set;
  });
  EXPECT_EQ(wrong.verdict, Verdict::fail) << wrong.reason;
}

TEST(RankFailures, ACaseThatDoesNotFitIsSkippedAndNoRankIsOpened) {
  RunOptions options = sim::smoke_options();
  options.memory_limit_bytes = 1000;
  options.open_ranks = [](int, const OwnImplementation*) -> std::unique_ptr<Backend> { throw BackendError("opened"); };
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  sim::Remembering seen;
  run_in_process(*alone, cases("all_gather/bytes=65536/f32/x2", 2), options, seen, seen.stop);
  EXPECT_EQ(seen.records.begin()->second.verdict, Verdict::skipped);
}

TEST(RankFailures, TheMemoryThatCountsIsThatOfTheRanksTogether) {
  for (const std::int64_t available : {std::int64_t{1000}, std::int64_t{1} << 30}) {
    const Records seen = run_on(cases("all_gather/bytes=65536/f32/x2", 2), [available](int count) {
      RankSet set = open_cpu_ranks(count);
      set.device.available_bytes = available;
      return set;
    });
    EXPECT_EQ(seen.begin()->second.verdict, available == 1000 ? Verdict::skipped : Verdict::pass) << available;
  }
}

TEST(RankFailures, RanksThatDoNotStartEndTheirCasesWithTheReason) {
  RunOptions options = sim::smoke_options();
  options.open_ranks = [](int ranks, const OwnImplementation*) -> std::unique_ptr<Backend> {
    throw BackendError("no " + std::to_string(ranks) + " devices here");
  };
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  sim::Remembering seen;
  run_in_process(*alone, cases("bytes=65536/f32/x2", 2), options, seen, seen.stop);
  EXPECT_GE(seen.records.size(), 9U);
  EXPECT_EQ(seen.records.begin()->second.verdict, Verdict::error);
  EXPECT_NE(seen.records.begin()->second.reason.find("no 2 devices here"), std::string::npos);
}

TEST(RankFailures, WithoutABackendForRanksTheCaseIsUnsupported) {
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  sim::Remembering seen;
  run_in_process(*alone, cases("all_gather/bytes=65536/f32/x2", 2), sim::smoke_options(), seen, seen.stop);
  EXPECT_EQ(seen.records.begin()->second.verdict, Verdict::unsupported);
  EXPECT_EQ(seen.records.begin()->second.reason, "the cpu backend runs on one rank only");
}

}  // namespace
}  // namespace gpubench
