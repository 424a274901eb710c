#include "harness/cli/exit_code.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpubench {
namespace {

Outcome outcome(std::initializer_list<Verdict> verdicts, int signal = 0, bool report_lost = false) {
  Outcome o;
  for (const Verdict verdict : verdicts) {
    ++o.totals.by_verdict[verdict];
    ++o.totals.cases;
  }
  o.signal = signal;
  o.report_lost = report_lost;
  return o;
}

TEST(ExitCode, FollowsTheTable) {
  using enum Verdict;
  struct Row {
    Outcome outcome;
    int code;
  };
  const Row rows[] = {
      {outcome({pass}), 0},
      {outcome({pass, skipped, unsupported}), 0},
      {outcome({unverified}), 0},
      {outcome({pass, unverified}), 0},
      {outcome({fail}), 1},
      {outcome({pass, downgraded}), 1},
      {outcome({pass, not_proven}), 1},
      {outcome({pass, error}), 3},
      {outcome({pass}, 0, true), 3},
      {outcome({}), 5},
      {outcome({skipped}), 5},
      {outcome({unsupported, skipped}), 5},
      // precedence: 130/143, 1, 3, 5
      {outcome({pass}, SIGINT), 130},
      {outcome({pass}, SIGTERM), 143},
      {outcome({pass}, SIGHUP), 129},
      {outcome({fail, error}, SIGINT), 130},
      {outcome({}, SIGTERM, true), 143},
      {outcome({fail, error}), 1},
      {outcome({fail}, 0, true), 1},
      {outcome({error, skipped}), 3},
      {outcome({skipped}, 0, true), 3},
  };
  Outcome with_untried = outcome({pass, unsupported});
  with_untried.untried = true;
  EXPECT_EQ(exit_code(with_untried), 1);
  int row = 0;
  for (const Row& r : rows) EXPECT_EQ(exit_code(r.outcome), r.code) << "row " << row++;
}

TEST(ExitCode, EveryCodeIsExplained) {
  for (const int code : {0, 1, 2, 3, 4, 5, 129, 130, 143})
    EXPECT_NE(explain_exit_code(code), explain_exit_code(77)) << code;
}

}  // namespace
}  // namespace gpubench
