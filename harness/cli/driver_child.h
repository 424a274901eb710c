// The NVIDIA driver, NVML and the libraries of a backend's module, asked in a child process (verb probe): each may
// hang, and none is called or loaded here.
#pragma once

#include <string>

#include "harness/cli/environment.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/report/json_parser.h"

namespace gpubench {

/// As probe_nvidia_driver(); a driver that hangs or crashes is not usable, and the reason names the call. Throws
/// CannotMeasure where no child can be started, or `stop` is raised; so does the next.
[[nodiscard]] NvidiaDriver ask_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop);

/// As survey_gpus(), with what was found out before a call that hangs.
[[nodiscard]] GpuSurvey ask_gpus(const std::string& program, double deadline_s, const StopFlag& stop);

/// The libraries of the CUDA backend's module. Throws BackendError with the loader's reason, and CannotMeasure where it
/// hangs or crashes.
[[nodiscard]] std::vector<ModuleReport> ask_libraries(const std::string& program, double deadline_s,
                                                      const StopFlag& stop);

/// The child's side: asks what `subject` names, "driver", "gpus" or "libraries", and tells it to `output_fd`. Throws
/// UsageError for another.
void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends);

// What the driver, NVML and the CUDA module said, as a line of JSON: from the child that asked them to the process that
// wants to know.

class Node;

[[nodiscard]] Json to_json(const NvidiaDriver& driver);
/// Throws ReadError; so does the next.
[[nodiscard]] NvidiaDriver driver_from_json(const Node& node);

[[nodiscard]] Json to_json(const GpuSurvey& survey);
[[nodiscard]] GpuSurvey survey_from_json(const Node& node);

[[nodiscard]] Json to_json(const ModuleSurvey& survey);
[[nodiscard]] ModuleSurvey module_from_json(const Node& node);

}  // namespace gpubench
