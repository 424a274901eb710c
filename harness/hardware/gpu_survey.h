// Every GPU of this machine as NVML sees it, and the libraries that the CUDA module really loaded: what doctor looks
// at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/hardware/nvidia.h"
#include "harness/hardware/nvml.h"

namespace gpubench {

/// A library that a backend's module has loaded, or tried to.
struct ModuleReport {
  std::string name;     ///< "cublaslt"
  std::string version;  ///< as the library itself says; empty: it could not be loaded
  std::string path;     ///< of its file; empty where it is part of the module, or not known
};

struct ModuleSurvey {
  std::string why_not{};  ///< why the module cannot be loaded; empty: it can
  std::vector<ModuleReport> libraries{};
};

struct GpuSurvey {
  std::string why_not{};                ///< why NVML cannot be used; empty: it can
  std::string nvml_path{};              ///< of the library that was loaded
  std::string driver_version{};         ///< "580.65.06"
  std::optional<int> cuda_version{};    ///< the newest that the driver supports, 13000 for 13.0
  std::vector<GpuFacts> gpus{};         ///< in NVML's order
  std::vector<int> that_do_not_open{};  ///< indices of devices that answer nothing
};

/// Asks NVML. Never throws: what is wrong is part of the survey. `library`: for tests.
[[nodiscard]] GpuSurvey survey_gpus(const std::string& library = "libnvidia-ml.so.1", const CallNotice& before = {});

/// Adds to a CUDA device what NVML knows of it and the backend did not say: UUID, highest clocks, bus width, power
/// limit, ECC, MIG, driver (device_property's names). Does nothing for other devices, or where NVML does not find it.
void add_gpu_properties(DeviceInfo& device, const std::string& library = "libnvidia-ml.so.1");

}  // namespace gpubench
