#pragma once

#include <array>
#include <string>

#include "harness/report/report_json.h"

namespace gpubench {

namespace exit_codes {
inline constexpr int ok = 0;                 ///< everything that ran passed, and something ran
inline constexpr int verdict_failed = 1;     ///< fail, downgraded, not_proven
inline constexpr int usage = 2;              ///< usage, configuration or input file; nothing was measured
inline constexpr int could_not_measure = 3;  ///< crash, hang, device missing or lost, report lost
inline constexpr int not_comparable = 4;     ///< for compare and gate
inline constexpr int nothing_ran = 5;
inline constexpr int hung_up = 129;  ///< SIGHUP, terminal closed; the report is partial
inline constexpr int interrupted = 130;
inline constexpr int terminated = 143;

inline constexpr std::array all{ok,          verdict_failed, usage,       could_not_measure, not_comparable,
                                nothing_ran, hung_up,        interrupted, terminated};
}  // namespace exit_codes

struct Outcome {
  Totals totals;
  int signal = 0;  ///< received signal; 0: none
  bool report_lost = false;
  bool untried = false;  ///< with --strict: an implementation takes calls that no case tried
};

/// If several codes apply: 129/130/143, 1, 3, 5, 0 (2 is decided before anything runs). `unsupported` and `skipped`
/// neither fail nor count as run. `unverified` (--check off) counts as run and gives 0 with a prominent line; it never
/// enters `benchmarks`.
[[nodiscard]] int exit_code(const Outcome& outcome);

/// "all that ran passed"
[[nodiscard]] std::string explain_exit_code(int code);

}  // namespace gpubench
