// The launcher's part of a run: from its plan to its report, in a worker or in this process.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/implementations.h"
#include "harness/cli/options.h"
#include "harness/cli/recorder.h"
#include "harness/plan/plan.h"
#include "harness/report/anonymize.h"
#include "harness/report/report_json.h"

namespace gpubench {

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
