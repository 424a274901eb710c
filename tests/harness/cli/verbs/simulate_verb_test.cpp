#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "suites/suites.h"
#include "tests/harness/cli/captured.h"
#include "tests/paths.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ChildResult simulated(const Words& words) { return ran("simulate" + words, {.suites = all_suites()}); }

Json sizes_of(const Words& words) {
  const ChildResult run = exits(0, simulated(words + "--json -"));
  return run.exit_code == 0 ? parse_json(run.out, "stdout")["sizes"] : Json();
}

const std::string gpt2 = "transformer/gpt2_train_step";
const std::string published = std::string(paths::results) + "/intel-xeon-processor-2-cpus/2026-11-22/report.json";

// 11 s.
TEST(SimulateVerb, AStepOfGpt2RunsOnAThousandRanks) {
  const Json sizes = sizes_of({gpt2, "--ranks", "1,8,1024"});
  ASSERT_EQ(sizes.size(), 3U);
  EXPECT_EQ(sizes[0]["exposed"], 0.0);
  EXPECT_EQ(sizes[2]["by_rank"].size(), 1024U);
  // The same ops on each rank; collectives take longer with more ranks.
  EXPECT_EQ(sizes[1]["by_rank"][0]["compute_s"], sizes[2]["by_rank"][1023]["compute_s"]);
  EXPECT_LT(sizes[1]["end_s"].get<double>(), sizes[2]["end_s"].get<double>());
}

// A stage of a pipeline takes its ops' time; the wait for other stages is the bubble. With as many equal micro-batches
// as stages less than half of the run computes.
TEST(SimulateVerb, RanksShareAStepAsTheyWouldWhereTheyAre) {
  const Json sizes = sizes_of("transformer/llama_train_step --parallel tp=2,pp=2 --parallel dp=4,tp=2 --axis micro=2");
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0]["ranks"], 8);  // the default; each model takes four
  EXPECT_EQ(sizes[0]["modes"], (Json{"tp=2", "pp=2"}));
  EXPECT_EQ(sizes[1]["ranks"], 8);
  EXPECT_EQ(sizes[1]["modes"], (Json{"tp=2"}));
  EXPECT_GT(sizes[0]["exposed"].get<double>(), sizes[1]["exposed"].get<double>());
}

// If ranks called collectives in different orders, any of these would deadlock.
TEST(SimulateVerb, EveryLayoutEndsOnHundredsOfRanks) {
  for (const char* layout : {"tp=4,sp,pp=2", "fsdp=4,tp=2", "cp=4,tp=2,sp", "cp=8,ring,tp=2", "pp=2,cp=2,fsdp=2"}) {
    const ChildResult run =
        simulated({"transformer/llama_train_step", "--axis", "kv=4", "--parallel", layout, "--ranks", "256"});
    EXPECT_EQ(run.exit_code, 0) << layout << run.out << run.err;
  }
}

TEST(SimulateVerb, ARankThatStopsIsNamedAndTheExitCodeIs1) {
  EXPECT_THAT(exits(1, simulated({gpt2, "--ranks", "16", "--stop", "5=0"})).out,
              AllOf(HasSubstr("STUCK: ranks 0, 1, 2, 3, 4, 6 and 9 more in 'gradients.bucket0'"),
                    HasSubstr("waiting for rank 5, which stopped")));
}

TEST(SimulateVerb, ASlowRankMakesTheOthersWait) {
  const Json ranks = sizes_of({gpt2, "--ranks", "8", "--slow", "3=2"})[0]["by_rank"];
  EXPECT_NEAR(ranks[3]["compute_s"].get<double>() / ranks[0]["compute_s"].get<double>(), 2.0, 1e-9);
  EXPECT_GT(ranks[0]["waiting_s"].get<double>(), 0.0);
  EXPECT_EQ(ranks[3]["waiting_s"], 0.0);
}

TEST(SimulateVerb, ASlowLinkMakesCollectivesLonger) {
  const Json usual = sizes_of({gpt2, "--ranks", "8"})[0]["by_rank"][0];
  const Json slow = sizes_of({gpt2, "--ranks", "8", "--slow-link", "3=2"})[0]["by_rank"][0];
  EXPECT_GT(slow["communication_s"].get<double>(), usual["communication_s"].get<double>());
  EXPECT_EQ(slow["compute_s"], usual["compute_s"]);
  EXPECT_EQ(slow["contention_s"], 0.0);
}

TEST(SimulateVerb, ALinkThatIsCutIsNamedAndTheExitCodeIs1) {
  const Words words{gpt2, "--ranks", "4", "--cut", "2=0.0001"};
  EXPECT_THAT(exits(1, simulated(words)).out,
              HasSubstr("STUCK: ranks 0, 1, 2, 3 in 'gradients.bucket0': rank 2's link was cut at 0.0001 s"));
  const Json stuck = parse_json(simulated(words + "--json -").out, "stdout")["sizes"][0]["stuck"];
  EXPECT_EQ(stuck[0]["cut"], nullptr);  // rank 0's compute lane, which waits for its other lane
  EXPECT_EQ(stuck[1]["cut"], 2);
  EXPECT_EQ(stuck[1]["awaited"], Json::array());
}

