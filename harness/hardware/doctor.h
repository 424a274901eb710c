// What is good and what is wrong with this machine for measuring, and how to fix it. Pure, from facts to findings.
#pragma once

#include <string>
#include <vector>

#include "harness/hardware/host.h"
#include "harness/hardware/nvidia.h"

namespace gpubench {

enum class Health { ok, note, warning };

struct Finding {
  Health health = Health::ok;
  std::string code;  ///< stable: "D101"; empty for facts
  std::string text;
  std::string fix;  ///< what to do; empty where nothing needs doing
};

/// Facts and findings in the order in which they should be read.
[[nodiscard]] std::vector<Finding> diagnose(const HostInfo& host, const NvidiaDriver& driver, bool has_cuda_backend);

}  // namespace gpubench
