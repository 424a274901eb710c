// --anonymize on the command line: outputs contain no names and can still be resumed and compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "harness/cli/recorder.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/report_schema.h"
#include "tests/harness/report/sample_records.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace anonymize_verbs_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// All identifying text contains "qz".
class AnonymizeVerbs : public ScratchFolder {
 protected:
  static void make_identifying(Captured& cli, const std::string& host = "qzhost.example") {
    cli.host.host_name = host;
    cli.variables = {{"HOME", std::filesystem::current_path().string() + "/qzhome"},
                     {"USER", "qzuser"},
                     {"OMP_PLACES", "qzplaces"},
                     {"TMPDIR", "."},
                     {"GPUBENCH_MODE", "0600"},
                     {"GITHUB_ACTIONS", "true"},
                     {"GITHUB_STEP_SUMMARY", "summary.md"}};
  }
  static Words words(const Words& more) {
    return "run --isolate off --tier smoke --tuning-cache off --progress none --anonymize" + more;
  }
};

TEST_F(AnonymizeVerbs, ARunWritesNoNameAnywhere) {
  ASSERT_EQ(Captured().run("--isolate off --tier smoke --tuning-cache off --json qzpins.json"), 0);
  Captured cli;
  make_identifying(cli);
  cli.script = "wrong_element@first.gemm;unsupported@last.add";
  EXPECT_EQ(cli.run(words("--out qzout --pin qzpins.json --csv all.csv --junit all.xml --markdown /dev/full")), 1)
      << cli.err.str();
  for (const char* file :
       {"qzout/report.json", "qzout/report.html", "qzout/journal.jsonl", "all.csv", "all.xml", "summary.md"}) {
    EXPECT_NE(content_of(file), "") << file;
    EXPECT_EQ(content_of(file).find("qz"), std::string::npos) << file;
  }
  std::istringstream console(cli.out.str());
  for (std::string line; std::getline(console, line);) {
    const bool says_where = line.starts_with("report") || line.starts_with("page") || line.starts_with("resume");
    if (!says_where) {
      EXPECT_THAT(line, Not(HasSubstr("qz")));
    }
  }
  const Json report = read_json_file("qzout/report.json");
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_THAT(report["context"]["host_name"].get<std::string>(), StartsWith("host-"));
  EXPECT_THAT(report["gpubench"]["cases"][0]["rerun"].get<std::string>(), HasSubstr(" --pin path-"));
}

TEST_F(AnonymizeVerbs, AnInterruptedRunGoesOnAsAnonymousAsItWasOnTheSameMachineOnly) {
  Captured first;
  make_identifying(first);
  EXPECT_EQ(first.run(words("--out o --csv /dev/full")), 3);
  const std::string journal = content_of("o/journal.jsonl");
  EXPECT_EQ(journal.find("qz"), std::string::npos);
  const Words resume("run --resume o");
  Captured elsewhere;
  make_identifying(elsewhere, "qzother");
  EXPECT_EQ(elsewhere.run(resume), 4);
  EXPECT_THAT(elsewhere.err.str(), AllOf(HasSubstr("this is another run"), Not(HasSubstr("qzother"))));
  Captured again;
  make_identifying(again);
  EXPECT_EQ(again.run(resume), 0) << again.err.str();
  EXPECT_EQ(content_of("o/report.json").find("qz"), std::string::npos);
}

TEST_F(AnonymizeVerbs, WithoutTheFileThatItWasPinnedToARunDoesNotGoOn) {
  ASSERT_EQ(Captured().run("--isolate off --tier smoke --tuning-cache off --json qzpins.json"), 0);
  Captured first;
  make_identifying(first);
  EXPECT_EQ(first.run(words("--out o --pin qzpins.json --csv /dev/full")), 3);
  Captured again;
  make_identifying(again);
  EXPECT_EQ(again.run("run --resume o"), 4);
  EXPECT_THAT(again.err.str(), AllOf(HasSubstr("pin path-"), HasSubstr(" -> (none)")));
  EXPECT_EQ(again.run(words("--resume o --pin qzpins.json")), 0) << again.err.str();
}

