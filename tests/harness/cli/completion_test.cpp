// Completion in the shells that are installed, and the manual page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/shell.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const std::vector<std::string> suites{"gemm", "conv", "memory"};

// bash's completions of the last word; the one before is as readline splits it.
std::vector<std::string> offered(const Words& words) {
  const TemporaryFile script("completion.bash", completion_text(Shell::bash, suites) + R"(
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_gpubench
printf '%s\n' "${COMPREPLY[@]}"
)");
  std::string command = "bash --norc --noprofile " + script.path();
  for (const std::string& word : words) command += " '" + word + "'";
  const ShellResult result = shell(command);
  EXPECT_EQ(result.status, 0) << result.out;
  return Words(result.out);
}

class BashCompletion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_installed("bash")) GTEST_SKIP() << "bash is not installed";
  }
};

TEST_F(BashCompletion, OffersVerbsFirst) {
  EXPECT_THAT(offered({"gpubench", ""}),
              AllOf(Contains("run"), Contains("gate"), Contains("help"), Not(Contains("man"))));
  EXPECT_THAT(offered("gpubench exp"), ElementsAre("explain", "export"));
}

TEST_F(BashCompletion, OffersTheFlagsOfTheVerb) {
  EXPECT_THAT(offered("gpubench --ju"), ElementsAre("--junit"));
  EXPECT_THAT(offered("gpubench gate --str"), ElementsAre("--strict"));
  EXPECT_THAT(offered("gpubench validate --tier"), IsEmpty());
  EXPECT_THAT(offered("gpubench run --work"), IsEmpty());  // hidden
}

TEST_F(BashCompletion, OffersTheWordsOfAChoiceWithAndWithoutAnEqualsSign) {
  EXPECT_THAT(offered({"gpubench", "--tier", ""}), ElementsAre("smoke", "quick", "standard", "large"));
  EXPECT_THAT(offered("gpubench run --tier = st"), ElementsAre("standard"));
  EXPECT_THAT(offered({"gpubench", "list", "--format", ""}), ElementsAre("table", "json"));
  EXPECT_THAT(offered("gpubench export --format gb"), ElementsAre("gbench", "gbench-summary"));
  EXPECT_THAT(offered("gpubench --github o"), ElementsAre("on", "off"));
}

TEST_F(BashCompletion, CompletesTheLastOfAList) {
  EXPECT_THAT(offered({"gpubench", "--suite", ""}), ElementsAre("gemm", "conv", "memory", "all"));
  EXPECT_THAT(offered("gpubench --suite gemm,me"), ElementsAre("gemm,memory"));
}

TEST_F(BashCompletion, OffersFilesWhereAFileIsMeant) {
  const TemporaryFile report("offered.json", "{}");
  const std::string start = report.path().substr(0, report.path().size() - 3);
  for (const Words& words : {Words{"gpubench", "validate", start},
                             {"gpubench", "--junit", start},
                             {"gpubench", "--pin", start},
                             {"gpubench", "gate", "--baseline", start},
                             {"gpubench", "compare", start}})
    EXPECT_THAT(offered(words), ElementsAre(report.path())) << joined(words, " ");
  EXPECT_THAT(offered({"gpubench", "--seed", start}), IsEmpty());
  EXPECT_THAT(offered({"gpubench", "--out", start}), IsEmpty());  // folders only
}

TEST(ZshCompletion, IsAScriptThatZshTakes) {
  const std::string text = completion_text(Shell::zsh, suites);
  EXPECT_THAT(text, AllOf(HasSubstr("'*--tier[smoke, quick"), HasSubstr(":(smoke quick standard large)'"),
                          HasSubstr("'*--junit[also as JUnit XML"), HasSubstr(":_files'")));
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const TemporaryFile script("_gpubench", text);
  const ShellResult result = shell("zsh -n " + script.path());
  EXPECT_EQ(result.status, 0) << result.out;
}

