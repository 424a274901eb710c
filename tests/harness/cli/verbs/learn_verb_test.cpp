// gpubench learn with the real suites on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace learn_verb_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LearnVerb : public ScratchFolder {
 protected:
  /// With a script: on the device of slow_program.cpp.
  static ChildResult learn(const Words& words, const std::string& script = "") {
    const Words program{script.empty() ? paths::program : paths::slow_program};
    return run_child(program + "learn --device cpu" + words, {{"GPUBENCH_SLOW", script}});
  }
  static ChildResult learn_tiny(const Words& words, const std::string& script = "") {
    return learn(words + "--axis s=8 --axis h=32 --axis layers=1 --axis f=32 --axis vocab=32", script);
  }
};

// 25 s: two recipes trained for 16 steps each, each with three broken ones.
TEST_F(LearnVerb, ShowsSingleStepsCurvesAndWhatIsBrokenOnPurpose) {
  EXPECT_THAT(exits(0, learn("--quick --precision f32,f16 --json l.json --svg charts -o l.html", "lacks=f16")).out,
              AllOf(HasSubstr("transformer/gpt2_train_step/"), HasSubstr("no loss scaling"),
                    HasSubstr("6 of 6 broken recipes detected by single steps"),
                    HasSubstr("Losses alone are no evidence"), HasSubstr("VERDICT  PASS")));
  const Json json = parse_json(content_of("l.json"), "l.json");
  EXPECT_EQ(json["schema"], "gpubench-learn");
  EXPECT_EQ(json["verdict"], "pass");
  ASSERT_EQ(json["models"].size(), 1);
  const Json& model = json["models"][0];
  ASSERT_EQ(model["recipes"].size(), 2);
  EXPECT_EQ(model["recipes"][0]["run_by"], "device");
  EXPECT_EQ(model["recipes"][1]["run_by"], "emulated");
  EXPECT_NE(model["recipes"][1]["lacking"], "");
  for (const Json& recipe : model["recipes"]) {
    ASSERT_EQ(recipe["steps"].size(), 10);
    for (const Json& step : recipe["steps"]) {
      EXPECT_TRUE(step["passed"].get<bool>());
      EXPECT_LE(step["error_over_allowed"].get<double>(), 1.0);
      EXPECT_GT(step["tensors"].get<int>(), 100);
    }
    EXPECT_EQ(recipe["losses"].size(), 16);
    EXPECT_EQ(recipe["band_low"].size(), 16);
  }
  EXPECT_EQ(model["broken"].size(), 6);  // three of f32, three of f16
  for (const Json& broken : model["broken"]) EXPECT_TRUE(broken["told_apart"].get<bool>()) << broken["name"];
  for (const char* chart :
       {"gpt2-loss", "gpt2-distance", "gpt2-steps", "gpt2-f32-broken-steps", "gpt2-f16-broken-loss"})
    EXPECT_THAT(content_of(std::string("charts/") + chart + ".svg"), HasSubstr("<svg")) << chart;
  EXPECT_THAT(content_of("l.html"), AllOf(HasSubstr("Training against fp64: PASS"), HasSubstr("f16 is emulated: "),
                                          HasSubstr("<svg"), HasSubstr("script-src 'sha256-")));
}

TEST_F(LearnVerb, AWrongDeviceFailsByStepAndTensor) {
  const ChildResult result = exits(1, learn("--quick --precision f32 --inject-error block1.down.db=drop"));
  EXPECT_THAT(result.err, HasSubstr("INJECTED ERROR"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("FAIL"), HasSubstr("step 1: 'd(block1.down.w)"), HasSubstr("is allowed"),
                                HasSubstr("VERDICT  FAIL")));
}

TEST_F(LearnVerb, WritesOneDocumentToStandardOutputAndNothingElse) {
  const ChildResult named = learn_tiny("llama_train_step --steps 8 --precision f32 --json -");
  const Json json = parse_json(named.out, "stdout");
  EXPECT_EQ(json["models"][0]["model"],
            "transformer/llama_train_step/b=2,s=8,layers=1,h=32,heads=4,kv=2,f=32,vocab=32");
  EXPECT_EQ(json["models"][0]["exact_losses"].size(), 8);
  EXPECT_THAT(named.err, HasSubstr("VERDICT"));
}

TEST_F(LearnVerb, ACrashIsNamedAndWhatWasFoundBeforeIsKept) {
  EXPECT_THAT(exits(3, learn_tiny("llama_train_step --precision f32,bf16 --steps 24 --json l.json",
                                  "kill_in_plan@block0.gate_up#2"))
                  .out,
              AllOf(HasSubstr("1 recipes of 1 models on the device, 10 steps judged"),
                    HasSubstr("learn ended after 0 of 1 models: its process ended by signal 9 (Killed) in "
                              "transformer/llama_train_step/"),
                    HasSubstr("/bf16/x1: preparing\nVERDICT  SKIPPED\n")));
  EXPECT_THAT(parse_json(content_of("l.json"), "l.json")["trouble"].get<std::string>(), HasSubstr("signal 9"));
}

// The last two train in f16, which one device lacks: results of the textbook alone must not pass.
TEST_F(LearnVerb, RefusesWhatIsNoWorkloadOrShowsNothing) {
  EXPECT_THAT(exits(2, learn("gpt2_trian_step")).err,
              HasSubstr("learn: no workload or case is called 'gpt2_trian_step'; did you mean "
                        "'gpt2_train_step'?"));
  EXPECT_EQ(learn("--steps 7").exit_code, 2);
  EXPECT_THAT(learn("--steps 7").err, HasSubstr("--steps: '7' is not a whole number from 8"));
  EXPECT_EQ(learn("--suite gemm").exit_code, 5);
  const ChildResult few = learn("vit_train_step");  // two images at tier smoke
  EXPECT_EQ(few.exit_code, 5);
  EXPECT_THAT(few.err, HasSubstr("is left out: a batch of 2 rows is too small, 8 at least: --batch"));
  const Words small("mixtral_train_step --steps 24 --precision f16");
  EXPECT_EQ(learn_tiny(small).exit_code, 0);
  const ChildResult emulated = exits(5, learn_tiny(small, "lacks=f16"));  // ran only in the textbook
  EXPECT_THAT(emulated.out, AllOf(HasSubstr("(PASS)"), HasSubstr("VERDICT  UNSUPPORTED")));
}

}  // namespace learn_verb_test
}  // namespace gpubench
