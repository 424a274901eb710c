// The context of a run from flags and machine (pins, tuned choices, sensors, ranks, turns), the machine and build facts
// of its report, and the run itself from plan to report (run_session.cpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <istream>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/implementations.h"
#include "harness/cli/options.h"
#include "harness/cli/recorder.h"
#include "harness/core/record.h"
#include "harness/hardware/host.h"
#include "harness/plan/plan.h"
#include "harness/report/anonymize.h"
#include "harness/report/report_json.h"
#include "harness/run/run.h"

namespace gpubench {

[[nodiscard]] std::string_view version();
/// "revision" -> "30d45bb0a1b2" (not set if unknown), "compiler" -> "g++ 12.2.0", "type" -> "Release", ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_facts(const Environment& environment);
[[nodiscard]] std::string build_text(const Environment& environment);

[[nodiscard]] HostContext host_context(const HostInfo& host, const std::string& executable);

/// The set variables that affect numbers. The rest of the environment is private.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> context_variables(const Environment& environment);

/// 16 hexadecimal digits, unique among the runs of a machine.
[[nodiscard]] std::string invocation_id(std::time_t started);

/// The flags' RunOptions completed from the context. Throws UsageError if --pin names no valid report.
[[nodiscard]] RunOptions run_options(const Options& options, Tier tier, const Environment& environment,
                                     const DeviceChoice& device);

/// Makes the folder of --save-failures. Throws UsageError if it cannot be made, or has files without --force.
void open_failures_folder(const Options& options);

/// Rounds on demand (--turns), for a race with another program that uses the device between turns:
/// RunOptions::another_round. A line of `in` is a turn in seconds: rounds run until they have taken that long, at least
/// one. A line of `out` answers: {"turn": 1, "copies": 3, "rounds": 12, "median_ns": 1234.5}, with the cold copies and
/// the median time of one program run over the turn's samples, null without a valid round. The end of `in` ends the
/// rounds. Throws UsageError for other lines.
class Turns {
 public:
  Turns(std::istream& in, std::ostream& out) : in_(&in), out_(&out) {}
  bool operator()(const CaseRecord& record);

 private:
  using Clock = std::chrono::steady_clock;

  void answer(const CaseRecord& record) const;

  std::istream* in_;
  std::ostream* out_;
  int turn_ = 0;
  std::size_t first_ = 0;
  Clock::time_point begun_;
  std::chrono::duration<double> length_{0.0};
};

struct RunPlan {
  const Options& options;
  const Environment& environment;
  DeviceChoice device;
  std::vector<PlannedCase> cases;
  Tier tier;
  RunOptions run;
  std::optional<ShapesContext> shapes{};
  std::vector<Claims> claims{};
  Resumption* resumption = nullptr;  ///< null: a new run
  std::optional<HashKey> key{};
};

/// Runs every case, writes the report and prints results. Returns the exit code. Throws UsageError before anything ran,
/// CannotMeasure if nothing can be measured, DifferentRun for a resumed run.
[[nodiscard]] int run_to_report(RunPlan plan);

/// For a resumed run, before foreign code is loaded: throws DifferentRun unless machine, build and flags are those of
/// the interrupted run.
void require_same_before_loading(RunPlan plan);

}  // namespace gpubench
