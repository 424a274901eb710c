// Findings about this machine's fitness for measuring, with fixes. Pure functions of facts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/hardware/host.h"

namespace gpubench {

enum class Health { ok, note, warning };

struct Finding {
  Health health = Health::ok;
  std::string code;  ///< stable: "D101"; empty for facts
  std::string text;
  std::string fix;  ///< what to do; empty if nothing needs doing
};

[[nodiscard]] Finding fact(std::string text);

/// D205 or D206: other work uses, or recently used, the processors. None on a quiet machine.
[[nodiscard]] std::optional<Finding> busy_finding(const HostInfo& host);

/// Facts and findings in reading order.
[[nodiscard]] std::vector<Finding> diagnose(const HostInfo& host, const NvidiaDriver& driver, bool has_cuda_backend);

/// Instruction sets and library kernels that a backend does not use.
[[nodiscard]] std::vector<Finding> diagnose_unused(const DeviceInfo& device);

/// Libraries first, then the driver against the CUDA version of library "cudart", then each GPU. Without a usable
/// driver only libraries (diagnose() covers the rest).
[[nodiscard]] std::vector<Finding> diagnose_gpus(const NvidiaDriver& driver, const GpuSurvey& survey,
                                                 std::span<const ModuleReport> libraries);

}  // namespace gpubench
