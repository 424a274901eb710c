// The NVIDIA driver and NVML, asked in a child process (verb probe): either may hang, and neither is called here.
#pragma once

#include <string>

#include "harness/cli/environment.h"

namespace gpubench {

/// As probe_nvidia_driver(); a driver that hangs or crashes is not usable, and the reason names the call. Throws
/// CannotMeasure where no child can be started, or `stop` is raised; so does the next.
[[nodiscard]] NvidiaDriver ask_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop);

/// As survey_gpus(), with what was found out before a call that hangs.
[[nodiscard]] GpuSurvey ask_gpus(const std::string& program, double deadline_s, const StopFlag& stop);

/// The child's side: asks what `subject` names, "driver" or "gpus", and tells it to `output_fd`. Throws UsageError for
/// another.
void probe(const std::string& subject, int output_fd);

}  // namespace gpubench
