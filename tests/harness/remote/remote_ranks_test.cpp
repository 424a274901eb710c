// Ranks in other processes, simulated by threads: the contract of all communicators, and whole cases in the engine.
#include "harness/remote/remote_ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/core/error.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"
#include "tests/harness/remote/memory_processes.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/reference/collective_contract.h"

namespace gpubench {
namespace testing {

RankSet open_in_processes(int ranks) {
  static std::map<int, std::unique_ptr<MemoryProcesses>> all;
  std::unique_ptr<MemoryProcesses>& processes = all[ranks];
  if (processes == nullptr) processes = std::make_unique<MemoryProcesses>(ranks);
  return processes->ranks().open(ranks);
}

INSTANTIATE_TEST_SUITE_P(InProcesses, Collectives,
                         ::testing::Values(RankOpening{"On2Ranks", 2, open_in_processes},
                                           RankOpening{"On3Ranks", 3, open_in_processes}),
                         [](const auto& named) { return named.param.name; });

}  // namespace testing

namespace remote_ranks_test {

using testing::MemoryProcesses;

std::map<std::string, CaseRecord> run_on(MemoryProcesses& processes, const std::string& filter, int ranks,
                                         CheckMode check = CheckMode::sample) {
  Selection selection;
  selection.suites = {"collectives", "transformer", "optimizer"};
  selection.filters = {filter};
  selection.tier = Tier::smoke;
  selection.ranks = {ranks};
  RunOptions options = sim::smoke_options();
  options.check = check;
  options.open_ranks = [&](int count, const OwnImplementation*) {
    return open_rank_group(processes.ranks().open(count));
  };
  sim::Remembering seen;
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  const std::vector<PlannedCase> planned = plan_cases(all_suites(), selection);
  EXPECT_FALSE(planned.empty()) << filter;
  run_in_process(*alone, planned, options, seen, seen.stop);
  return std::move(seen.records);
}

TEST(RemoteRanks, PassEveryCollectiveOfTheSuite) {
  MemoryProcesses processes(2);
  for (const auto& [id, record] : run_on(processes, "^collectives/", 2)) {
    EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
    EXPECT_EQ(record.implementation, "tests:memory") << id;
  }
}

TEST(RemoteRanks, TrainATransformerWithComputeDuringCollectives) {
  MemoryProcesses processes(2);
  const auto records = run_on(processes, "^transformer/bert_train_step/.*/f32", 2);
  EXPECT_FALSE(records.empty());
  for (const auto& [id, record] : records) EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
}

// Tensors judged in process 0 and tensors judged on their rank give the same verdict.
TEST(RemoteRanks, PassWhenEveryElementIsChecked) {
  MemoryProcesses processes(2);
  for (const auto& [id, record] : run_on(processes, "^collectives/all_(gather|reduce)/", 2, CheckMode::full))
    EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
}

TEST(RemoteRanks, AreTheFirstProcessesAndMoreRanksAreUnsupported) {
  MemoryProcesses processes(3);
  for (const auto& [id, record] : run_on(processes, "^collectives/broadcast/", 2))
    EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
  for (const auto& [id, record] : run_on(processes, "^collectives/broadcast/", 4)) {
    EXPECT_EQ(record.verdict, Verdict::unsupported) << id;
    EXPECT_EQ(record.reason, "4 ranks need one process each, but only 3 were started; use mpirun -np 4");
  }
}

TEST(RemoteRanks, OfOneHostCountItsMemoryOnce) {
  MemoryProcesses processes(2, 15.0, [](int rank) {
    ServerSetup setup = testing::usual_setup(rank);
    setup.hello.host = "one";
    return setup;
  });
  const RankSet set = processes.ranks().open(2);
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  EXPECT_EQ(set.device.units, 2);
  EXPECT_NEAR(static_cast<double>(set.device.memory_bytes), static_cast<double>(alone->device().memory_bytes), 2.0);
  EXPECT_EQ(property(set.device, "hosts"), "1");
}

TEST(RemoteRanks, WithSeparateDevicesHaveTheMemoryAndCachesOfAll) {
  MemoryProcesses processes(2, 15.0, [](int rank) {
    ServerSetup setup = testing::usual_setup(rank, [rank](DeviceInfo& device) {
      device.properties.emplace_back("pci_bus_id", "0000:1b:00." + std::to_string(rank));
      device.memory_bytes = 1000 + rank;
      device.cache_bytes = 50;
    });
    setup.hello.host = "one";
    return setup;
  });
  const RankSet set = processes.ranks().open(2);
  EXPECT_EQ(set.device.memory_bytes, 2000);  // ranks times the least of any rank
  EXPECT_EQ(set.device.cache_bytes, 100);
}

TEST(RemoteRanks, ANoteListsTheRanksOfEachOfSeveralHosts) {
  const auto on = [](int rank) {
    ServerSetup setup = testing::usual_setup(rank);
    setup.hello.host = rank == 1 ? "b" : "a";
    return setup;
  };
  MemoryProcesses processes(3, 15.0, on);
  EXPECT_EQ(processes.ranks().notes(), std::vector<std::string>{"ranks of a: 0, 2; of b: 1"});
  EXPECT_EQ(rank_places_text(processes.ranks().places()), "a,b,a");
  MemoryProcesses alone(1, 15.0, on);
  EXPECT_TRUE(alone.ranks().notes().empty());
}

class NoneIsRight final : public ResultJudge {
 public:
  explicit NoneIsRight(std::string label) : label_(std::move(label)) {}
  [[nodiscard]] std::string objection(std::span<const TensorView>, std::span<const TensorView>) const override {
    return label_ + " is wrong";
  }

