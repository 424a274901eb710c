#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PredictVerb : public ScratchFolder {
 protected:
  Captured cli_;
  /// MLPerf v5.0's llama, from its two smallest steps.
  int llama(Words more) {
    return cli_.run(
        "predict --model llama3-405b --parallel tp=8,pp=8,cp=2,vp=8 --measured 512:1152=55.12,2048:1152=14.22" + more);
  }
};

TEST_F(PredictVerb, WithoutAModelPublishedSeriesAreScored) {
  EXPECT_EQ(cli_.run("predict"), 0);
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("MLPerf v5.0, Llama 3.1 405B"), HasSubstr("8,192"),
                                    HasSubstr("7 predictions with other work: "), HasSubstr("at worst")));
}

// MLPerf v5.0 has 8,192 devices with a batch of 1,536 at 292.2 sequences a second: 5.26 s.
TEST_F(PredictVerb, AStepOfMlperfIsPredictedWithin3Percent) {
  EXPECT_EQ(llama("--gpus 8192 --global-batch 1536 --json -"), 0) << cli_.err.str();
  const Json document = parse_json(cli_.out.str(), "stdout");
  const Json& size = document["sizes"][0];
  EXPECT_EQ(size["devices"], 8192);
  EXPECT_NEAR(size["step_s"].get<double>(), 1536.0 / 292.2, 0.03 * 1536.0 / 292.2);
  EXPECT_LT(size["step_low_s"].get<double>(), 1536.0 / 292.2);
  EXPECT_GT(size["step_high_s"].get<double>(), 1536.0 / 292.2);
}

TEST_F(PredictVerb, DaysAndPriceAreOfTheTokens) {
  EXPECT_EQ(llama("--gpus 16384,32768 --global-batch 2048 --tokens 15e12 --price-per-hour 2 --json p.json --svg p.svg"),
            0);
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("days"), HasSubstr("price"), HasSubstr("extrapolated: beyond 16384")));
  const Json document = parse_json(content_of("p.json"), "p.json");
  const Json& size = document["sizes"][0];
  const double seconds = 15e12 / size["tokens_per_s"].get<double>();
  EXPECT_NEAR(size["days"].get<double>() / (seconds / 86400.0), 1.0, 1e-12);
  EXPECT_THAT(content_of("p.svg"),
              AllOf(HasSubstr("<svg"), HasSubstr("llama3-405b on more devices"), HasSubstr("16,384 GPUs:")));
  EXPECT_NEAR(size["price"].get<double>() / (seconds / 3600.0 * 16384.0 * 2.0), 1.0, 1e-12);
}

TEST_F(PredictVerb, WhatDoesNotFitIntoMemoryIsTold) {
  EXPECT_EQ(llama("--gpus 2048 --global-batch 2048 --memory-size 100000 --json p.json"), 0);
  EXPECT_THAT(cli_.out.str(), Not(HasSubstr("run again")));
  const Json size = parse_json(content_of("p.json"), "p.json")["sizes"][0];
  const double total = size["memory_bytes"], least = size["memory_bytes_if_recomputed"];
  EXPECT_GT(total, least);
  const auto said = [&](double bytes) {
    const ChildResult cli =
        exits(0, ran({"predict", "--model", "llama3-405b", "--parallel", "tp=8,pp=8,cp=2,vp=8", "--rate", "400",
                      "--gpus", "2048", "--global-batch", "2048", "--memory-size", std::to_string(bytes / 1e9)}));
    return cli.out;
  };
  EXPECT_THAT(said(0.5 * (total + least)), HasSubstr("GB if layers are run again"));
  EXPECT_THAT(said(0.5 * least), HasSubstr("does not fit"));
}

// 512 replicas of one device: 6 x 8.03e9 bytes, 7/8 of them in the node, 31/32 of an eighth within 256 devices, half of
// a 256th beyond.
TEST_F(PredictVerb, TellsWhichLevelOfTheNetworkIsSlowest) {
  EXPECT_EQ(cli_.run("predict --model llama3-8b --gpus 512 --rate 400 --network 256:50,1 --json p.json"), 0)
      << cli_.err.str();
  EXPECT_THAT(cli_.out.str(),
              AllOf(HasSubstr("450 GB/s within 8 devices, 50 within 256, 1 beyond"), HasSubstr("to 256")));
  const Json network = parse_json(content_of("p.json"), "p.json")["sizes"][0]["network"];
  EXPECT_EQ(network["slowest"], "to 256");
  const double bytes = 6.0 * 8.03e9,
               expected[] = {bytes * 7 / 8 / 450e9, bytes / 8 * 31 / 32 / 50e9, bytes / 256 / 2 / 1e9};
  ASSERT_EQ(network["levels"].size(), 3U);
  double sum = network["latency_s"];
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(network["levels"][i]["seconds"].get<double>(), expected[i], 1e-3 * expected[i]);
    sum += network["levels"][i]["seconds"].get<double>();
  }
  EXPECT_EQ(network["levels"][1]["devices"], 256);
  EXPECT_TRUE(network["levels"][2]["devices"].is_null());
  EXPECT_NEAR(network["seconds"].get<double>(), sum, 1e-9);
}

