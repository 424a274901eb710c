#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "tests/harness/cli/child.h"
#include "tests/harness/report/report_schema.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OwnImplementationProgram : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words) {
    return run_child(Words{paths::program} + "run --device cpu --tier smoke --tuning-cache off" + words);
  }
  static ChildResult run_with(const std::string& file, const Words& words) {
    return run(Words{"--impl", file} + words);
  }
};

const Words small("--filter gemm/matmul/m=35.*/f32/ --json -");

TEST_F(OwnImplementationProgram, RunsBesideTheReferenceAndIsNamedWithItsDigestAndVersion) {
  const ChildResult result = run_with(paths::loops, "--versus reference --filter gemm/matmul/m=35.*/f32/ --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json report = parse_json(result.out, "stdout");
  EXPECT_EQ(schema_errors(report), "");
  const Json& cases = report["gpubench"]["cases"];
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0]["id"], cases[1]["id"]) << "the id names the work, not the implementation";
  EXPECT_EQ(cases[0]["def_hash"], cases[1]["def_hash"]);
  EXPECT_FALSE(cases[0].contains("contender"));
  EXPECT_EQ(cases[1]["contender"], "loops");
  EXPECT_EQ(cases[1]["implementation"], "impl:loops");
  EXPECT_EQ(cases[0]["rounds"].size(), cases[1]["rounds"].size()) << "they take turns";
  const Json& named = report["context"]["gpubench"]["implementations"];
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0]["name"], "loops");
  EXPECT_EQ(named[0]["version"], "1.0");
  EXPECT_EQ(named[0]["digest"].get<std::string>().size(), 16U);
  EXPECT_THAT(result.err, AllOf(HasSubstr("against reference"), HasSubstr("slower")));
}