// Two ranks a node; each reduces its gradients with the same part in other nodes, both at once. An uplink of one
// device's speed gives each half of it; the times alone do not change.
TEST(SimulateVerb, ContentionIsWhatCollectivesTakeLongerThanAlone) {
  const auto size_of = [](const std::string& oversubscription) {
    return sizes_of({"transformer/llama_train_step", "--parallel", "dp=4,tp=2", "--gpus-per-node", "2", "--network",
                     "0.5", "--oversubscribe", oversubscription})[0];
  };
  const Json ample = size_of("1"), shared = size_of("2");
  ASSERT_EQ(shared["by_rank"].size(), 8U);
  EXPECT_GT(shared["end_s"].get<double>(), ample["end_s"].get<double>());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    const auto of = [&](const Json& size, const char* part) { return size["by_rank"][rank][part].get<double>(); };
    EXPECT_EQ(of(ample, "contention_s"), 0.0);
    EXPECT_GT(of(shared, "contention_s"), 0.0);
    EXPECT_NEAR(of(shared, "communication_s") - of(shared, "contention_s"), of(ample, "communication_s"), 1e-12);
    EXPECT_EQ(of(shared, "compute_s"), of(ample, "compute_s"));
    // Two lanes, neither longer than the run.
    EXPECT_LE(of(shared, "compute_s"), of(shared, "end_s"));
    EXPECT_LE(of(shared, "communication_s") + of(shared, "waiting_s"), of(shared, "end_s") + 1e-12);
  }
  EXPECT_EQ(size_of("2"), shared);
}

// A published report: one rank takes the step's time; 64 take no less.
TEST(SimulateVerb, OpsTakeWhatAReportSaysThatTheyTook) {
  double step_s = 0.0;
  for (const CaseRecord& record : read_report(published).cases) {
    if (record.id == gpt2 + "/b=2,s=64,layers=2,h=128,heads=4,vocab=512/f32/x1")
      step_s = 1e-9 * record.summary.median_ns;
  }
  const Json sizes = sizes_of({gpt2, "--ranks", "1,64", "--from", published});
  EXPECT_EQ(sizes[0]["measured_ops"], sizes[0]["steps"]);
  EXPECT_NEAR(sizes[0]["end_s"].get<double>() / step_s, 1.0, 1e-6);
  EXPECT_GT(sizes[1]["end_s"].get<double>(), step_s);
  EXPECT_THAT(simulated({"moe/mixtral_train_step", "--from", published}).err, HasSubstr("expected a report of"));
}

TEST(SimulateVerb, RefusesWhatIsWrong) {
  const auto refusal = [](const Words& words) { return refusal_of("simulate" + words, {.suites = all_suites()}); };
  EXPECT_THAT(refusal({}), HasSubstr("simulate needs a case"));
  EXPECT_THAT(refusal("gemm/matmul"), HasSubstr("runs on one rank only"));
  for (const auto& [words, said] : {std::pair{"--slow 8=2", "--slow: there is no rank 8 of 8"},
                                    {"--slow-link 8=2", "--slow-link: there is no rank 8 of 8"},
                                    {"--cut 9=0", "--cut: there is no rank 9 of 8"},
                                    {"--cut 3", "--cut: '3' is not RANK=NUMBER"},
                                    {"--slow-link 3=-1", "--slow-link: '3=-1' is not RANK=NUMBER"},
                                    {"--oversubscribe 0.5", "'0.5' is no number from 1 such as 2"},
                                    {"--stop x=2", "is not RANK=NUMBER"},
                                    {"--ranks 0", "whole number from 1 to 4096"},
                                    {"--ranks 9999", "4096"},
                                    {"--parallel ep=2", "--parallel ep=2: the ranks of"},
                                    {"--parallel tp=2 --ranks 3", "needs a multiple of 2"},
                                    {"--parallel dp=2,tp=2 --ranks 4", "both set the number of ranks"},
                                    {"--parallel dp=4096,tp=2", "8192 ranks; expected at most 4096"},
                                    {"--parallel tp=100000,pp=100000", "expected at most 1048576"},
                                    {"--parallel pp=4", "on 8 ranks: "}})
    EXPECT_THAT(refusal(Words(gpt2) + words), HasSubstr(said)) << words;
  EXPECT_THAT(refusal(Words{gpt2, "--parallel", "tp=2", "--from", published}), HasSubstr("ranks run parts of them"));
}

}  // namespace
}  // namespace gpubench
