// doctor's table of GPUs.
#pragma once

#include <string>

#include "harness/core/text/text_table.h"
#include "harness/hardware/gpu_survey.h"

namespace gpubench {

/// A line for each GPU: memory, clocks, power, temperature, ECC, MIG, NVLink, PCIe, what holds its
/// clocks back. Ends with a newline; empty where there is none. What is not known is "-".
[[nodiscard]] std::string gpu_table(const GpuSurvey& survey, const ConsoleStyle& style);

}  // namespace gpubench
