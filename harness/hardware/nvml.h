// NVIDIA's management library, queried without linking it: clocks, power, energy, temperature, errors, links.
//
// It comes with the driver (libnvidia-ml.so.1), not with the toolkit, and which functions it has depends on the
// driver's age. So each function is looked up by name; what a library lacks or a device does not support is "not known"
// (an empty optional), never a crash and never a made-up zero. All text is untrusted: it is cut at its buffer's end,
// and whoever prints it makes control characters visible.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/telemetry.h"

namespace gpubench {

struct DeviceInfo;

/// What changes from moment to moment; read in well under a millisecond.
struct GpuReading {
  std::optional<int> sm_mhz;
  std::optional<int> memory_mhz;
  std::optional<double> power_w;   ///< now, where the device reports that
  bool power_is_average = false;   ///< else over the second before, on most architectures
  std::optional<double> energy_j;  ///< since the driver was loaded; moves about every 100 ms
  std::optional<int> temperature_c;
  std::optional<std::uint64_t> reasons;            ///< bits; see clock_reasons()
  std::optional<std::int64_t> uncorrected_errors;  ///< of memory (ECC), since the driver was loaded
};

struct GpuProcess {
  int pid = 0;
  std::optional<std::int64_t> memory_bytes;
};

/// What a device is and how it is set up.
struct GpuFacts {
  int index = 0;
  std::string name;                       ///< "NVIDIA H200"; empty where not known, like the next two
  std::string uuid;                       ///< "GPU-..."
  std::string pci_bus;                    ///< "00000000:18:00.0"
  std::optional<int> compute_capability;  ///< 90 for 9.0
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> free_bytes;
  std::optional<int> max_sm_mhz;
  std::optional<int> max_memory_mhz;
  std::optional<int> memory_bus_bits;
  std::optional<double> power_limit_w;  ///< in force
  std::optional<double> power_limit_max_w;
  std::optional<bool> persistence;
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<std::int64_t> corrected_errors;  ///< since the driver was loaded
  std::optional<int> nvlinks;                    ///< that the device has
  std::optional<int> nvlinks_up;
  std::optional<int> pcie_generation;
  std::optional<int> pcie_generation_max;  ///< of device and slot together
  std::optional<int> pcie_width;
  std::optional<int> pcie_width_max;
  std::optional<std::vector<GpuProcess>> processes;  ///< that compute on it now
  GpuReading now;
};

/// The words (harness/core/telemetry.h) for a set of reason bits, lowest bit first; "bit 12" for an unknown one.
[[nodiscard]] std::vector<std::string> clock_reasons(std::uint64_t bits);

/// "Xid 79 (GPU has fallen off the bus)"; the number alone where its name is not among those that are often met.
[[nodiscard]] std::string xid_text(std::uint64_t xid);

/// The library, loaded and initialized. Its devices may be read from several threads.
class Nvml {
 public:
  /// Throws BackendError: the library cannot be loaded, is not NVML, or does not start (with its own words).
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;  // owns the library's initialization
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::string driver_version() const;  ///< "580.65.06"; empty where not known
  [[nodiscard]] std::optional<int> cuda_version() const;
  [[nodiscard]] std::string path() const;  ///< of the file that was loaded; empty where not known

  /// A device's handle, valid as long as this object.
  using Device = void*;
  /// In the library's order, which CUDA_VISIBLE_DEVICES does not change. A device that cannot be opened is null.
  [[nodiscard]] std::vector<Device> devices() const;
  /// By PCI bus id ("0000:18:00.0"; "18:00.0" as well) or UUID ("GPU-..."). Null if there is none.
  [[nodiscard]] Device find(const std::string& id) const;
  /// By the UUID or the PCI bus id in the device's properties.
  [[nodiscard]] Device find(const DeviceInfo& device) const;

  [[nodiscard]] GpuFacts facts(Device device, int index) const;
  [[nodiscard]] GpuReading read(Device device) const;
  [[nodiscard]] MemoryErrors memory_errors(Device device) const;

  /// The critical errors (Xids) of a device that the driver reported since the last call, from now on. Empty where the
  /// library or the device has no events. Must not outlive this object.
  using XidEvents = std::function<std::vector<std::uint64_t>()>;
  [[nodiscard]] XidEvents watch_xids(Device device) const;

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace gpubench