TEST_F(OwnImplementationProgram, ReplacesOneOpInsideAWholeStepAndNothingIsFusedOverIt) {
  const ChildResult result =
      run_with(paths::loops, "--filter transformer/bert_train_step/.*/f32/ --preset minimal --detail full --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json one = parse_json(result.out, "stdout")["gpubench"]["cases"][0];
  int own = 0, others = 0;
  for (const Json& op : one["parity"]["ops"]) {
    const bool is_own = op["implementation"].get<std::string>().starts_with("impl:loops");
    EXPECT_TRUE(!is_own || op["kind"] == "gemm") << op["kind"];
    ++(is_own ? own : others);
  }
  EXPECT_GT(own, 0);
  EXPECT_GT(others, 0);
}

TEST_F(OwnImplementationProgram, OnSeveralRanksEachHasIt) {
  const ChildResult result = run_with(
      paths::loops, "--filter bert_train_step --ranks 2 --precision f32 --preset minimal --detail full --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json one = parse_json(result.out, "stdout")["gpubench"]["cases"][0];
  EXPECT_EQ(one["status"], "pass");
  std::set<std::string> labels;
  for (const Json& op : one["parity"]["ops"]) {
    if (op["implementation"].get<std::string>().starts_with("impl:loops"))
      labels.insert(op["label"].get<std::string>());
  }
  const auto on = [&](const std::string& rank) {
    return std::ranges::any_of(labels, [&](const std::string& label) { return label.ends_with(rank); });
  };
  EXPECT_TRUE(on("@0") && on("@1"));
}

TEST_F(OwnImplementationProgram, BadFilesGetOneClearErrorBeforeAnythingRuns) {
  const auto complaint = [&](const std::string& file) {
    const ChildResult result = exits(2, run_with(file, small));
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(complaint("missing.so"), HasSubstr("--impl: missing.so: No such file"));
  std::ofstream("text.so") << "no library";
  EXPECT_THAT(complaint("text.so"), HasSubstr("cannot be loaded"));
  std::filesystem::copy(paths::other_build, "./other.so");
  EXPECT_THAT(complaint("other.so"), HasSubstr("exports no gpubench_entry()"));
  std::filesystem::copy(paths::loops, "reference.so");
  EXPECT_THAT(complaint("reference.so"), HasSubstr("'reference' cannot be its name"));
  std::filesystem::copy(paths::loops, "libloops.so");
  EXPECT_THAT(complaint(std::string("libloops.so,") + paths::loops), HasSubstr("two files are called 'loops'"));
  EXPECT_THAT(run_with(paths::loops, "--suite norm").err, HasSubstr("no implementation takes an op"));
  EXPECT_THAT(run_with(paths::loops, "--versus refrence").err, HasSubstr("did you mean 'reference'?"));
  EXPECT_THAT(run("--versus reference").err, HasSubstr("add --impl FILE"));
}

TEST_F(OwnImplementationProgram, WhatItPrintsGoesToAFileBesideTheReportAndWritingNothingIsAFailure) {
  const ChildResult result =
      exits(1, run_with(paths::noisy_implementation, "--filter gemm/matmul/m=35.*/f32/ --json r.json"));
  for (const std::string* text : {&result.out, &result.err})
    EXPECT_THAT(*text, AllOf(Not(HasSubstr("offers to the output")), Not(HasSubstr("runs to the error output"))));
  EXPECT_THAT(result.err, HasSubstr("the implementations printed"));
  EXPECT_THAT(content_of("r.json.printed.log"), HasSubstr("runs to the error output"));
  EXPECT_EQ(run_with(paths::loops, "--filter gemm/matmul/m=35.*/f32/ --json q.json").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists("q.json.printed.log")) << "nothing was printed";
}

TEST_F(OwnImplementationProgram, AJournalAloneStartsNoCodeAndAnotherRunIsRefusedBeforeItIsLoaded) {
  const auto here = [](const Words& words) {  // no second place for the lost report
    return run_child(Words{"/usr/bin/env", "TMPDIR=missing", paths::program, "run"} + words);
  };
  const Words flags{"--device", "cpu", "--tier", "smoke", "--tuning-cache", "off", "--filter", small[1]};
  const ChildResult lost = here(flags + Words{"--impl", paths::loops} + "--out o --csv /dev/full");
  ASSERT_EQ(lost.exit_code, 3) << lost.err;
  EXPECT_THAT(lost.out, HasSubstr(std::string("resume   gpubench run --resume o --impl ") + paths::loops + "\n"));
  EXPECT_THAT(exits(2, here("--resume o")).err, HasSubstr(std::string("give its flags again: --impl ") + paths::loops));

  std::ofstream("loops.so") << "not a library";
  EXPECT_THAT(exits(4, here(flags + "--impl loops.so --seed 7 --resume o")).err, HasSubstr("seed"));

  std::filesystem::remove("o/printed.log");
  exits(0, here({"--resume", "o", "--impl", paths::loops}));
}

TEST_F(OwnImplementationProgram, ForeignLibrariesPassInEveryCaseThatTheyTake) {
  std::string files = paths::example_onednn;
#ifdef GPUBENCH_TEST_OPENBLAS
  files += std::string(",") + paths::example_openblas;
#endif
  const ChildResult result = run_with(files, "--suite gemm,conv --preset minimal --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, int> cases;
  const Json report = parse_json(result.out, "stdout");
  for (const Json& one : report["gpubench"]["cases"]) {
    EXPECT_EQ(one["status"], "pass") << one["id"];
    ++cases[one["contender"].get<std::string>() + " " + one["suite"].get<std::string>()];
  }
  // Half of them in f32; those in bf16 only if this processor's oneDNN has it.
  EXPECT_GE(cases["onednn gemm"], 7);
  EXPECT_GE(cases["onednn conv"], 2);
#ifdef GPUBENCH_TEST_OPENBLAS
  EXPECT_GE(cases["openblas_gemm gemm"], 7);
#endif
}

// Compiles the output of `gpubench impl new` with the command in its first lines.
TEST_F(OwnImplementationProgram, AStartingPointBuildsAsItSaysAndPassesTheFullCheck) {
  const ChildResult made = run_child({paths::program, "impl", "new", "mine", "--op", "rms_norm_forward"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string compile = made.out.substr(0, made.out.find("gpubench impl check"));
  ASSERT_THAT(compile, StartsWith("cd mine\ncc "));
  ASSERT_EQ(run_child({"/bin/sh", "-ec", compile}).exit_code, 0);
  EXPECT_THAT(
      exits(0, run_child({paths::program, "impl", "list", "mine/libmine.so", "--device", "cpu", "--suite", "norm",
                          "--tier", "smoke"}))
          .out,
      AllOf(HasSubstr("mine 1.0, digest"), HasSubstr("takes 1 of the selected cases"), HasSubstr("only rms_norm")));
  const ChildResult checked = exits(0, run_child({paths::program, "impl", "check", "mine/libmine.so", "--device", "cpu",
                                                  "--filter", "rms_norm_forward|llama_train"}));
  EXPECT_THAT(checked.err + checked.out, HasSubstr("check own"));
  EXPECT_THAT(checked.out, HasSubstr("llama_train_step f32 @mine"));
}

// The usual cases have two kinds of its calls, at one epsilon; it takes others.
TEST_F(OwnImplementationProgram, WhatNoCaseTriedIsListedAndFailsWhereThatIsStrict) {
  ASSERT_EQ(run_child({paths::program, "impl", "new", "mine", "--op", "rms_norm_forward"}).exit_code, 0);
  ASSERT_EQ(run_child({"/bin/sh", "-ec", "cd mine; cc -O2 -shared -fPIC -I. mine.c -o libmine.so -lm"}).exit_code, 0);
  const Words check{paths::program, "impl", "check",    "mine/libmine.so",
                    "--device",     "cpu",  "--filter", "^norm/rms_norm_forward/"};
  const ChildResult part = exits(0, run_child(check));
  EXPECT_THAT(part.out, AllOf(HasSubstr("VERDICT  PASS (part)"), HasSubstr("untried  rms_norm_forward: ")));
  const std::filesystem::path run = std::filesystem::directory_iterator("gpubench-out")->path();
  EXPECT_THAT(content_of((run / "report.json").string()), HasSubstr("calls in f32"));
  Words strictly = check;
  strictly.emplace_back("--strict");
  EXPECT_EQ(run_child(strictly).exit_code, 1);
}

TEST_F(OwnImplementationProgram, AnyOpHasASkeletonThatBuildsAndDeclines) {
  const ChildResult made = run_child({paths::program, "impl", "new", "pool", "--op", "max_pool_forward"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string compile = made.out.substr(0, made.out.find("gpubench impl check"));
  ASSERT_EQ(run_child({"/bin/sh", "-ec", compile}).exit_code, 0);
  EXPECT_THAT(content_of("pool/pool.c"), HasSubstr("Inputs: x."));
  EXPECT_EQ(run_child({paths::program, "impl", "check", "pool/libpool.so", "--device", "cpu"}).exit_code, 2);
  EXPECT_EQ(
      run_child({paths::program, "impl", "new", "script", "--op", "layer_norm_forward", "--lang", "python"}).exit_code,
      0);
  EXPECT_THAT(content_of("script/script.py"), HasSubstr("def layer_norm_forward(x, gamma, beta, *, out):"));
}

TEST_F(OwnImplementationProgram, WrongWordsOfImplGetOneClearError) {
  const auto complaint = [](const Words& words) {
    return exits(2, run_child(Words{paths::program, "impl"} + words)).err;
  };
  EXPECT_THAT(complaint({}), HasSubstr("new NAME --op OP, list FILE, check FILE"));
  EXPECT_THAT(complaint("new mine"), HasSubstr("add --op OP"));
  EXPECT_THAT(complaint("new mine --op rms_norm_forwrad"), HasSubstr("did you mean 'rms_norm_forward'?"));
  EXPECT_THAT(complaint("new ../mine --op gemm"), HasSubstr("is not a name for an implementation"));
  EXPECT_THAT(complaint("new mine --op gemm --lang rust"), HasSubstr("c, cuda, python"));
  std::filesystem::create_directory("mine");
  EXPECT_THAT(complaint("new mine --op gemm"), HasSubstr("mine is there already"));
}

TEST_F(OwnImplementationProgram, ReportsOfTwoImplementationsAreComparedByTheirIds) {
  std::filesystem::copy(paths::loops, "other.so");
  const Words rest("--filter gemm/matmul/m=35.*/f32/ --json");
  const auto report = [&](const std::string& file, const std::string& to) {
    Words words = rest;
    words.push_back(to);
    EXPECT_EQ(run_with(file, words).exit_code, 0);
  };
  report(paths::loops, "a.json");
  report("other.so", "b.json");
  const ChildResult compared = exits(0, run_child({paths::program, "compare", "a.json", "b.json"}));
  EXPECT_THAT(compared.out, AllOf(HasSubstr("gemm/matmul/m=35"), HasSubstr("implementations")));
}

}  // namespace
}  // namespace gpubench
