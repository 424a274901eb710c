// The GPUs of this machine before anything runs on them: whether a driver is usable, what NVML reports of each GPU,
// which libraries the CUDA module loaded, and which recipes a GPU has arithmetic for. Nothing of NVIDIA's is linked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/backend.h"
#include "harness/hardware/nvml.h"

namespace gpubench {

struct NvidiaDriver {
  bool usable = false;  ///< libcuda.so.1 loads, initializes and sees a device
  int devices = 0;
  int cuda_version = 0;             ///< the newest CUDA that the driver supports: 13000 for 13.0; 0: not known
  bool hardware_seen = false;       ///< a PCI device of NVIDIA's is there, driver or not
  bool missing = false;             ///< libcuda.so.1 cannot be loaded, or is the toolkit's stub
  std::string reason;               ///< why not usable: "no NVIDIA driver: libcuda.so.1 cannot be loaded (...)"
  std::vector<int> capabilities{};  ///< compute capability of each device, 90 for 9.0; 0: not reported
};

/// Whether a PCI device of NVIDIA's is there; asks the kernel, not the driver.
[[nodiscard]] bool nvidia_hardware_seen(const std::string& root = "");

/// Called with the name of each library call before it is made, so that one that hangs or crashes is known.
using CallNotice = std::function<void(std::string_view call)>;

/// Loads libcuda.so.1, if it is there, and queries it; no device is opened. `root` as for read_host(): where /sys is
/// looked at. `library`: for tests.
[[nodiscard]] NvidiaDriver probe_nvidia_driver(const std::string& root = "",
                                               const std::string& library = "libcuda.so.1",
                                               const CallNotice& before = {});

/// The sentence for a result of cuInit() or cuDeviceGetCount(); pure, so that every case can be tested.
[[nodiscard]] std::string cuda_failure(int status, const std::string& call);

/// A library that a backend's module has loaded, or tried to load.
struct ModuleReport {
  std::string name;     ///< "cublaslt"
  std::string version;  ///< as the library itself says; empty: it could not be loaded
  std::string path;     ///< of its file; empty where it is part of the module, or not known
};

struct ModuleSurvey {
  std::string failure{};  ///< why the module cannot be loaded; empty: it can
  std::vector<ModuleReport> libraries{};
};

struct GpuSurvey {
  std::string failure{};                ///< why NVML cannot be used; empty: it can
  std::string nvml_path{};              ///< of the library that was loaded
  std::string driver_version{};         ///< "580.65.06"
  std::optional<int> cuda_version{};    ///< the newest that the driver supports, 13000 for 13.0
  std::vector<GpuFacts> gpus{};         ///< in NVML's order
  std::vector<int> unresponsive{};      ///< indices of devices that do not respond
};

/// Queries NVML. Never throws: what is wrong is part of the survey. `library`: for tests.
[[nodiscard]] GpuSurvey survey_gpus(const std::string& library = "libnvidia-ml.so.1", const CallNotice& before = {});

/// Adds to a CUDA device what NVML knows of it and the backend did not say: UUID, highest clocks, bus width, power
/// limit, ECC, MIG, driver (device_property's names). Does nothing for other devices, or where NVML does not find it.
void add_gpu_properties(DeviceInfo& device, const std::string& library = "libnvidia-ml.so.1");

/// A recipe and the compute capability that matrix products of its operands need, 89 for 8.9.
struct GpuRecipe {
  std::string name;
  int min_capability = 0;  ///< 0: every GPU has it
};

/// All recipes. Block-scaled operands need 10.0, other 8-bit ones 8.9, bf16 and TF32 ones 8.0 (PTX ISA, mma and wgmma:
/// target architectures).
[[nodiscard]] std::vector<GpuRecipe> gpu_recipes();

/// The recipes that a GPU of this compute capability has; all of them where it is not known (0).
[[nodiscard]] std::vector<std::string> recipes_of_gpu(int capability);

/// What it lacks, with the reason: "f8_hybrid, f8_hybrid_fast need compute capability 8.9; this device has 8.0".
/// Empty where it lacks nothing, or its capability is not known.
[[nodiscard]] std::string recipes_lacking(int capability);

}  // namespace gpubench
