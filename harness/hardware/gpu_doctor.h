// What is wrong with this machine's GPUs, their driver and their libraries for measuring. Pure, from facts to findings.
#pragma once

#include <span>
#include <vector>

#include "harness/hardware/doctor.h"
#include "harness/hardware/gpu_survey.h"

namespace gpubench {

/// Libraries first, then the driver against the CUDA version of the library "cudart" among them, then each GPU. Says
/// nothing of a machine without a usable driver (diagnose() does), but for its libraries.
[[nodiscard]] std::vector<Finding> diagnose_gpus(const NvidiaDriver& driver, const GpuSurvey& survey,
                                                 std::span<const ModuleReport> libraries);

}  // namespace gpubench
