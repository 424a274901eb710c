// The device of a run. This process neither opens it nor calls its driver; child processes do.
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
  int ordinal = 0;     ///< index among the backend's devices
  std::string why;     ///< "asked for", or why `auto` chose it
  int capability = 0;  ///< compute capability of a GPU, 90 for 9.0; 0: none or unknown
  int devices = 0;     ///< GPUs reported by the driver; 0 for the CPU

  [[nodiscard]] std::string word() const;
};

/// `wanted`: the value of --device. `deadline_s`: for each driver call, 0: none. Throws CannotMeasure for `cuda`
/// without a driver or backend (no silent fallback to the CPU); UsageError for an unknown name, and for cuda:N if the
/// driver reports fewer.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted, const Environment& environment,
                                         double deadline_s = driver_deadline_s);

/// Throws CannotMeasure with the backend's reason.
[[nodiscard]] std::unique_ptr<Backend> open_backend(const DeviceChoice& choice);

/// Throws CannotMeasure with the backend's reason.
void prepare_for_children(const DeviceChoice& choice);

/// The device as reported by the backend in a child process (verb describe-device), completed by NVML. Throws
/// CannotMeasure if the child does not answer within `deadline_s` (0: no limit).
[[nodiscard]] DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment,
                                         double deadline_s = opening_deadline_s);

/// In the child: sends the DeviceInfo of the backend to `output_fd`, then again with the data of NVML.
void report_device(const DeviceChoice& choice, int output_fd);

// The NVIDIA driver, NVML and the module's libraries run in a child process (verb probe): each may hang.

/// As probe_nvidia_driver(). A driver that hangs or crashes is not usable; the reason names the call. Throws
/// CannotMeasure if no child can be started or `stop` is raised; so does query_gpus().
[[nodiscard]] NvidiaDriver query_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop);

/// As survey_gpus(), with the results from before a call that hangs.
[[nodiscard]] GpuSurvey query_gpus(const std::string& program, double deadline_s, const StopFlag& stop);

/// The libraries of the CUDA module. Throws BackendError with the loader's reason, and CannotMeasure if it hangs or
/// crashes.
[[nodiscard]] std::vector<ModuleReport> query_libraries(const std::string& program, double deadline_s,
                                                        const StopFlag& stop);

/// In the child: sends the answer for `subject`, "driver", "gpus" or "libraries", to `output_fd`. Throws UsageError for
/// other subjects.
void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends);

[[nodiscard]] Json to_json(const NvidiaDriver& driver);
/// Throws ReadError, as the two below do.
[[nodiscard]] NvidiaDriver driver_from_json(const Node& node);

[[nodiscard]] Json to_json(const GpuSurvey& survey);
[[nodiscard]] GpuSurvey survey_from_json(const Node& node);

[[nodiscard]] Json to_json(const ModuleSurvey& survey);
[[nodiscard]] ModuleSurvey module_from_json(const Node& node);

/// A line per GPU: memory, clocks, power, temperature, ECC, MIG, NVLink, PCIe, throttle reasons. "-" for unknown
/// values. Ends with a newline; empty without a GPU.
[[nodiscard]] std::string gpu_table(const GpuSurvey& survey, const ConsoleStyle& style);

}  // namespace gpubench
