// Frequent mistakes and habits from other tools, on the sim backend: accepted if unambiguous, else answered with the
// right form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/cli/selection.h"
#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<std::string> real_suites{"gemm", "conv", "norm"};

std::string mistake(const Words& words) {
  return thrown_text<UsageError>([&] { (void)parse_options(words, {}, real_suites); }, "accepted");
}

class Mistakes : public ScratchFolder {};

TEST_F(Mistakes, AGpuIsCuda) {
  EXPECT_EQ(parse_options(std::vector<std::string>{"--device", "gpu"}).device, "cuda");
  EXPECT_EQ(parse_options(std::vector<std::string>{"--device", "gpu:3"}).device, "cuda:3");
  EXPECT_EQ(parse_options(std::vector<std::string>{"--device", "gpus"}).device, "gpus");
  EXPECT_THAT(exits(3, ran("--device gpu")).err, HasSubstr("--device cuda: no NVIDIA driver"));
}

TEST_F(Mistakes, PrecisionsHaveTheNamesOfOtherFrameworksToo) {
  for (const auto& [words, ours] : {std::pair{"fp16,half", "f16"},
                                    {"fp32,float", "f32"},
                                    {"fp64,double", "f64"},
                                    {"fp8", "f8_hybrid"},
                                    {"bfloat16", "bf16"},
                                    {"tf32", "tf32"}}) {
    const Options o = parse_options(std::vector<std::string>{"--precision", words});
    EXPECT_THAT(o.selection.precisions, ElementsAre(ours)) << words;
  }
  EXPECT_THAT(exits(0, ran("list --precision float32")).out, HasSubstr("sim/first/n=8/f32/x1"));
}

TEST_F(Mistakes, ASuiteATierOrACaseInThePlaceOfAVerbIsToldWhereItBelongs) {
  EXPECT_EQ(mistake("gemm"), "'gemm' is not a verb; it is a suite: gpubench --suite gemm");
  EXPECT_EQ(mistake("gemm conv --tier smoke"), "'gemm' is not a verb; it is a suite: gpubench --suite gemm,conv");
  EXPECT_EQ(mistake("all"), "'all' is not a verb; it is a suite: gpubench --suite all");
  EXPECT_EQ(mistake("quick"), "'quick' is not a verb; it is a tier: gpubench --tier quick");
  EXPECT_EQ(mistake("gemm/matmul/m=1/f32"),
            "'gemm/matmul/m=1/f32' is not a verb; of cases: gpubench --filter 'gemm/matmul/m=1/f32', or gpubench list "
            "gemm/matmul/m=1/f32");
  EXPECT_THAT(mistake("gem"), HasSubstr("unknown verb 'gem'; verbs: run, list"));
  EXPECT_THAT(refusal_of("sim"), HasSubstr("gpubench --suite sim"));
}

TEST_F(Mistakes, SuitesWithABlankBetweenThemAreToldToHaveCommas) {
  EXPECT_EQ(mistake("--suite gemm conv"), "unexpected argument 'conv': separate suites with commas: --suite gemm,conv");
  EXPECT_THAT(mistake("--suite gemm smoke"), HasSubstr("unexpected argument 'smoke': run takes flags only"));
}

TEST_F(Mistakes, PresetsAreNotCalledAsTiersAreAndOldNamesStillWork) {
  for (const auto& [old_name, preset] : {std::pair{"smoke", Preset::minimal}, std::pair{"quick", Preset::brief},
                                         std::pair{"standard", Preset::normal}}) {
    EXPECT_EQ(parse_options(std::vector<std::string>{"--preset", old_name}).run.preset, preset) << old_name;
    EXPECT_NE(name(preset), old_name);
  }
  EXPECT_EQ(mistake("--preset norml"),
            "--preset: 'norml' is not one of minimal, brief, normal, gate, thorough; did you mean 'normal'?");
}

TEST_F(Mistakes, ListSuggestsTheNearestWorkloadToo) {
  EXPECT_THAT(refusal_of("list sim/frist"),
              HasSubstr("no case is named or matches 'sim/frist'; did you mean 'sim/first'?"));
}