TEST_F(AnonymizeVerbs, AReportThatIsThereIsMadeAnonymousAndStillHoldsAndGates) {
  Captured run;
  make_identifying(run);
  for (const char* file : {"a.json", "b.json"})
    ASSERT_EQ(run.run({"--isolate", "off", "--tier", "smoke", "--tuning-cache", "off", "--json", file}), 0);
  std::filesystem::create_directories("anonymous");
  for (const std::string file : {"a.json", "b.json"}) {
    EXPECT_NE(content_of(file).find("qz"), std::string::npos);
    Captured cli;
    make_identifying(cli);
    EXPECT_EQ(cli.run({"export", "--format", "report", "--anonymize", "--anonymize-key", "k", file, "-o",
                       "anonymous/" + file}),
              0)
        << cli.err.str();
    EXPECT_EQ(content_of("anonymous/" + file).find("qz"), std::string::npos);
  }
  Captured validate;
  EXPECT_EQ(validate.run("validate anonymous/a.json anonymous/b.json"), 0) << validate.out.str();
  Captured named, anonymous;
  const int code = named.run("gate --baseline a.json --candidate b.json");
  EXPECT_NE(code, 2) << named.err.str();
  std::filesystem::current_path("anonymous");
  EXPECT_EQ(anonymous.run("gate --baseline a.json --candidate b.json"), code) << anonymous.err.str();
  EXPECT_EQ(anonymous.out.str(), named.out.str());
}

TEST_F(AnonymizeVerbs, APageIsMadeAnonymousToo) {
  Report report = holding_report();
  report.host.host_name = "qzhost";
  write("r.json", dump(report_json(report)));
  Captured cli;
  EXPECT_EQ(cli.run("report r.json -o named.html"), 0);
  EXPECT_NE(content_of("named.html").find("qzhost"), std::string::npos);
  EXPECT_EQ(cli.run("report r.json -o page.html --anonymize --anonymize-key k --junit -"), 0);
  EXPECT_EQ(content_of("page.html").find("qzhost"), std::string::npos);
  EXPECT_EQ(cli.out.str().find("qzhost"), std::string::npos);
}

TEST_F(AnonymizeVerbs, WithoutAKeyNothingIsRunOrWritten) {
  EXPECT_THAT(refusal_of(words("--json r.json")), HasSubstr("--anonymize: no home folder for the key"));
  Captured open_key;
  write("k", "0123456789abcdef0123456789abcdef\n");
  std::filesystem::permissions("k", std::filesystem::perms(0644));
  EXPECT_EQ(open_key.run(words("--json r.json --anonymize-key k")), 2);
  EXPECT_THAT(open_key.err.str(), HasSubstr("gpubench: --anonymize: k: other users can read"));
  EXPECT_THAT(refusal_of("run --anonymize-key k"), HasSubstr("--anonymize-key: has no effect alone; add --anonymize"));
  EXPECT_FALSE(std::filesystem::exists("r.json"));
}

// Made from the table of flags, so that new flags are covered.
TEST(KeptFlags, AreThoseThatChooseAndMeasure) {
  const KeptFlags kept = kept_flags({});
  EXPECT_THAT(kept.values, IsSupersetOf({"--tier", "--gpus", "--breakdown", "--check", "--inject-error", "--untried"}));
  EXPECT_THAT(kept.switches, UnorderedElementsAre("--anonymize", "--deterministic", "--dry-run", "--energy",
                                                  "--trust-libraries", "--turns", "--virtual-ranks"));
  EXPECT_THAT(kept.files, UnorderedElementsAre("--impl", "--like", "--pin", "--shapes", "--tuning-cache"));
  for (const char* other : {"--mode", "--json", "--out", "--anonymize-key", "--progress"})
    EXPECT_THAT(kept.values, Not(Contains(other)));
}

}  // namespace anonymize_verbs_test
}  // namespace gpubench