TEST(FishCompletion, OffersWhatBashDoes) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  const TemporaryFile script("gpubench.fish", completion_text(Shell::fish, suites));
  const auto asked = [&](const std::string& line) {
    const ShellResult result =
        shell("fish --no-config -c 'source " + script.path() + "; complete -C \"" + line + "\"' | cut -f1");
    EXPECT_EQ(result.status, 0) << result.out;
    return Words(result.out);
  };
  EXPECT_THAT(asked("gpubench exp"), ElementsAre("export"));
  EXPECT_THAT(asked("gpubench --tier "), UnorderedElementsAre("smoke", "quick", "standard", "large"));
  EXPECT_THAT(asked("gpubench --suite gemm,me"), ElementsAre("gemm,memory"));
  EXPECT_THAT(asked("gpubench gate --stri"), ElementsAre("--strict"));
  EXPECT_THAT(asked("gpubench export --format gb"), UnorderedElementsAre("gbench", "gbench-summary"));
}

// The parser's error for another word lists its words.
TEST(Flags, ChoicesAreWhatTheParserTakes) {
  int choices = 0;
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    for (const Flag& flag : verb.flags(suites)) {
      if (!flag.is_visible()) continue;
      // Suites, recipes and devices are resolved when cases are planned; a cache is off or any folder; a deadline may
      // be seconds.
      const bool later = flag.long_name == "--suite" || flag.long_name == "--precision" ||
                         flag.long_name == "--device" || flag.long_name == "--tuning-cache" ||
                         flag.long_name == "--deadline";
      if (flag.words.empty() || later) continue;
      Words words{std::string(verb.name), flag.long_name, "nosuchword"};
      if (verb.name == "compare" || verb.name == "export") words.insert(words.end(), {"a", "b"});
      EXPECT_THAT(thrown_text<UsageError>([&] { (void)parse_options(words); }),
                  HasSubstr("'nosuchword' is not one of " + joined(flag.words)))
          << joined(words, " ");
      ++choices;
    }
  }
  EXPECT_GE(choices, 15);
}

TEST(Completion, IsPrintedForTheShellThatIsNamed) {
  Captured cli;
  EXPECT_EQ(cli.run("completion bash"), 0);
  EXPECT_THAT(cli.out.str(), HasSubstr("words='sim all'"));
  EXPECT_EQ(cli.run("completion tcsh"), 2);
  EXPECT_THAT(cli.err.str(), HasSubstr("completion: 'tcsh' is not one of bash, zsh, fish"));
  EXPECT_EQ(cli.run("completion"), 2);
}

TEST(Completion, ShowsTheSummaryOfEveryVerb) {
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    ASSERT_FALSE(verb.summary.empty()) << verb.name;
    const std::string_view summary = verb.summary.substr(0, verb.summary.find('\''));  // shells escape it
    EXPECT_THAT(completion_text(Shell::zsh, suites), HasSubstr(fmt::format("'{}:{}", verb.name, summary)));
    EXPECT_THAT(completion_text(Shell::fish, suites), HasSubstr(fmt::format("-a {} -d '{}", verb.name, summary)));
  }
}

TEST(ManualPage, HoldsEveryFlagThatHelpShows) {
  std::string page = manual_page("0.0.0");
  for (std::size_t at = page.find("\\-"); at != std::string::npos; at = page.find("\\-", at)) page.erase(at, 1);
  const std::regex flag("(^|\\n)  (-[a-z], )?(--[a-z-]+)");
  int flags = 0;
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    EXPECT_THAT(page, HasSubstr(".SS gpubench " + std::string(verb.name) + "\n"));
    const std::string help = full_help_text(verb.name);
    for (std::sregex_iterator at(help.begin(), help.end(), flag), end; at != end; ++at, ++flags)
      EXPECT_THAT(page, HasSubstr("\\fB" + (*at)[3].str() + "\\fR")) << verb.name;
  }
  EXPECT_GE(flags, 60);
}

TEST(ManualPage, FormatsWithoutAComplaint) {
  const TemporaryFile page("gpubench.1", manual_page("0.0.0"));
  if (!is_installed("groff") && !is_installed("mandoc")) GTEST_SKIP() << "neither groff nor mandoc is installed";
  if (is_installed("groff")) {
    EXPECT_EQ(shell("groff -man -ww -z " + page.path()).out, "");
  }
  // The page has no date, for reproducible builds.
  if (is_installed("mandoc")) {
    EXPECT_EQ(shell("mandoc -Tlint " + page.path() + " | grep -v 'missing date'").out, "");
  }
}

}  // namespace
}  // namespace gpubench
