// What surrounds a run: what its flags and the machine give it (pins, tuned choices, sensors, ranks, turns), and what a
// report says about machine, build and command line; and the launcher's part of a run, from its plan to its report
// (run_session.cpp).
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

/// "0.1.0"
[[nodiscard]] std::string_view version();
/// "revision" -> "30d45bb0a1b2" (absent where unknown), "compiler" -> "g++ 12.2.0", "type" -> "Release", ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_facts(const Environment& environment);
/// "30d45bb0a1b2, g++ 12.2.0, Release": those that are known.
[[nodiscard]] std::string build_text(const Environment& environment);

[[nodiscard]] HostContext host_context(const HostInfo& host, const std::string& executable);

/// Of the variables that change numbers, those that are set. The rest of the environment is private.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> telling_variables(const Environment& environment);

/// 16 hexadecimal digits for the report of this run, which started then; no two runs of a machine have the same.
[[nodiscard]] std::string invocation_id(std::time_t started);

/// The flags' RunOptions with what the surroundings add.
/// Throws UsageError where --pin names no report that holds.
[[nodiscard]] RunOptions run_options(const Options& options, Tier tier, const Environment& environment,
                                     const DeviceChoice& device);

/// Makes the folder of --save-failures. Throws UsageError where it cannot be made, or has files and there is no
/// --force.
void open_failures_folder(const Options& options);

/// Rounds on demand (--turns), for a race in which another program has the device in between:
/// RunOptions::another_round. A turn is a line of `in`, its length in seconds: rounds are run until they have taken so
/// long, one at least. Each is answered by a line of `out`, {"turn": 1, "copies": 3, "rounds": 12, "median_ns":
/// 1234.5}: cold copies, and the median time of one run of the program over the turn's samples, null where no round was
/// valid. At the end of `in` the rounds end. Throws UsageError for another line.
class Turns {
 public:
  Turns(std::istream& in, std::ostream& out) : in_(&in), out_(&out) {}
  bool operator()(const CaseRecord& record);

 private:
  using Clock = std::chrono::steady_clock;

  void answer(const CaseRecord& record) const;

  std::istream* in_;
  std::ostream* out_;
  int turn_ = 0;             ///< from 1
  std::size_t first_ = 0;    ///< round of the turn
  Clock::time_point begun_;  ///< the turn
  std::chrono::duration<double> length_{0.0};
};

/// What a run measures and where, decided before it starts.
struct RunPlan {
  const Options& options;
  const Environment& environment;
  DeviceChoice device;
  std::vector<PlannedCase> cases;
  Tier tier;
  RunOptions run;
  std::optional<ShapesContext> shapes{};  ///< of --shapes
  std::vector<Claims> claims{};           ///< of the files of --impl
  Resumption* resumption = nullptr;       ///< null: a new run
  std::optional<HashKey> key{};           ///< of --anonymize
};

/// Runs every case, writes the report and prints the results. Returns the exit code. Throws UsageError before anything
/// ran, CannotMeasure where nothing can be measured, AnotherRun as below.
[[nodiscard]] int run_to_report(RunPlan plan);

/// Of a resumed run, before code of others is loaded: throws AnotherRun unless the machine, the build and the flags are
/// those of the interrupted one.
void require_same_before_loading(RunPlan plan);

}  // namespace gpubench
