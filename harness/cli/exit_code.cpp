#include "harness/cli/exit_code.h"

#include <csignal>

namespace gpubench {

int exit_code(const Outcome& outcome) {
  const Totals& totals = outcome.totals;
  if (outcome.signal == SIGTERM) return exit_codes::terminated;
  if (outcome.signal == SIGHUP) return exit_codes::hung_up;
  if (outcome.signal != 0) return exit_codes::interrupted;
  const int failed =
      totals.count(Verdict::fail) + totals.count(Verdict::downgraded) + totals.count(Verdict::not_proven);
  if (failed > 0) return exit_codes::verdict_failed;
  if (totals.count(Verdict::error) > 0 || outcome.report_lost) return exit_codes::could_not_measure;
  const int ran = totals.count(Verdict::pass) + totals.count(Verdict::unverified);
  if (ran > 0 && outcome.untried) return exit_codes::verdict_failed;
  return ran > 0 ? exit_codes::ok : exit_codes::nothing_ran;
}

std::string explain_exit_code(int code) {
  switch (code) {
    case exit_codes::ok: return "all that ran passed";
    case exit_codes::verdict_failed: return "a verdict failed: fail, downgraded or not_proven";
    case exit_codes::usage: return "usage, configuration or input file; nothing was measured";
    case exit_codes::could_not_measure: return "could not measure: crash, hang, device or report lost";
    case exit_codes::not_comparable: return "not comparable, or nothing could be concluded";
    case exit_codes::nothing_ran: return "nothing ran";
    case exit_codes::hung_up: return "the terminal hung up; the report is partial";
    case exit_codes::interrupted: return "interrupted; the report is partial";
    case exit_codes::terminated: return "terminated; the report is partial";
    default: return "not an exit code of gpubench";
  }
}

}  // namespace gpubench
