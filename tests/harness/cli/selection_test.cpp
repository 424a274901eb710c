#include "harness/cli/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

HostInfo host_with(std::optional<double> pressure, double load) {
  HostInfo host;
  host.usable_cpus = 2;
  host.cpu_pressure = pressure;
  host.load_avg = {load, 0.0, 0.0};
  return host;
}

TEST(BusyWarning, TellsThePressureAndWhatToDo) {
  EXPECT_THAT(busy_warning(host_with(82.0, 4.0)),
              AllOf(HasSubstr("82% of the last 10 s (D205)"), HasSubstr("unreliable"), HasSubstr("stop other work")));
}

// A build that ended is in the load average for minutes without affecting this run.
TEST(BusyWarning, TheLoadAverageCountsOnlyWhereTheKernelTellsNoPressure) {
  EXPECT_EQ(busy_warning(host_with(0.5, 4.0)), "");
  EXPECT_THAT(busy_warning(host_with(std::nullopt, 4.0)), HasSubstr("load average is 4.00 on 2 processors (D206)"));
}

TEST(BusyWarning, IsEmptyOnAQuietMachine) {
  EXPECT_EQ(busy_warning(host_with(0.5, 0.2)), "");
  EXPECT_EQ(busy_warning(host_with(std::nullopt, 0.2)), "");
}

class BusyRun : public ScratchFolder {
 protected:
  static Words words() {
    return {"--isolate", "off", "--tier", "smoke", "--progress", "none", "--json", "r.json", "--force"};
  }
};

TEST_F(BusyRun, IsWarnedAtTheStartAndOnlyThere) {
  Captured busy, quiet;
  busy.host.cpu_pressure = 82.0;
  EXPECT_EQ(busy.run(words()), 0);
  EXPECT_THAT(busy.err.str(), HasSubstr("\nwarning: tasks waited for a processor during 82% of the last 10 s (D205)"));
  EXPECT_EQ(quiet.run(words()), 0);
  EXPECT_THAT(quiet.err.str(), Not(HasSubstr("warning")));
}

TEST_F(BusyRun, ItsUnreliableTimingsAreCountedMarkedAndNoBest) {
  Captured cli;
  cli.script = "clock=100000;uneven=400";  // round medians of 100, 500, 100, ... us
  EXPECT_EQ(cli.run(words()), 0) << cli.err.str();
  const std::string out = cli.out.str();
  EXPECT_THAT(out, HasSubstr("VERDICT  PASS (correct)  6 pass of 6 cases in "));
  EXPECT_THAT(out, HasSubstr("\n         6 of 6 timings unreliable: "));
  EXPECT_THAT(out, AllOf(HasSubstr("  [noisy]\n"), HasSubstr("\n[noisy] the 95% interval is wider"), HasSubstr(" ~")));
  EXPECT_THAT(out, ::testing::ContainsRegex("\nsim +6 +0 +0 +- "));
  EXPECT_THAT(out, HasSubstr("exit 0   all that ran passed"));
  EXPECT_THAT(exits(0, ran(words(), {.script = "clock=100000"})).out,
              AllOf(HasSubstr("VERDICT  PASS  6 pass"), Not(HasSubstr("~")), Not(HasSubstr("[noisy]"))));
}

}  // namespace
}  // namespace gpubench
