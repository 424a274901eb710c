// Exit codes, and how the outcome of a run becomes one.
#pragma once

#include <array>
#include <string>

#include "harness/report/report_json.h"

namespace gpubench {

namespace exit_codes {
inline constexpr int ok = 0;                 ///< all that ran passed, and something ran
inline constexpr int verdict_failed = 1;     ///< fail, downgraded, not_proven
inline constexpr int usage = 2;              ///< usage, configuration or input file; nothing was measured
inline constexpr int could_not_measure = 3;  ///< crash, hang, device missing or lost, report lost
inline constexpr int not_comparable = 4;     ///< for compare and gate
inline constexpr int nothing_ran = 5;
inline constexpr int hung_up = 129;      ///< SIGHUP, the terminal is gone; the report is partial
inline constexpr int interrupted = 130;  ///< SIGINT; the report is partial
inline constexpr int terminated = 143;   ///< SIGTERM; the report is partial

/// In the order of the help.
inline constexpr std::array all{ok,          verdict_failed, usage,       could_not_measure, not_comparable,
                                nothing_ran, hung_up,        interrupted, terminated};
}  // namespace exit_codes

/// What a run came to.
struct Outcome {
  Totals totals;
  int signal = 0;            ///< that stopped it; 0: none
  bool report_lost = false;  ///< it could not be written at the end
  bool untried = false;      ///< an implementation takes calls that no case tried, which --strict forbids
};

/// The one code for an outcome. Where several hold: 129/130/143, 1, 3, 5, 0 (2 is decided before anything runs).
/// `unsupported` and `skipped` neither fail nor count as run. `unverified` was asked for (--check off) and counts as
/// run: it ends in 0 with a loud line, and never enters `benchmarks`.
[[nodiscard]] int exit_code(const Outcome& outcome);

/// One phrase: "all that ran passed".
[[nodiscard]] std::string explain_exit_code(int code);

}  // namespace gpubench
