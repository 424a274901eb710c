#include "harness/cli/options.h"
#include "harness/cli/verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "harness/core/error.h"
#include "tests/harness/cli/child.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Options parsed(const Words& words) { return parse_options(words); }

std::string refusal(const Words& words) {
  return thrown_text<UsageError>([&] { (void)parse_options(words); }, "accepted");
}

TEST(ParseOptions, WithoutAVerbMeansRun) {
  EXPECT_EQ(parsed({}).verb->name, "run");
  EXPECT_EQ(parsed("--suite gemm").verb->name, "run");
  EXPECT_EQ(parsed("run --suite gemm").verb->name, "run");
  EXPECT_EQ(parsed("list").verb->name, "list");
  EXPECT_EQ(parsed("doctor").verb->name, "doctor");
}

TEST(ParseOptions, DefaultsAreThoseOfTheHelpText) {
  const Options o = parsed({});
  EXPECT_FALSE(o.tier.has_value());
  EXPECT_EQ(o.device, "auto");
  EXPECT_EQ(o.run.seed, 42U);
  EXPECT_EQ(o.run.check, CheckMode::sample);
  EXPECT_TRUE(o.isolate);
  EXPECT_FALSE(o.dry_run);
  EXPECT_FALSE(o.run.deterministic);
  EXPECT_FALSE(o.run.energy);
  EXPECT_TRUE(o.run.breakdown);
  EXPECT_EQ(o.run.locked_clock_mhz, 0);
  EXPECT_FALSE(o.tuning_cache.has_value());
  EXPECT_FALSE(o.out.has_value());
  EXPECT_FALSE(o.json.has_value());
  EXPECT_FALSE(o.is_worker());
}

TEST(ParseOptions, ReadsEveryFlag) {
  const Options o = parsed(
      "--suite gemm,conv --suite=memory --tier large --filter ^a --filter b,c --exclude x --precision f32,bf16 --batch "
      "1,8 --axis k=16,32 --axis=pad=0 --device cpu --seed 18446744073709551615 --check full --isolate off --dry-run "
      "--deterministic --energy --breakdown off --trust-libraries --locked-clock 1980 --tuning-cache t --out o --json "
      "- --detail full --color never --progress lines -q -v -v");
  EXPECT_THAT(o.selection.suites, ElementsAre("gemm", "conv", "memory"));
  EXPECT_EQ(o.tier, Tier::large);
  EXPECT_THAT(o.selection.filters, ElementsAre("^a", "b,c"));
  EXPECT_THAT(o.selection.excludes, ElementsAre("x"));
  EXPECT_THAT(o.selection.precisions, ElementsAre("f32", "bf16"));
  EXPECT_THAT(o.selection.batches, ElementsAre(1, 8));
  ASSERT_EQ(o.selection.axes.size(), 2U);
  EXPECT_EQ(o.selection.axes[0].first, "k");
  EXPECT_THAT(o.selection.axes[0].second, ElementsAre(16, 32));
  EXPECT_THAT(o.selection.axes[1].second, ElementsAre(0));
  EXPECT_EQ(o.run.seed, 18446744073709551615ULL);
  EXPECT_EQ(o.run.check, CheckMode::full);
  EXPECT_FALSE(o.isolate);
  EXPECT_FALSE(o.run.breakdown);
  EXPECT_TRUE(o.dry_run);
  EXPECT_TRUE(o.run.deterministic);
  EXPECT_TRUE(o.run.energy);
  EXPECT_TRUE(o.trust_libraries);
  EXPECT_EQ(o.run.locked_clock_mhz, 1980);
  EXPECT_EQ(o.tuning_cache, "t");
  EXPECT_EQ(o.out, "o");
  EXPECT_EQ(o.json, "-");
  EXPECT_EQ(o.detail, Detail::full);
  EXPECT_EQ(o.color, ColorMode::never);
  EXPECT_EQ(o.progress, ProgressMode::lines);
  EXPECT_TRUE(o.quiet);
  EXPECT_TRUE(o.verbose);
}

