// The work of selftest, determinism, soak and learn, which may crash: it is done in a child (this program with the same
// words) that tells what it finds, an object of JSON with one member each. Its parent judges and prints.
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

/// Where findings go: to the parent, or, with --isolate off, to whoever would have been it.
struct WorkFindings {
  std::function<void(const Json&)> found;
  std::function<void(std::string_view what)> now;  ///< what is done from now on
  std::function<void()> alive;                     ///< it goes on
};

/// What one of them is called, and what it is.
struct WorkFinding {
  std::string kind;
  Node content;
};
/// Throws ReadError.
[[nodiscard]] WorkFinding finding_of(const Json& json);

/// The cases that they work on: those selected, by default of tier smoke.
struct WorkPlan {
  DeviceChoice device;
  Selection selection;
  std::vector<PlannedCase> cases;
  std::optional<double> silence_s{};  ///< without --deadline a child may say nothing for so long; absent: silence_of()
};
/// Device and selection, without the cases. Throws UsageError, CannotMeasure.
[[nodiscard]] WorkPlan work_place(const Options& options, const Environment& environment);
/// Throws UsageError, CannotMeasure.
[[nodiscard]] WorkPlan work_plan(const Options& options, const Environment& environment);

/// Opens the device for the work, and reports it ("opened").
[[nodiscard]] std::unique_ptr<Backend> open_for_work(const DeviceChoice& device, const WorkFindings& findings);

/// Whether this process is such a child.
[[nodiscard]] bool is_working_child(const Options& options);

/// The child's side, which catches signals. What ends `work` becomes a finding "error". Returns its exit code.
int work_as_child(const Options& options, const Environment& environment,
                  const std::function<void(const WorkFindings& findings)>& work);

/// How long a child may say nothing: --deadline, else three times what the longest of the cases should take in a run,
/// 30 s (or as long as the device may take to plan an op) to 30 min.
[[nodiscard]] double silence_of(const Options& options, std::span<const PlannedCase> cases, const DeviceChoice& device,
                                const Environment& environment);

/// The words of a child on `device` (DeviceChoice::word()).
[[nodiscard]] std::vector<std::string> words_of_child(const Options& options, const std::string& device,
                                                      const Environment& environment);

/// What came of the work: the device that it opened, and why it came to a bad end, naming what it did: "ended by signal
/// 11 (Segmentation fault) in a launch of X"; empty where it did not.
struct WorkEnd {
  DeviceInfo info{};
  std::string trouble{};
};
/// Does the work in a child, or here with --isolate off, and hands over what it finds but "opened"; shows what it does
/// on `status`. Throws CannotMeasure where there can be no child.
[[nodiscard]] WorkEnd do_work(const Options& options, const WorkPlan& plan, const Environment& environment,
                              StatusLine& status, const std::function<void(const WorkFindings& findings)>& work,
                              const std::function<void(const WorkFinding& finding)>& found);

}  // namespace gpubench
