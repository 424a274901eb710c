// NVIDIA's management library (libnvidia-ml.so.1, part of the driver), loaded at run time: clocks, power, energy,
// temperature, errors, links. Functions depend on the driver's age, so each is looked up by name. Unknown or
// unsupported values are empty optionals, never zeros. All text is untrusted: it is cut at its buffer's end, and
// callers must make control characters visible.
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

/// Momentary values; read in well under a millisecond.
struct GpuReading {
  std::optional<int> sm_mhz;
  std::optional<int> memory_mhz;
  std::optional<double> power_w;   ///< now, if the device reports it
  bool power_is_average = false;   ///< over the last second, on most architectures
  std::optional<double> energy_j;  ///< since the driver was loaded; updated about every 100 ms
  std::optional<int> temperature_c;
  std::optional<std::uint64_t> reasons;
  std::optional<std::int64_t> uncorrected_errors;  ///< of memory (ECC), since the driver was loaded
};

struct GpuProcess {
  int pid = 0;
  std::optional<std::int64_t> memory_bytes;
};

struct GpuFacts {
  int index = 0;
  std::string name;                       ///< "NVIDIA H200"; empty if unknown, like the next two
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
  std::optional<int> nvlinks;
  std::optional<int> nvlinks_up;
  std::optional<int> pcie_generation;
  std::optional<int> pcie_generation_max;  ///< of device and slot together
  std::optional<int> pcie_width;
  std::optional<int> pcie_width_max;
  std::optional<std::vector<GpuProcess>> processes;  ///< with compute contexts now
  GpuReading now;
};

/// The words (harness/core/telemetry.h) for a set of reason bits, lowest bit first; "bit 12" for an unknown one.
[[nodiscard]] std::vector<std::string> clock_reasons(std::uint64_t bits);

/// "Xid 79 (GPU has fallen off the bus)"; only the number for rare ones.
[[nodiscard]] std::string xid_text(std::uint64_t xid);

/// The loaded and initialized library. Several threads may read its devices.
class Nvml {
 public:
  /// Throws BackendError if the library cannot be loaded, is not NVML, or does not start (with its message).
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::string driver_version() const;  ///< "580.65.06"; empty if unknown
  [[nodiscard]] std::optional<int> cuda_version() const;
  [[nodiscard]] std::string path() const;  ///< of the loaded file; empty if unknown

  /// A device's handle, valid as long as this object.
  using Device = void*;
  /// In the library's order, independent of CUDA_VISIBLE_DEVICES. Null for a device that cannot be opened.
  [[nodiscard]] std::vector<Device> devices() const;
  /// By PCI bus id ("0000:18:00.0" or "18:00.0") or UUID ("GPU-..."). Null if there is none.
  [[nodiscard]] Device find(const std::string& id) const;
  /// By the UUID or PCI bus id in the device's properties.
  [[nodiscard]] Device find(const DeviceInfo& device) const;

  [[nodiscard]] GpuFacts facts(Device device, int index) const;
  [[nodiscard]] GpuReading read(Device device) const;
  [[nodiscard]] MemoryErrors memory_errors(Device device) const;

  /// Critical errors (Xids) of a device since the last call, starting now. Empty if the library or the device has no
  /// events. Must not outlive this object.
  using XidEvents = std::function<std::vector<std::uint64_t>()>;
  [[nodiscard]] XidEvents watch_xids(Device device) const;

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace gpubench