TEST(ParseOptions, AListFlagTakesOneWordEach) {
  EXPECT_THAT(refusal("--suite gemm conv"), HasSubstr("unexpected argument 'conv'"));
}

TEST(ParseOptions, TheLastOfAFlagCounts) {
  EXPECT_EQ(parsed("--device auto --device cpu").device, "cpu");
  EXPECT_EQ(parsed("--seed 1 --seed 2").run.seed, 2U);
  EXPECT_THAT(parsed({"run", "--device", "cpu", "--device", "cpu"}).rerun_words, ElementsAre("--device", "cpu"));
}

TEST(ParseOptions, UnknownVerbsAndFlagsNameTheNearest) {
  EXPECT_THAT(refusal("lst"), AllOf(HasSubstr("unknown verb 'lst'; verbs: run, list, explain, "),
                                    HasSubstr(", version; did you mean 'list'?"), Not(HasSubstr("probe"))));
  EXPECT_THAT(refusal("--suit gemm"), HasSubstr("unknown flag '--suit' of run; did you mean '--suite'?"));
  EXPECT_THAT(refusal("--sede=3"), HasSubstr("did you mean '--seed'?"));
  EXPECT_THAT(refusal("list --chek off"), HasSubstr("unknown flag '--chek' of list"));
  EXPECT_THAT(refusal("doctor --suite gemm"), HasSubstr("unknown flag '--suite' of doctor"));
  EXPECT_THAT(refusal("compare --price-per-hour 2"),
              HasSubstr("of compare; predict, report have it; see gpubench compare --help-all"));
  EXPECT_THAT(refusal("-z"), HasSubstr("unknown flag '-z'"));
  EXPECT_THAT(refusal({""}), HasSubstr("unknown verb ''"));
  EXPECT_THAT(refusal("--suite gemm list"), HasSubstr("a verb comes first"));
}

TEST(ParseOptions, HiddenFlagsAreNeverSuggested) {
  EXPECT_THAT(refusal("--worker-inpt 3"), ::testing::Not(HasSubstr("worker-input")));
}

TEST(ParseOptions, ADeadlineIsSecondsOffOrEachThingsOwn) {
  const auto deadline = [](const Words& words) { return parse_options(words).deadline_s; };
  EXPECT_EQ(deadline("run"), std::nullopt);
  EXPECT_EQ(deadline("run --deadline auto"), std::nullopt);
  EXPECT_EQ(deadline("doctor --deadline off"), 0.0);
  EXPECT_EQ(deadline("list --deadline 2.5"), 2.5);
}

TEST(ParseOptions, UnknownValuesNameTheKnownOnesAndTheNearest) {
  EXPECT_EQ(refusal("--tier smke"),
            "--tier: 'smke' is not one of smoke, quick, standard, large; did you mean 'smoke'?");
  EXPECT_THAT(refusal("--check none"), HasSubstr("--check: 'none' is not one of off, sample, bitwise, own, full"));
  EXPECT_THAT(refusal("--isolate yes"), HasSubstr("--isolate: 'yes' is not one of on, off"));
  for (const char* word : {"never", "0", "-1", "nan", "1e300", "30s"})
    EXPECT_THAT(refusal({"--deadline", word}), HasSubstr("is not auto, off or a number of seconds such as 120"))
        << word;
  EXPECT_THAT(refusal("--color alway"), HasSubstr("did you mean 'always'?"));
  EXPECT_THAT(refusal("--progress dots"), HasSubstr("not one of auto, bar, lines, none"));
  EXPECT_THAT(refusal("list --format xml"), HasSubstr("not one of table, json"));
}

TEST(ParseOptions, OwnOpsAreThoseOfAnImplementation) {
  EXPECT_THAT(refusal("--check own"), HasSubstr("--check own: own means the ops of an implementation under test"));
}

