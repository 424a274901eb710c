// What the driver, NVML and the CUDA module said, as a line of JSON: from the child that asked them to the process that
// wants to know.
#pragma once

#include "harness/hardware/gpu_survey.h"
#include "harness/hardware/nvidia.h"
#include "harness/report/json_fwd.h"

namespace gpubench {

class Node;

[[nodiscard]] Json to_json(const NvidiaDriver& driver);
/// Throws ReadError; so does the next.
[[nodiscard]] NvidiaDriver driver_from_json(const Node& node);

[[nodiscard]] Json to_json(const GpuSurvey& survey);
[[nodiscard]] GpuSurvey survey_from_json(const Node& node);

[[nodiscard]] Json to_json(const ModuleSurvey& survey);
[[nodiscard]] ModuleSurvey module_from_json(const Node& node);

}  // namespace gpubench
