// The work of selftest, determinism, soak and learn. It may crash, so a child process with the same words does it and
// sends findings, JSON objects with one member each; the parent judges and prints.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/cli/verb_output.h"
#include "harness/plan/plan.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/verify/working_children.h"

namespace gpubench {

/// Receives findings in the parent or, with --isolate off, in this process.
struct WorkFindings {
  std::function<void(const Json&)> found;
  std::function<void(std::string_view what)> now;
  std::function<void()> alive;  ///< sign of life
};

struct WorkFinding {
  std::string kind;
  Node content;
};
/// Throws ReadError.
[[nodiscard]] WorkFinding finding_of(const Json& json);

/// By default of tier smoke.
struct WorkPlan {
  DeviceChoice device;
  Selection selection;
  std::vector<PlannedCase> cases;
  std::optional<double> silence_s{};  ///< longest silence of a child without --deadline; not set: silence_of()
};
/// Device and selection without cases. Throws UsageError, CannotMeasure.
[[nodiscard]] WorkPlan work_place(const Options& options, const Environment& environment);
/// Throws UsageError, CannotMeasure.
[[nodiscard]] WorkPlan work_plan(const Options& options, const Environment& environment);

/// Opens the device and reports it ("opened").
[[nodiscard]] std::unique_ptr<Backend> open_for_work(const DeviceChoice& device, const WorkFindings& findings);

[[nodiscard]] bool is_working_child(const Options& options);

/// In the child: catches signals; an exception of `work` becomes a finding "error". Returns its exit code.
int work_as_child(const Options& options, const Environment& environment,
                  const std::function<void(const WorkFindings& findings)>& work);

/// Longest silence of a child: --deadline, else three times the estimate of the longest case, between 30 s (or the
/// device's plan_limit_s) and 30 min.
[[nodiscard]] double silence_of(const Options& options, std::span<const PlannedCase> cases, const DeviceChoice& device,
                                const Environment& environment);

/// The words of a child on `device` (DeviceChoice::word()).
[[nodiscard]] std::vector<std::string> words_of_child(const Options& options, const std::string& device,
                                                      const Environment& environment);

/// The device that the work opened, and the reason of a failure: "ended by signal 11 (Segmentation fault) in a launch
/// of X"; empty after success.
struct WorkEnd {
  DeviceInfo info{};
  std::string trouble{};
};
/// Works in a child, or here with --isolate off; hands over all findings except "opened" and shows the current step on
/// `status`. Throws CannotMeasure if no child can start.
[[nodiscard]] WorkEnd do_work(const Options& options, const WorkPlan& plan, const Environment& environment,
                              StatusLine& status, const std::function<void(const WorkFindings& findings)>& work,
                              const std::function<void(const WorkFinding& finding)>& found);

}  // namespace gpubench