TEST(ParseOptions, NumbersAreReadWholeOrRefused) {
  for (const char* seed : {"-1", "1.5", "x", "1x", "0x10", " 1", "18446744073709551616", "1e3"})
    EXPECT_THAT(refusal({std::string("--seed=") + seed}),
                ::testing::AnyOf(HasSubstr("is not a whole number"), HasSubstr("--seed")))
        << seed;
  EXPECT_EQ(refusal("--batch 0"), "--batch: '0' is not a whole number from 1");
  EXPECT_EQ(refusal("--batch 9223372036854775808"), "--batch: '9223372036854775808' is not a whole number from 1");
  EXPECT_EQ(
      refusal("--parallel tp"),
      "--parallel: 'tp' is not tp=N, fsdp=N, ep=N, cp=N, pp=N, vp=N, dp=N, sp or ring, as in --parallel dp=2,tp=4");
  EXPECT_EQ(refusal("--parallel tp=0"), "--parallel tp: '0' is not a whole number from 1");
  EXPECT_EQ(refusal("--parallel xp=2"),
            "--parallel: axis 'xp' is not known; known: tp (tensors), fsdp (weights), ep (experts), cp (sequences), pp "
            "(layers), vp "
            "(parts of each pp), dp (batches)");
  EXPECT_EQ(refusal("--parallel dp=2,ring"), "--parallel: ring passes keys round the ranks of cp; give cp=N as well");
  EXPECT_EQ(refusal("--parallel dp=2,sp"), "--parallel: sp scatters tokens over the ranks of tp; give tp=N as well");
  EXPECT_EQ(refusal("--parallel dp=2,vp=2"), "--parallel: vp cuts the stages of pp into parts; give pp=N as well");
  EXPECT_EQ(refusal("--axis k"), "--axis: 'k' is not NAME=N,... as in --axis k=256,512");
  EXPECT_EQ(refusal("--axis =3"), "--axis: '=3' is not NAME=N,... as in --axis k=256,512");
  EXPECT_EQ(refusal("--axis k=1,,2"),
            "--axis: 'k=1,,2' has an empty value; expected NAME=N,..., or leave the flag out");
}

TEST(ParseOptions, AFlagWithoutItsValueIsRefused) {
  for (const char* flag : {"--suite", "--tier", "--filter", "--axis", "--device", "--seed", "--out", "--json"})
    EXPECT_THAT(refusal({flag}), HasSubstr(flag)) << flag;
}

Options with_variables(const Words& words, const std::map<std::string, std::string>& set) {
  return parse_options(words, [&set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::string() : found->second;
  });
}

std::string refusal_of_variable(const std::string& name, const std::string& value) {
  return thrown_text<UsageError>([&] { (void)with_variables({}, {{name, value}}); }, "accepted");
}

TEST(Variables, StandInForEveryFlagThatIsNotGiven) {
  const Options o = with_variables({}, {{"GPUBENCH_SUITE", "gemm,conv"},
                                        {"GPUBENCH_TIER", "large"},
                                        {"GPUBENCH_FILTER", "a,b"},
                                        {"GPUBENCH_EXCLUDE", "x"},
                                        {"GPUBENCH_PRECISION", "bf16"},
                                        {"GPUBENCH_BATCH", "1,8"},
                                        {"GPUBENCH_AXIS", "k=16,32"},
                                        {"GPUBENCH_SEED", "7"},
                                        {"GPUBENCH_DEVICE", "cpu"},
                                        {"GPUBENCH_DRY_RUN", "on"},
                                        {"GPUBENCH_DETERMINISTIC", "on"},
                                        {"GPUBENCH_TUNING_CACHE", "off"},
                                        {"GPUBENCH_QUIET", "1"},
                                        {"GPUBENCH_VERBOSE", "on"},
                                        {"GPUBENCH_CHECK", "full"}});

  EXPECT_THAT(o.selection.suites, ElementsAre("gemm", "conv"));
  EXPECT_EQ(o.tier, Tier::large);
  EXPECT_THAT(o.selection.filters, ElementsAre("a,b"));
  EXPECT_THAT(o.selection.excludes, ElementsAre("x"));
  EXPECT_THAT(o.selection.precisions, ElementsAre("bf16"));
  EXPECT_THAT(o.selection.batches, ElementsAre(1, 8));
  EXPECT_THAT(o.selection.axes, ElementsAre(::testing::Pair("k", ElementsAre(16, 32))));
  EXPECT_EQ(o.run.seed, 7U);
  EXPECT_EQ(o.device, "cpu");
  EXPECT_TRUE(o.dry_run);
  EXPECT_TRUE(o.run.deterministic);
  EXPECT_EQ(o.tuning_cache, "off");
  EXPECT_TRUE(o.quiet);
  EXPECT_TRUE(o.verbose);
  EXPECT_EQ(o.run.check, CheckMode::full);
  EXPECT_EQ(o.from_environment.size(), 15U);
}

