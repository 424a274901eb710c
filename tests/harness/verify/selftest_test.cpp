// The self-test must fail if the check misses a fault, or a launch without injected faults is wrong.
#include "harness/verify/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/verify/parallel_faults.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SelftestResult tested(const std::string& script, const RunOptions& options = smoke_options(),
                      bool needs_every_family = false) {
  SimBackend backend(parse_script(script));
  SelftestEffort effort;
  effort.clean_launches = 60;
  effort.needs_every_family = needs_every_family;
  const StopFlag stop{0};
  return selftest(
      backend, sim_cases(), options, effort, [](const std::string&, const SelftestResult&) {}, stop);
}

const FaultRow& row(const SelftestResult& result, std::string_view name) {
  return *std::find_if(result.rows.begin(), result.rows.end(), [&](const FaultRow& one) { return one.name == name; });
}

TEST(Selftest, OfACorrectBackendPassesWithFaultsInEveryKindOfOpAndNoAlarm) {
  const SelftestResult result = tested("");
  EXPECT_TRUE(result.passed());
  EXPECT_THAT(result.alarms, IsEmpty());
  EXPECT_GE(result.clean_launches, 60);
  EXPECT_GE(result.clean_elements, result.clean_launches);
  EXPECT_GE(result.ops, result.kinds);
  EXPECT_GE(result.kinds, 1);
  std::int64_t faults = 0;
  for (const FaultRow& one : result.rows) {
    EXPECT_THAT(one.escaped, IsEmpty()) << one.name;
    EXPECT_EQ(one.faults, one.caught + one.unseen) << one.name;
    faults += one.faults;
  }
  EXPECT_GT(faults, 100);
  EXPECT_EQ(result.rows.size(),
            fault_families().size() + enum_values<ErrorKind>.size() - 1  // without `rare`, for soaks
                + parallel_fault_classes().size());
  for (const ErrorKind kind : enum_values<ErrorKind>) {
    if (kind == ErrorKind::rare) continue;
    EXPECT_GT(row(result, describe(kind)).caught, 0) << name(kind);
  }
}

TEST(Selftest, OfABackendThatIsWrongNowAndThenRaisesAnAlarmWithTheOpsName) {
  const SelftestResult result = tested("wrong_element@first.gemm");
  EXPECT_FALSE(result.passed());
  EXPECT_THAT(result.alarms, Contains(HasSubstr("first.gemm of ")));
}

TEST(Selftest, SeesWhatNoElementShows) {
  for (const std::string script : {"guard@first.gemm", "changes_input@first.gemm"}) {
    const SelftestResult result = tested(script);
    EXPECT_FALSE(result.passed()) << script;
    EXPECT_THAT(result.alarms, Not(IsEmpty())) << script;
  }
}

// As a limit of memory (ulimit -v) in the rounds of a case.
class OutOfMemory final : public Telemetry {
 public:
  void begin_round() override { throw std::bad_alloc(); }
  std::optional<RoundTelemetry> end_round() override { return std::nullopt; }
  void rest(double /*seconds*/) override {}
};

TEST(Selftest, ACaseThatEndsInAnErrorIsUnmeasuredAndNoEscape) {
  RunOptions options = smoke_options();
  options.open_telemetry = [](const DeviceInfo&) { return std::make_unique<OutOfMemory>(); };
  const SelftestResult result = tested("", options);
  EXPECT_FALSE(result.passed());
  EXPECT_FALSE(result.has_failed());
  EXPECT_THAT(result.unmeasured, Contains(HasSubstr("out of host memory in phase 'time'")));
}

TEST(Selftest, OfACheckThatLooksAtNothingFails) {
  RunOptions blind = smoke_options();
  blind.check = CheckMode::off;
  EXPECT_FALSE(tested("", blind).passed());
}

// The sim's cases have no step that ranks can share.
TEST(Selftest, ThatNeedsEveryFamilyFailsWhereOneWasNeverTried) {
  const SelftestResult result = tested("", smoke_options(), true);
  EXPECT_FALSE(result.passed());
  EXPECT_THAT(row(result, "gradients not reduced").escaped, ElementsAre("never tried"));
  EXPECT_THAT(row(result, "all zeros").escaped, IsEmpty());
}

TEST(Selftest, FailsWhereAFaultEscapedNothingWasCaughtOrNothingRan) {
  SelftestResult result = tested("");
  ASSERT_TRUE(result.passed());
  SelftestResult without_ops = result;
  without_ops.ops = 0;
  EXPECT_FALSE(without_ops.passed());
  SelftestResult escaped = result;
  escaped.rows.front().escaped.emplace_back("one");
  EXPECT_FALSE(escaped.passed());
  SelftestResult nothing = result;
  for (FaultRow& one : nothing.rows) one.caught = 0;
  EXPECT_FALSE(nothing.passed());
  result.clean_launches = 0;
  EXPECT_FALSE(result.passed());
}

}  // namespace
}  // namespace gpubench::sim
