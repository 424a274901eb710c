#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/report_schema.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace shapes_run_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ShapesRun : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    write("my.json", R"({"shapes": [{"suite": "sim", "workload": "first", "params": {"n": 8}, "calls": 24},
                                    {"suite": "sim", "workload": "last", "params": {"n": 8}, "recipe": "f32", "calls": 2},
                                    {"suite": "sim", "workload": "last", "params": {"n": 8}, "recipe": "bf16", "calls": 3}]})");
  }
  static Words words(const Words& more = {}) {
    return "run --isolate off --tier smoke --tuning-cache off --progress none --shapes my.json --out o" + more;
  }
};

TEST_F(ShapesRun, EachShapeIsACaseAndItsCallsAreSummedUpEverywhere) {
  Captured cli;
  cli.script = "clock=1000";  // ns per run
  EXPECT_EQ(cli.run(words()), 0) << cli.err.str();
  EXPECT_THAT(cli.err.str(), HasSubstr("note: my.json: 3 calls left out: sim/last is not available in bf16\n"));
  EXPECT_THAT(cli.out.str(),
              AllOf(HasSubstr("tiny, 24 calls"), HasSubstr("All calls of my.json, one after another"),
                    HasSubstr("26 calls of 2 shapes\n  3 calls left out: sim/last is not available in bf16\n")));
  const Json report = read_json_file("o/report.json");
  EXPECT_EQ(schema_errors(report), "");
  ASSERT_EQ(report["gpubench"]["cases"].size(), 2);
  EXPECT_EQ(report["gpubench"]["cases"][0]["calls"], 24);
  EXPECT_EQ(report["context"]["gpubench"]["shapes"]["format"], "gpubench");
  const double first = report["gpubench"]["cases"][0]["summary"]["median_ns"];
  const double last = report["gpubench"]["cases"][1]["summary"]["median_ns"];
  EXPECT_DOUBLE_EQ(report["gpubench"]["calls_totals"][0]["ns"].get<double>(), 24 * first + 2 * last);
  EXPECT_THAT(content_of("o/report.html"), AllOf(HasSubstr("All calls, sim, f32"), HasSubstr("Of my.json (gpubench)")));
  Captured valid;
  EXPECT_EQ(valid.run("validate o/report.json"), 0) << valid.out.str();
}

TEST_F(ShapesRun, AShapeThatFailsLeavesNoSum) {
  const ChildResult cli = exits(1, ran(words(), {.script = "wrong_element@first.gemm"}));
  EXPECT_THAT(cli.out, HasSubstr("n/a  26 calls of 2 shapes: 1 of 2 shapes has no time, the first,\n" +
                                 std::string(27, ' ') + "sim/first/n=8/f32/x1, fail\n"));
  EXPECT_THAT(cli.out, HasSubstr("gpubench run --shapes my.json --tuning-cache off --filter '^sim/first/n=8/f32/x1$'"));
}

TEST_F(ShapesRun, AnInterruptedRunGoesOnWithTheSameListOnly) {
  EXPECT_EQ(Captured().run(words("--csv /dev/full")), 3);
  Captured again;
  EXPECT_EQ(again.run("run --resume o"), 0) << again.err.str();
  EXPECT_EQ(read_json_file("o/report.json")["gpubench"]["cases"].size(), 2);
}

TEST_F(ShapesRun, AListIsListedAndRefusedBeforeAnythingRuns) {
  const ChildResult list = exits(0, ran("list --shapes my.json --format json"));
  const Json cases = parse_json(list.out, "list");
  EXPECT_EQ(cases["cases"][0]["calls"], 24);
  write("bad.txt", "--reset\n3x4:5x6\n");
  EXPECT_THAT(exits(2, ran("run --shapes bad.txt")).err, HasSubstr("bad.txt:2: '3x4:5x6' is not a matrix product"));
  EXPECT_THAT(refusal_of("run --shapes ."), HasSubstr(".: expected a file"));
  EXPECT_THAT(refusal_of("run --shapes no.log"), HasSubstr("no.log"));
}

TEST_F(ShapesRun, ItsNameIsHiddenWhereNamesAre) {
  write("qzmodel.json", content_of("my.json"));
  Captured cli;
  cli.variables = {{"HOME", std::filesystem::current_path().string()}};
  EXPECT_EQ(cli.run("run --isolate off --tier smoke --tuning-cache off --progress none --shapes qzmodel.json --out o "
                    "--anonymize"),
            0)
      << cli.err.str();
  for (const char* file : {"o/report.json", "o/report.html"})
    EXPECT_THAT(content_of(file), Not(HasSubstr("qzmodel"))) << file;
  EXPECT_THAT(content_of("o/report.html"), HasSubstr("Of path-"));
}

}  // namespace shapes_run_test
}  // namespace gpubench
