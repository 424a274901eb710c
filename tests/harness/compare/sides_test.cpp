#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/compare/baseline.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/scratch_folder.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class Sides : public ScratchFolder {
 protected:
  static std::string file(const std::string& name, const std::string& text) {
    write(name, text);
    return name;
  }
  static std::string report(const std::string& name, double ns) {
    return file(name, sealed_text(report_json(timed_report({timed_record("a", ns)}))));
  }
};

std::vector<double> nanoseconds_of(const SideFile& side) {
  std::vector<double> all;
  for (const Invocation& invocation : side.invocations)
    all.push_back(std::round(std::exp(invocation.cases.at(0).run->log_median)));
  return all;
}

TEST_F(Sides, KeepTheOrderOfTheirFilesHoweverManyAreReadAtOnce) {
  std::vector<std::string> a, b;
  for (int i = 1; i <= 9; ++i) a.push_back(report("a" + std::to_string(i), 1000.0 * i));
  for (int i = 1; i <= 2; ++i) b.push_back(report("b" + std::to_string(i), 500.0 * i));
  const SidePaths named[] = {{"--baseline", a}, {"--candidate", b}};
  const std::vector<SideFile> sides = read_sides(named);
  ASSERT_EQ(sides.size(), 2U);
  EXPECT_THAT(nanoseconds_of(sides[0]), ElementsAre(1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000));
  EXPECT_THAT(nanoseconds_of(sides[1]), ElementsAre(500, 1000));
}

TEST_F(Sides, TakeABaselineForItsRunsAndItsNoise) {
  const Baseline baseline = make_baseline("main", "now", side_of({1000, 1010, 1020}), noise_of(side_of({1, 2}), "now"));
  const std::vector<std::string> a{file("main.json", baseline_text(baseline))}, b{report("b", 700)};
  const SidePaths named[] = {{"", a}, {"", b}};
  const std::vector<SideFile> sides = read_sides(named);
  EXPECT_THAT(nanoseconds_of(sides[0]), ElementsAre(1000, 1010, 1020));
  EXPECT_EQ(sides[0].noise->invocations, 2);
  EXPECT_THAT(nanoseconds_of(sides[1]), ElementsAre(700));
  EXPECT_FALSE(sides[1].noise.has_value());
}

TEST_F(Sides, RefuseABaselineThatWasChangedOrLostItsDigest) {
  const Baseline baseline = make_baseline("main", "now", side_of({1000, 1010}), std::nullopt);
  const auto refusal = [](const std::string& text) {
    return thrown_text<ReadError>([&] { (void)parse_baseline(text, "b.json"); }, "accepted");
  };
  const std::string text = baseline_text(baseline);
  EXPECT_EQ(parse_baseline(text, "b.json").name, "main");
  std::string faster = text;
  faster.replace(faster.find("\"log_median\": 6."), 17, "\"log_median\": 5.");
  EXPECT_EQ(refusal(faster), "b.json:digest: does not match the content: the file was changed after it was written");
  Json json = to_json(baseline);
  EXPECT_EQ(refusal(dump(json)), "b.json:(root): lacks \"digest\" as its last member: the file was edited");
  json["schema_version"] = "1.1";  // the last without digests
  EXPECT_EQ(parse_baseline(dump(json), "b.json").name, "main");
}

TEST_F(Sides, RefuseTheFirstFileThatIsNoReportAndNameItsSide) {
  const std::vector<std::string> good{report("a", 1000)}, bad{file("b", "[]"), "nowhere.json"};
  const SidePaths named[] = {{"--baseline", good}, {"--candidate", bad}};
  EXPECT_THAT(thrown_text<ReadError>([&] { (void)read_sides(named); }), StartsWith("--candidate: " + bad[0] + ":"));
}

}  // namespace
}  // namespace gpubench