TEST(Variables, YieldToTheFlag) {
  const Options o = with_variables("--tier smoke --suite memory",
                                   {{"GPUBENCH_TIER", "large"}, {"GPUBENCH_SUITE", "gemm"}, {"GPUBENCH_SEED", "1"}});

  EXPECT_EQ(o.tier, Tier::smoke);
  EXPECT_THAT(o.selection.suites, ElementsAre("memory"));
  EXPECT_THAT(o.from_environment, ElementsAre(::testing::Pair("GPUBENCH_SEED", "1")));
}

TEST(Variables, ABadValueNamesTheVariable) {
  EXPECT_EQ(refusal_of_variable("GPUBENCH_TIER", "smke"),
            "GPUBENCH_TIER: 'smke' is not one of smoke, quick, standard, large; did you mean 'smoke'?");
  EXPECT_EQ(refusal_of_variable("GPUBENCH_SEED", "-1"), "GPUBENCH_SEED: '-1' is not a whole number from 0");
  EXPECT_EQ(refusal_of_variable("GPUBENCH_BATCH", "0"), "GPUBENCH_BATCH: '0' is not a whole number from 1");
  EXPECT_EQ(refusal_of_variable("GPUBENCH_AXIS", "k=x"), "GPUBENCH_AXIS k: 'x' is not a whole number from 0");
  EXPECT_EQ(refusal_of_variable("GPUBENCH_DRY_RUN", "yes"), "GPUBENCH_DRY_RUN: 'yes' is not one of on, off, 1, 0");
}

TEST(Variables, HiddenFlagsHaveNone) {
  EXPECT_FALSE(with_variables({}, {{"GPUBENCH_WORKER_INPUT", "3"}, {"GPUBENCH_WORKER_OUTPUT", "4"}}).is_worker());
}

TEST(Variables, ThoseThatStandForNoFlagAreNamedWithTheNearest) {
  const Words names("HOME GPUBENCH_TIER GPUBENCH_FORMAT GPUBENCH_TEIR GPUBENCH_QWERTYUIOP");

  EXPECT_THAT(unknown_variables(names),
              ElementsAre("GPUBENCH_TEIR is set, but matches no flag; did you mean GPUBENCH_TIER?",
                          "GPUBENCH_QWERTYUIOP is set, but matches no flag"));
}

TEST(ParseOptions, HelpAndVersionWinOverEverythingElse) {
  EXPECT_EQ(parsed("--nosuch --help").verb->name, "help");
  EXPECT_EQ(parsed("list -h").verb->name, "help");
  EXPECT_EQ(parsed("list -h").subject, "list");
  EXPECT_FALSE(parsed("list -h").of<HelpOptions>().all);
  EXPECT_TRUE(parsed("list --nosuch --help-all").of<HelpOptions>().all);
  EXPECT_EQ(parsed("list --help-all").subject, "list");
  EXPECT_EQ(parsed("--version").verb->name, "version");
}

TEST(ParseOptions, WorkerFlagsBelongTogether) {
  EXPECT_TRUE(parsed("--worker-input 3 --worker-output 4").is_worker());
  EXPECT_THAT(refusal("--worker-input 3"), HasSubstr("belong together"));
}