// A workload with one case from a given tier on, in a suite of the same name.
class FromTier final : public Workload {
 public:
  FromTier(std::string name, Tier tier) : name_(std::move(name)), tier_(tier) {}
  [[nodiscard]] WorkloadInfo info() const override {
    return {name_, "of a tier", "", PrimaryMetric::flop_per_s, "runs"};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", 8}}, "tiny", tier_}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case&) const override { throw ProgramError("is not to be built"); }
  [[nodiscard]] double items(const Case&) const override { return 1.0; }

 private:
  std::string name_;
  Tier tier_;
};

Suite suite_from(const std::string& name, Tier tier) {
  return {name, "of a tier", {std::make_shared<FromTier>(name, tier)}};
}

TEST_F(Mistakes, ASuiteWithoutCasesAtTheTierSaysFromWhichTierOnItHas) {
  const std::vector<Suite> suites{suite_from("early", Tier::smoke), suite_from("late", Tier::standard)};
  std::ostringstream out, err;
  const StopFlag stop{0};
  const Environment environment{suites, {}, out, err, false, false, 80, {}, {}, "", stop};
  Selection selection;
  selection.tier = Tier::quick;
  selection.suites = {"late"};
  EXPECT_EQ(refuse_empty(selection, environment), 5);
  EXPECT_EQ(err.str(),
            "gpubench: no case matches: tier quick, --suite late; the lowest tier with any is standard, 1: --tier "
            "standard; gpubench list shows cases\n");
  err.str("");
  selection.suites = {"early", "late"};
  PlannedCase planned;
  planned.c.suite = "early";
  note_suites_without_cases(selection, {&planned, 1}, environment);
  EXPECT_EQ(
      err.str(),
      "note: suite late has no such case at tier quick; the lowest tier with any is standard, 1: --tier standard\n");
  err.str("");
  selection.filters = {"nothing"};
  EXPECT_EQ(refuse_empty(selection, environment), 5);
  EXPECT_THAT(err.str(), HasSubstr("no tier has any"));
}

TEST_F(Mistakes, EnergyWithoutAGpuAndMoreRanksThanProcessorsAreWarnedOf) {
  Options options;
  DeviceChoice cpu;
  EXPECT_THAT(selection_warnings(options, cpu, 2), IsEmpty());
  options.selection.ranks = {1, 2};
  EXPECT_THAT(selection_warnings(options, cpu, 2), IsEmpty());
  options.run.energy = true;
  options.selection.ranks = {2, 64};
  EXPECT_THAT(selection_warnings(options, cpu, 2), ElementsAre(HasSubstr("--energy: only GPUs measure energy"),
                                                               HasSubstr("--ranks 64: 64 ranks share 2 processors")));
  DeviceChoice gpu;
  gpu.devices = 64;
  EXPECT_THAT(selection_warnings(options, gpu, 2), IsEmpty());
  EXPECT_THAT(exits(0, ran("--energy --dry-run")).err, HasSubstr("warning: --energy: only GPUs measure energy"));
}

TEST_F(Mistakes, WithoutAnyWordNothingRunsAndThreeExamplesAreShown) {
  Captured cli;
  cli.script = "kill@first.gemm";  // fails if a case starts
  EXPECT_EQ(cli.run({}), 2);
  EXPECT_EQ(cli.out.str(), "");
  const std::string said = cli.err.str();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 7) << said;
  EXPECT_THAT(said, AllOf(HasSubstr("\n  gpubench --suite all "), HasSubstr("gpubench --help lists the verbs")));
  EXPECT_TRUE(std::filesystem::is_empty("."));
  Captured wished;  // a wish all the same
  wished.variables = {{"GPUBENCH_DRY_RUN", "on"}};
  EXPECT_EQ(wished.run({}), 0);
  EXPECT_THAT(wished.out.str(), HasSubstr("nothing was run (--dry-run)"));
}

// The words of a command up to the shell's syntax.
Words words_of_command(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find("  ", 2)));
  Words words;
  for (std::string word; stream >> word;) {
    if (word == "|" || word == ">" || word == "&&") break;
    if (word.size() > 1 && word.front() == '\'' && word.back() == '\'') word = word.substr(1, word.size() - 2);
    words.push_back(word);
    if (word.find('*') != std::string::npos) words.push_back(word);  // the shell expands it
  }
  return words;
}

TEST_F(Mistakes, HelpOfEveryVerbHasExamplesAndEachOfThemParses) {
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    EXPECT_THAT(help_text(verb.name), HasSubstr("examples\n  gpubench ")) << verb.name;
    std::istringstream lines{std::string(verb.examples) + std::string(first_examples())};
    for (std::string line; std::getline(lines, line);) {
      const Words words = words_of_command(line);
      ASSERT_EQ(words.at(0), "gpubench") << line;
      const Words flags(words.begin() + 1, words.end());
      EXPECT_NO_THROW((void)parse_options(flags, {}, real_suites)) << line;
    }
  }
  EXPECT_THAT(full_help_text("run"), AllOf(HasSubstr("--ranks, --gpus N,..."), HasSubstr("--gpus 1,2,4,8")));
  EXPECT_THAT(manual_page("0"), HasSubstr("gpubench \\-\\-suite transformer \\-\\-gpus 1,2,4,8"));
}

TEST_F(Mistakes, TheFirstLineNamesTheProcessorAndDoctorSaysHowToFixThings) {
  Captured cli;
  cli.more_backends = sim_backends("");
  cli.more_backends.front().name = "cpu";
  EXPECT_EQ(cli.run("--device cpu --dry-run"), 0);
  EXPECT_THAT(cli.err.str(), HasSubstr(", device: CPU (asked for)\n"));
  EXPECT_THAT(exits(0, ran("doctor")).out, AllOf(HasSubstr("\n           fix: "), Not(HasSubstr("mend"))));
}

}  // namespace
}  // namespace gpubench
