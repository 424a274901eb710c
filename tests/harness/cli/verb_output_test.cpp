#include "harness/cli/verb_output.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <tuple>

#include "harness/report/reader.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace verb_output_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Completion, SaysHowMuchOfWhatWasDone) {
  EXPECT_EQ((Completion{false, 4.04, 120.0, "s"}.interrupted()), "interrupted after 4.04 of 120 s");
  Json json = Json::object();
  Completion{false, 3, 7, "cases"}.add_to(json);
  EXPECT_EQ(json, (Json{{"complete", false}, {"done", 3.0}, {"requested", 7.0}, {"unit", "cases"}}));
}

TEST(Completion, OfItemsInTurnTheInterruptedOneIsNotDone) {
  EXPECT_EQ(completion_of(2, 4, "models", SIGINT).done, 1.0);
  EXPECT_EQ(completion_of(0, 4, "models", SIGINT).done, 0.0);
  const Completion whole = completion_of(4, 4, "models", 0);
  EXPECT_TRUE(whole.complete);
  EXPECT_EQ(whole.done, whole.requested);
}

class InterruptedVerb : public ScratchFolder {};

// The signal is raised before the work begins.
TEST_F(InterruptedVerb, IsNotPassedAndTellsWhatWasDoneOfWhatWasAskedFor) {
  for (const auto& [verb, requested, unit] : {std::tuple{"soak", 30.0, "s"},
                                              {"selftest", 8.0, "steps"},  // six cases, and two more
                                              {"determinism", 6.0, "measurements of cases"}}) {
    Captured cli;
    cli.stop = SIGTERM;
    Words words{verb, "--isolate", "off", "--json", std::string(verb) + ".json"};
    if (verb == std::string("soak")) words.insert(words.end(), {"--minutes", "0.5", "--journal", "j.jsonl"});
    EXPECT_EQ(cli.run(words), 128 + SIGTERM) << cli.err.str();
    EXPECT_THAT(cli.out.str(), HasSubstr(fmt::format("{} interrupted after 0 of {} {}", verb, requested, unit)));
    EXPECT_THAT(cli.out.str(), Not(HasSubstr("passed")));
    const Json json = read_json_file(std::string(verb) + ".json");
    EXPECT_FALSE(json["passed"].get<bool>()) << verb;
    EXPECT_FALSE(json["complete"].get<bool>()) << verb;
    EXPECT_EQ(json["done"], 0.0) << verb;
    EXPECT_EQ(json["requested"], requested) << verb;
  }
  Captured cli;
  (void)cli.run("soak --read j.jsonl");
  EXPECT_THAT(cli.out.str(), HasSubstr("soak interrupted after 0 of 30 s: no fault until then\n"));
}

TEST_F(InterruptedVerb, AWholeOneSaysThatItIsComplete) {
  Captured cli;
  EXPECT_EQ(cli.run("determinism --isolate off --json d.json"), 0) << cli.err.str();
  const Json json = read_json_file("d.json");
  EXPECT_TRUE(json["complete"].get<bool>());
  EXPECT_EQ(json["done"], json["requested"]);
}

}  // namespace verb_output_test
}  // namespace gpubench
