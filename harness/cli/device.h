// Which device a run takes, and why. This process neither opens it nor calls its driver: children do.
#pragma once

#include <string>

#include "harness/cli/environment.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/report/json_parser.h"
#include "harness/verify/working_children.h"

namespace gpubench {

class Node;

struct DeviceChoice {
  const BackendEntry* backend = nullptr;
  int ordinal = 0;     ///< which of the backend's devices
  std::string why;     ///< "asked for", or why `auto` came to it
  int capability = 0;  ///< compute capability of a GPU, 90 for 9.0; 0: none, or not known
  int devices = 0;     ///< GPUs that the driver shows; 0: the device is no GPU

  /// As --device takes it: "cpu", "cuda", "cuda:3".
  [[nodiscard]] std::string word() const;
};

/// `wanted`: the value of --device; `deadline_s`: of each call to a driver, 0 for none. Throws CannotMeasure for `cuda`
/// where there is no driver or no backend for it, never taking the CPU silently; UsageError for a name that is no
/// device, and for cuda:N where the driver shows fewer.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted, const Environment& environment,
                                         double deadline_s = driver_deadline_s);

/// Throws CannotMeasure with the backend's reason.
[[nodiscard]] std::unique_ptr<Backend> open_backend(const DeviceChoice& choice);

/// BackendEntry::before_children(). Throws CannotMeasure with the backend's reason.
void prepare_for_children(const DeviceChoice& choice);

/// What the backend says about its device, asked of a child process (verb describe-device), so that this one never
/// opens it, and what NVML adds to that. Throws CannotMeasure where the child cannot say within `deadline_s` (0: it may
/// take as long as it likes).
[[nodiscard]] DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment,
                                         double deadline_s = opening_deadline_s);

/// The child's side: sends the DeviceInfo to `output_fd`, first as the backend gives it, then with what NVML adds.
void tell_device(const DeviceChoice& choice, int output_fd);

// The NVIDIA driver, NVML and the libraries of a backend's module are asked in a child process (verb probe): each may
// hang.

/// As probe_nvidia_driver(); a driver that hangs or crashes is not usable, and the reason names the call. Throws
/// CannotMeasure where no child can be started, or `stop` is raised; so does the next.
[[nodiscard]] NvidiaDriver ask_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop);

/// As survey_gpus(), with what was found out before a call that hangs.
[[nodiscard]] GpuSurvey ask_gpus(const std::string& program, double deadline_s, const StopFlag& stop);

/// The libraries of the CUDA backend's module. Throws BackendError with the loader's reason, and CannotMeasure where it
/// hangs or crashes.
[[nodiscard]] std::vector<ModuleReport> ask_libraries(const std::string& program, double deadline_s,
                                                      const StopFlag& stop);

/// The child's side: asks what `subject` names, "driver", "gpus" or "libraries", and sends the answer to `output_fd`.
/// Throws UsageError for another.
void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends);

// Their answers as a line of JSON, which the child sends.

[[nodiscard]] Json to_json(const NvidiaDriver& driver);
/// Throws ReadError; so does the next.
[[nodiscard]] NvidiaDriver driver_from_json(const Node& node);

[[nodiscard]] Json to_json(const GpuSurvey& survey);
[[nodiscard]] GpuSurvey survey_from_json(const Node& node);

[[nodiscard]] Json to_json(const ModuleSurvey& survey);
[[nodiscard]] ModuleSurvey module_from_json(const Node& node);

/// A line for each GPU: memory, clocks, power, temperature, ECC, MIG, NVLink, PCIe, what holds its clocks back. Ends
/// with a newline; empty where there is none. What is not known is "-".
[[nodiscard]] std::string gpu_table(const GpuSurvey& survey, const ConsoleStyle& style);

}  // namespace gpubench