TEST(HelpText, FitsAHundredColumnsAndHoldsEveryGroupAndExamples) {
  for (const char* verb : {"", "run", "list", "doctor", "help", "version"}) {
    std::istringstream lines(help_text(verb));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
  for (const char* part : {"select\n", "measure\n", "check\n", "output\n", "environment\n", "GPUBENCH_TIER=smoke",
                           "examples\n", "exit codes\n", "--suite NAME,...", "-q, --quiet"}) {
    EXPECT_THAT(full_help_text(""), HasSubstr(part));
    EXPECT_THAT(full_help_text("run"), HasSubstr(part));
  }
  EXPECT_THAT(full_help_text(""), ::testing::Not(HasSubstr("--worker")));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(HelpText, OfEveryVerbFitsAScreenAndTheRestIsInHelpAll) {
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    for (const int width : {80, 100}) {
      for (const std::string_view subject : {verb.name, std::string_view()}) {
        const std::vector<std::string> lines = lines_of(help_text(subject, width));
        EXPECT_LE(lines.size(), 40U) << subject;
        for (const std::string& line : lines) EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
      }
    }
    for (const Flag& flag : verb.flags({})) {
      if (!flag.is_visible()) continue;
      EXPECT_THAT(full_help_text(verb.name), HasSubstr(flag.long_name)) << verb.name;
    }
    EXPECT_LE(verb.summary.size(), 64U) << verb.name;
    EXPECT_THAT(help_text("", 80), HasSubstr(fmt::format("\n  {} ", verb.name)));
  }
}

TEST(HelpText, OfRunHasEightFlagsAndTwoExamples) {
  const std::vector<std::string> lines = lines_of(help_text("run", 80));
  std::vector<std::string> flags;
  int examples = 0;
  for (const std::string& line : lines) {
    if (line.starts_with("  --")) flags.push_back(line.substr(2, line.find_first_of(" ,", 2) - 2));
    examples += line.starts_with("  gpubench ") ? 1 : 0;
  }
  EXPECT_THAT(flags,
              ElementsAre("--suite", "--tier", "--filter", "--precision", "--ranks", "--device", "--check", "--out"));
  EXPECT_EQ(examples, 2);
  EXPECT_EQ(lines.back(), "gpubench run --help-all shows all flags and examples");
}

TEST(HelpText, OfVerbsWithManyFlagsBeginsWithTheirOwn) {
  EXPECT_THAT(help_text("simulate", 80), HasSubstr("flags\n  --ranks N,...           numbers of ranks, up to 4096"));
  EXPECT_THAT(help_text("predict", 80), HasSubstr("flags\n  --model NAME"));
  EXPECT_THAT(help_text("soak", 80), HasSubstr("flags\n  --minutes N"));
}

TEST(HelpText, FitsEveryTerminalFromFortyColumnsOn) {
  std::vector<std::string_view> subjects{""};
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) subjects.push_back(verb.name);
  }
  for (const std::string_view verb : subjects) {
    for (int width = 40; width <= 200; width += width < 110 ? 1 : 15) {
      for (const std::string& line : lines_of(help_text(verb, width) + full_help_text(verb, width))) {
        const std::string text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
        const bool command = text.starts_with("gpubench ");
        EXPECT_TRUE(line.size() <= static_cast<std::size_t>(std::min(width, 100)) || command ||
                    text.find(' ') == std::string::npos)
            << width << ": " << line;
        EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= 32 && c < 127; })) << line;
      }
    }
  }
}

TEST(HelpText, NamesVariablesOfColorsWhereThereIsAFlagForThem) {
  EXPECT_THAT(full_help_text("run"), HasSubstr("NO_COLOR"));
  EXPECT_THAT(full_help_text("list"), Not(HasSubstr("NO_COLOR")));
}

TEST(HelpText, UnknownVerbsAreRefused) { EXPECT_THROW((void)help_text("lst"), UsageError); }

}  // namespace
}  // namespace gpubench