TEST_F(PredictVerb, AReplicatedOptimizerTakesMoreMemory) {
  const auto size = [](const char* optimizer) {
    const ChildResult cli = exits(0, ran({"predict", "--model", "llama3-8b", "--gpus", "64", "--rate", "400",
                                          "--optimizer", optimizer, "--json", "-"}));
    return parse_json(cli.out, "stdout")["sizes"][0];
  };
  const double each = 12.0 * 8.03e9;
  EXPECT_NEAR(size("replicated")["memory_bytes"].get<double>() - size("sharded")["memory_bytes"].get<double>(),
              each * 63.0 / 64.0, 1e-3 * each);
}

TEST_F(PredictVerb, ASizeThatDoesNotFitIsALineAndNoneAtAllAnError) {
  EXPECT_EQ(llama("--gpus 2048,2100 --global-batch 2048"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("2100 devices are not a multiple of the 128 devices of a replica"));
  EXPECT_THAT(refusal_of("predict --model llama3-8b --rate 400 --parallel tp=8 --gpus 12"),
              HasSubstr("--gpus: 12 devices are not a multiple"));
}

TEST_F(PredictVerb, RefusesWhatIsWrongInOneSentence) {
  const auto refusal = [](const Words& words) { return refusal_of("predict" + words); };
  EXPECT_THAT(refusal("--model llama3-405"), HasSubstr("did you mean 'llama3-405b'?"));
  EXPECT_THAT(refusal("--model llama3-8b --rate 400"), HasSubstr("needs --gpus"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8"), HasSubstr("needs one of --measured"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --rate 400 --measured 8=1"), HasSubstr("needs one of --measured"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8.. --rate 400"), HasSubstr("--gpus: '8..' is not a size"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --rate 0"), HasSubstr("is no number from 1e-9 to 1e9"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --rate 1 --parallel dp=2"),
              HasSubstr("--parallel: 'dp=2' is not an axis"));
  const auto on_network = [&](const char* words, const char* in_node = "8") {
    return refusal(
        {"--model", "llama3-8b", "--gpus", "8", "--rate", "1", "--network", words, "--gpus-per-node", in_node});
  };
  EXPECT_THAT(refusal("--model llama3-8b --optimizer shared"), HasSubstr("--optimizer"));
  EXPECT_THAT(on_network("0"), HasSubstr("--network: '0' is not GB/s"));
  EXPECT_THAT(on_network("256,50"), HasSubstr("--network: '256' is not GPUS:GB/S"));
  EXPECT_THAT(on_network("256:50"), HasSubstr("--network: '256:50' is not GB/s"));
  EXPECT_THAT(on_network("256:50,25", "72"), HasSubstr("--network: '256:50' is not a larger multiple of the 72 GPUs"));
  for (const char* word : {"8", "=1", "8=", "8=-1", "8=nan", "8:=1", ":8=1", "x=1", "9223372036854775807=1"})
    EXPECT_THAT(refusal({"--model", "llama3-8b", "--gpus", "8", "--measured", word}), HasSubstr("is not GPUS=SECONDS"))
        << word;
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --measured 8=1e-6"), HasSubstr("is shorter than"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --measured 8=1,16=1,32=1"), HasSubstr("expected one or two"));
  EXPECT_THAT(refusal("--model llama3-8b --gpus 8 --from none.json"), HasSubstr("none.json"));
}

TEST_F(PredictVerb, AReportWithoutATrainingStepGivesNoRate) {
  ASSERT_EQ(cli_.run("run --filter sim/first/n=8/f32 --json r.json --progress none --isolate off"), 0)
      << cli_.err.str();
  EXPECT_THAT(refusal_of("predict --model llama3-8b --gpus 8 --from r.json"),
              HasSubstr("no training step of one device that passed"));
}

}  // namespace
}  // namespace gpubench