 private:
  std::string label_;
};

/// A backend whose plans reject one candidate if the judge does.
class Choosing final : public ForwardingBackend {
 public:
  explicit Choosing(std::unique_ptr<Backend> inner) : ForwardingBackend(*inner, nullptr), held_(std::move(inner)) {}
  struct Chosen final : ForwardingPlan {
    Chosen(Plan of, std::string why) : ForwardingPlan(std::move(of)), why_(std::move(why)) {}
    [[nodiscard]] std::vector<std::string> rejected() const override { return {why_}; }
    std::string why_;
  };
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    return std::make_shared<Chosen>(held_->plan(call, tensors, options), options.judge->objection({}, {}));
  }

 private:
  std::unique_ptr<Backend> held_;
};

TEST(RemoteRanks, CandidatesAreJudgedWhereThePlanIsMade) {
  MemoryProcesses processes(2, 15.0, [](int rank) {
    ServerSetup setup = testing::usual_setup(rank);
    setup.open_backend = [] { return std::make_unique<Choosing>(open_cpu_backend(1)); };
    setup.judge = [](const OpCall& call, std::span<const TensorSpec> tensors) {
      return std::make_unique<NoneIsRight>(call.label + " of " + std::to_string(tensors.size()));
    };
    return setup;
  });
  const RankSet set = processes.ranks().open(2);
  Program p;
  const ValueId x = testing::on_rank(p, "x", 0, 2, DType::f32, {4});
  (void)gelu_forward(p, Gelu{}, Math{}, "y", x);
  const Plan plan = set.backends[0]->plan(p.op(0), specs_of_call(p, p.op(0)), {});
  EXPECT_EQ(plan->rejected(), std::vector<std::string>{"y of 2 is wrong"});
}

TEST(RemoteRanks, RunsOfBytesAreReadFromTheRankThatHasThem) {
  MemoryProcesses processes(2);
  const std::unique_ptr<Backend> ranks = open_rank_group(processes.ranks().open(2));
  std::vector<Buffer> buffers;
  for (int rank = 0; rank < 2; ++rank) {
    buffers.push_back(ranks->allocate_on(rank, 8));
    std::vector<std::byte> content;
    for (int i = 0; i < 8; ++i) content.push_back(static_cast<std::byte>(10 * rank + i));
    ranks->write(buffers.back().data(), content);
  }
  const std::byte* const from[] = {buffers[1].data() + 6, buffers[0].data(), buffers[1].data(), buffers[0].data() + 3};
  std::vector<std::byte> read(8);
  ranks->read_runs(read, from);
  const std::vector<int> expected{16, 17, 0, 1, 10, 11, 3, 4};
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(std::to_integer<int>(read[i]), expected[i]) << i;
  const std::byte* const beyond[] = {buffers[0].data() + 7};
  EXPECT_THROW(ranks->read_runs(std::span(read).first(2), beyond), BackendError);
}

TEST(RemoteRanks, TimesAreMeasuredByTheRanks) {
  MemoryProcesses processes(2);
  for (const auto& [id, record] : run_on(processes, "^collectives/all_reduce/", 2)) {
    ASSERT_FALSE(record.rounds.empty()) << id;
    for (const RoundRecord& round : record.rounds) {
      EXPECT_EQ(round.times.wall_ns, round.times.device_ns);
      ASSERT_TRUE(round.times.ranks.has_value());
      EXPECT_EQ(round.times.ranks->size(), 2U);
    }
  }
}

}  // namespace remote_ranks_test
}  // namespace gpubench
