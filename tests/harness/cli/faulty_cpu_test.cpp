// The real program on processors that report missing instructions, simulated by libraries loaded before oneDNN
// (tests/fakes/faulty_cpu). No case is lost, and outputs show the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// dnnl_cpu_isa_avx: the next level on x86 processors with AVX2.
const std::string only_avx_works = "0x3";

std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

class FaultyCpu : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(GPUBENCH_SANITIZED)
    GTEST_SKIP() << "a sanitizer's library wants to be the first that is loaded";
#endif
    if (!processor_flags().contains("avx2")) GTEST_SKIP() << "this processor has no AVX2 that could be taken from it";
  }
  static ChildResult run(const Words& words, std::map<std::string, std::string> variables) {
    variables.insert({{"LD_PRELOAD", paths::faulty_onednn},
                      {"FAULTY_CPU_ABOVE", only_avx_works},
                      {"ONEDNN_MAX_CPU_ISA", ""},
                      {"DNNL_MAX_CPU_ISA", ""}});
    return run_child(Words{paths::program} + words, variables);
  }
  static Words smoke_cases(const Words& more = {}) {
    return "--suite gemm,conv --tier smoke --device cpu --json -" + more;
  }
  static Words two_cases(const Words& more = {}) {
    return "--suite gemm,attention --tier smoke --device cpu --json - "
           "--filter m=35,n=127,k=1760/f32|attention_forward.*f32" +
           more;
  }
  static std::string property(const Json& report, const char* name) {
    const Json& properties = report["context"]["gpubench"]["devices"][0]["properties"];
    return properties.contains(name) ? properties[name].get<std::string>() : "";
  }
  static void expect_green(const ChildResult& result, const Json& report) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json& totals = report["gpubench"]["totals"];
    EXPECT_GT(totals["pass"].get<int>(), 0) << result.err;
    EXPECT_EQ(totals["error"].get<int>(), 0) << result.err;
  }
};

TEST_F(FaultyCpu, CasesRunToGreenBelowTheInstructionSetThatDies) {
  const ChildResult result = run(smoke_cases(), {});
  const Json report = parse_json(result.out, "stdout");
  expect_green(result, report);
  EXPECT_EQ(property(report, "cpu_isa"), "limited to avx");
  EXPECT_THAT(property(report, "cpu_isa_reason"), HasSubstr("oneDNN died with SIGILL in the f32 matmul (onednn:"));
  EXPECT_THAT(result.err, HasSubstr("cpu isa limited to avx: oneDNN died with SIGILL"));
}

TEST_F(FaultyCpu, SoTheyDoWithoutWorkers) {
  const ChildResult result = run(two_cases("--isolate off"), {});
  const Json report = parse_json(result.out, "stdout");
  expect_green(result, report);
  EXPECT_EQ(property(report, "cpu_isa"), "limited to avx");
}

TEST_F(FaultyCpu, CasesRunToGreenBelowTheInstructionSetThatIsWrong) {
  const ChildResult result = run(two_cases(), {{"FAULTY_CPU_KIND", "wrong"}});
  const Json report = parse_json(result.out, "stdout");
  expect_green(result, report);
  EXPECT_EQ(property(report, "cpu_isa"), "limited to avx");
  EXPECT_THAT(property(report, "cpu_isa_reason"), HasSubstr("oneDNN gave a wrong result in the f32 matmul"));
}

TEST_F(FaultyCpu, TheUsersOwnSettingIsLeftAloneAndWhatItLeadsToIsSaid) {
  const ChildResult good = run(two_cases(), {{"ONEDNN_MAX_CPU_ISA", "AVX"}});
  const Json unlimited = parse_json(good.out, "stdout");
  expect_green(good, unlimited);
  EXPECT_EQ(property(unlimited, "cpu_isa"), "");

  const Json report = parse_json(exits(3, run(two_cases(), {{"DNNL_MAX_CPU_ISA", "AVX2"}})).out, "stdout");
  EXPECT_EQ(property(report, "cpu_isa"), "left as DNNL_MAX_CPU_ISA=AVX2 says");
  EXPECT_THAT(property(report, "cpu_isa_reason"), HasSubstr("oneDNN died with SIGILL"));
  EXPECT_GT(report["gpubench"]["totals"]["error"].get<int>(), 0);
}

TEST_F(FaultyCpu, WhereNoInstructionSetWorksTheBackendDoesNotStartAndSaysWhy) {
  EXPECT_THAT(exits(3, run(two_cases(), {{"FAULTY_CPU_ABOVE", "0"}})).err,
              AllOf(HasSubstr("the cpu backend does not start"), HasSubstr("oneDNN died with SIGILL"),
                    HasSubstr("no lower one left")));
}

TEST_F(FaultyCpu, DoctorHasACodeForIt) {
  const ChildResult faulty = run("doctor", {});
  EXPECT_THAT(faulty.out, AllOf(HasSubstr("D210"), HasSubstr("cpu isa limited to avx: oneDNN died with SIGILL")));
  EXPECT_EQ(faulty.exit_code, 0);
}

TEST_F(FaultyCpu, AMissingAmxLeafIsFoundAndNamed) {
  const std::set<std::string> flags = processor_flags();
  if (!flags.contains("cpuid_fault")) GTEST_SKIP() << "this processor cannot fault at CPUID (no cpuid_fault)";
  if (!flags.contains("amx_tile")) GTEST_SKIP() << "this processor has no AMX whose leaf could be emptied";
  const ChildResult result = run(smoke_cases(), {{"LD_PRELOAD", paths::empty_amx_leaf}});
  const Json report = parse_json(result.out, "stdout");
  expect_green(result, report);
  EXPECT_THAT(property(report, "cpu_isa"), AllOf(HasSubstr("limited to avx512_core_"), Not(HasSubstr("amx"))));
  EXPECT_EQ(property(report, "cpu_isa_reason"), "amx is announced, but CPUID leaf 0x1D is empty");
}

}  // namespace
}  // namespace gpubench
