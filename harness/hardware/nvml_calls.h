// NVML's C calls, by independent prototypes: the toolkit has no nvml.h. Layouts and numbers are those of NVML's stable
// interface; for a newer function the older name is the second choice.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace gpubench::nvml {

using Status = int;
using Device = void*;
using Number = unsigned int;
using Long = unsigned long long;

inline constexpr Status success = 0;
inline constexpr Status insufficient_size = 7;
/// Written by the library where it has no value.
inline constexpr Number no_number = 0xFFFFFFFFU;
inline constexpr Long no_long = ~Long{0};

inline constexpr int sm_clock = 1;
inline constexpr int memory_clock = 2;
inline constexpr int gpu_temperature = 0;
inline constexpr int corrected = 0;
inline constexpr int uncorrected = 1;
inline constexpr int since_driver_load = 0;
inline constexpr Number max_links = 36;

struct Memory {
  Long total, free, used;
};

struct PciInfo {
  char short_bus_id[16];
  Number domain, bus, device, device_and_vendor, subsystem;
  char bus_id[32];
};

/// Written by nvmlDeviceGetComputeRunningProcesses_v3.
struct Process {
  Number pid;
  Long memory_bytes;
  Number gpu_instance, compute_instance;
};

/// nvmlFieldValue_t; only the number type of power fields is read.
struct FieldValue {
  Number id, scope;
  long long timestamp, latency_us;
  int type;
  Status status;
  union {
    double as_double;
    Number as_number;
    Long as_long;
  } value;
};
/// NVML_FI_DEV_POWER_INSTANT: milliwatts now. From Ampere on (except the A100), nvmlDeviceGetPowerUsage() is an average
/// over one second.
inline constexpr Number power_now = 186;
inline constexpr int type_of_number = 1;  ///< NVML_VALUE_TYPE_UNSIGNED_INT

struct EventData {
  Device device;
  Long type, data;  ///< of a critical error: its Xid
  Number gpu_instance, compute_instance;
};
using EventSet = void*;
inline constexpr Long xid_critical_error = 8;  ///< nvmlEventTypeXidCriticalError

using GetFields = Status (*)(Device, int, FieldValue*);
using GetText = Status (*)(Device, char*, Number);
using GetNumber = Status (*)(Device, Number*);
using GetPair = Status (*)(Device, Number*, Number*);
using GetLong = Status (*)(Device, Long*);
using GetOfKind = Status (*)(Device, int, Number*);

struct Symbol {
  void* address;
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Function*>(address);
  }
};

/// The function of the first of these names that the library has, else null.
inline Symbol lookup(void* library, const char* name, const char* older = nullptr) {
  void* address = ::dlsym(library, name);
  if (address == nullptr && older != nullptr) address = ::dlsym(library, older);
  return {address};
}

}  // namespace gpubench::nvml
