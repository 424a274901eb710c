// The NVIDIA driver, NVML and the libraries of a backend's module, asked in a child process (verb probe): each may
// hang, and none is called or loaded here.
#pragma once

#include <string>

#include "harness/cli/environment.h"

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

}  // namespace gpubench
