// The GPUs of this machine before anything runs on them: driver, NVML facts, libraries loaded by the CUDA module, and
// the recipes that a GPU supports. Links no NVIDIA library.
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
  int cuda_version = 0;             ///< newest CUDA that the driver supports: 13000 for 13.0; 0: unknown
  bool hardware_seen = false;       ///< an NVIDIA PCI device exists, with or without a driver
  bool missing = false;             ///< libcuda.so.1 cannot be loaded, or is the toolkit's stub
  std::string reason;               ///< why not usable: "no NVIDIA driver: libcuda.so.1 cannot be loaded (...)"
  std::vector<int> capabilities{};  ///< compute capability of each device, 90 for 9.0; 0: unknown
};

/// Whether an NVIDIA PCI device exists, according to the kernel.
[[nodiscard]] bool nvidia_hardware_seen(const std::string& root = "");

/// Called with the name of each library call before it is made, to identify one that hangs or crashes.
using CallNotice = std::function<void(std::string_view call)>;

/// Loads and queries libcuda.so.1, if present; opens no device. `root`: parent of /sys, as for read_host(). `library`:
/// for tests.
[[nodiscard]] NvidiaDriver probe_nvidia_driver(const std::string& root = "",
                                               const std::string& library = "libcuda.so.1",
                                               const CallNotice& before = {});

/// Message for a result of cuInit() or cuDeviceGetCount(); pure, for tests.
[[nodiscard]] std::string cuda_failure(int status, const std::string& call);

struct ModuleReport {
  std::string name;     ///< "cublaslt"
  std::string version;  ///< reported by the library; empty: it could not be loaded
  std::string path;     ///< of its file; empty if it is part of the module or unknown
};

struct ModuleSurvey {
  std::string failure{};  ///< why the module cannot be loaded; empty if it can
  std::vector<ModuleReport> libraries{};
};

struct GpuSurvey {
  std::string failure{};              ///< why NVML is unusable; empty if it is usable
  std::string nvml_path{};            ///< of the loaded library
  std::string driver_version{};       ///< "580.65.06"
  std::optional<int> cuda_version{};  ///< newest CUDA that the driver supports, 13000 for 13.0
  std::vector<GpuFacts> gpus{};       ///< in NVML's order
  std::vector<int> unresponsive{};    ///< indices of devices that do not respond
};

/// Queries NVML. Never throws: the survey contains failures. `library`: for tests.
[[nodiscard]] GpuSurvey survey_gpus(const std::string& library = "libnvidia-ml.so.1", const CallNotice& before = {});

/// Adds NVML's facts to a CUDA device where the backend has none: UUID, highest clocks, bus width, power limit, ECC,
/// MIG, driver (device_property's names). No effect on other devices, or on devices that NVML does not find.
void add_gpu_properties(DeviceInfo& device, const std::string& library = "libnvidia-ml.so.1");

/// A recipe and the compute capability that its matrix products need, 89 for 8.9.
struct GpuRecipe {
  std::string name;
  int min_capability = 0;  ///< 0: every GPU
};

/// All recipes. Block-scaled operands need 10.0, other 8-bit ones 8.9, bf16 and TF32 ones 8.0 (PTX ISA, mma and wgmma:
/// target architectures).
[[nodiscard]] std::vector<GpuRecipe> gpu_recipes();

/// The recipes of a GPU of this compute capability; all if unknown (0).
[[nodiscard]] std::vector<std::string> recipes_of_gpu(int capability);

/// The unsupported recipes, with the reason: "f8_hybrid, f8_hybrid_fast need compute capability 8.9; this device has
/// 8.0". Empty if there are none, or the capability is unknown.
[[nodiscard]] std::string recipes_lacking(int capability);

}  // namespace gpubench
