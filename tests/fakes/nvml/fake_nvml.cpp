// FAKE_NVML_OLD: an old driver, with older names, without energy, links, MIG and bus width.
// FAKE_NVML_FOREIGN: a library that is not NVML.
#include "tests/fakes/nvml/fake_nvml.h"

#include <algorithm>
#include <cstring>

#include "tests/fakes/cuda/hang.h"

namespace gpubench {
namespace {

constexpr int invalid_argument = 2;
constexpr int not_found = 6;
constexpr int insufficient_size = 7;

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char short_bus_id[16];
  unsigned domain, bus, device, ids, subsystem;
  char bus_id[32];
};
struct FieldValue {
  unsigned id, scope;
  long long timestamp, latency_us;
  int type, status;
  union {
    double as_double;
    unsigned as_number;
    unsigned long long as_long;
  } value;
};
struct Process {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};

struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct EventSet {
  FakeGpu* gpu = nullptr;
};

int told(const char* function) {
  hang_in(function);
  const auto& answers = fake_nvml()->answers;
  const auto found = answers.find(function);
  return found == answers.end() ? 0 : found->second;
}

[[maybe_unused]] int put_text(const char* function, const std::string& value, char* text, unsigned length) {
  if (const int status = told(function); status != 0) return status;
  if (fake_nvml()->endless_text) {
    std::memset(text, 'x', length);
    return 0;
  }
  if (value.size() + 1 > length) return insufficient_size;
  std::memcpy(text, value.c_str(), value.size() + 1);
  return 0;
}

template <class T, class V>
int put(const char* function, V value, T* place) {
  if (const int status = told(function); status != 0) return status;
  *place = static_cast<T>(value);
  return 0;
}

[[maybe_unused]] FakeGpu& gpu(void* device) { return *static_cast<FakeGpu*>(device); }

template <class Match>
int pick(const char* function, void** device, const Match& match) {
  if (const int status = told(function); status != 0) return status;
  for (FakeGpu& one : fake_nvml()->gpus) {
    if (!match(one)) continue;
    *device = &one;
    return 0;
  }
  return not_found;
}

}  // namespace

extern "C" {

FakeNvml* fake_nvml() {
  static FakeNvml state;
  return &state;
}

#ifndef FAKE_NVML_FOREIGN

#ifdef FAKE_NVML_OLD
#define GPUBENCH_NAME(newer, older) older
#else
#define GPUBENCH_NAME(newer, older) newer
#endif

int GPUBENCH_NAME(nvmlInit_v2, nvmlInit)() {
  ++fake_nvml()->starts;
  return told("nvmlInit");
}
int nvmlShutdown() {
  ++fake_nvml()->stops;
  return told("nvmlShutdown");
}
const char* nvmlErrorString(int status) { return status == 9 ? "Driver Not Loaded" : nullptr; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return put_text("nvmlSystemGetDriverVersion", fake_nvml()->driver, text, length);
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  return put("nvmlSystemGetCudaDriverVersion", fake_nvml()->cuda, version);
}
int GPUBENCH_NAME(nvmlDeviceGetCount_v2, nvmlDeviceGetCount)(unsigned* count) {
  return put("nvmlDeviceGetCount", fake_nvml()->gpus.size(), count);
}
int GPUBENCH_NAME(nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex)(unsigned index, void** device) {
  return pick("nvmlDeviceGetHandleByIndex", device,
              [&](const FakeGpu& one) { return &one == fake_nvml()->gpus.data() + index; });
}
int GPUBENCH_NAME(nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetHandleByPciBusId)(const char* id, void** device) {
  return pick("nvmlDeviceGetHandleByPciBusId", device, [&](const FakeGpu& one) { return one.pci_bus == id; });
}
int nvmlDeviceGetHandleByUUID(const char* id, void** device) {
  return pick("nvmlDeviceGetHandleByUUID", device, [&](const FakeGpu& one) { return one.uuid == id; });
}
int nvmlDeviceGetName(void* d, char* text, unsigned length) {
  return put_text("nvmlDeviceGetName", gpu(d).name, text, length);
}
int nvmlDeviceGetUUID(void* d, char* text, unsigned length) {
  return put_text("nvmlDeviceGetUUID", gpu(d).uuid, text, length);
}
int nvmlDeviceGetMemoryInfo(void* d, Memory* memory) {
  return put("nvmlDeviceGetMemoryInfo",
             Memory{gpu(d).memory_bytes, gpu(d).free_bytes, gpu(d).memory_bytes - gpu(d).free_bytes}, memory);
}
int nvmlDeviceGetCudaComputeCapability(void* d, int* major, int* minor) {
  *minor = gpu(d).minor;
  return put("nvmlDeviceGetCudaComputeCapability", gpu(d).major, major);
}
int nvmlDeviceGetClockInfo(void* d, int kind, unsigned* mhz) {
  return put("nvmlDeviceGetClockInfo", kind == 2 ? gpu(d).memory_mhz : gpu(d).sm_mhz, mhz);
}
int nvmlDeviceGetMaxClockInfo(void* d, int kind, unsigned* mhz) {
  return put("nvmlDeviceGetMaxClockInfo", kind == 2 ? gpu(d).max_memory_mhz : gpu(d).max_sm_mhz, mhz);
}
int nvmlDeviceGetTemperature(void* d, int, unsigned* celsius) {
  return put("nvmlDeviceGetTemperature", gpu(d).temperature_c, celsius);
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetFieldValues(void* d, int count, FieldValue* fields) {
  constexpr int not_supported = 3;
  if (const int status = told("nvmlDeviceGetFieldValues"); status != 0) return status;
  for (int i = 0; i < count; ++i) {
    const bool known = fields[i].id == 186 && fields[i].scope == 0 && gpu(d).power_now_mw != ~0U;
    fields[i].status = known ? 0 : not_supported;
    fields[i].type = 1;
    fields[i].value.as_number = gpu(d).power_now_mw;
  }
  return 0;
}
#endif
int nvmlDeviceGetPowerUsage(void* d, unsigned* milliwatts) {
  return put("nvmlDeviceGetPowerUsage", gpu(d).power_mw, milliwatts);
}
int GPUBENCH_NAME(nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit)(void* d, unsigned* milliwatts) {
  return put("nvmlDeviceGetEnforcedPowerLimit", gpu(d).power_limit_mw, milliwatts);
}
int nvmlDeviceGetPowerManagementLimitConstraints(void* d, unsigned* low, unsigned* high) {
  *low = 200000;
  return put("nvmlDeviceGetPowerManagementLimitConstraints", gpu(d).power_limit_max_mw, high);
}
int GPUBENCH_NAME(nvmlDeviceGetCurrentClocksEventReasons,
                  nvmlDeviceGetCurrentClocksThrottleReasons)(void* d, unsigned long long* reasons) {
  return put("nvmlDeviceGetCurrentClocksEventReasons", gpu(d).reasons, reasons);
}
int nvmlDeviceGetPersistenceMode(void* d, unsigned* mode) {
  return put("nvmlDeviceGetPersistenceMode", gpu(d).persistence, mode);
}
int nvmlDeviceGetEccMode(void* d, unsigned* now, unsigned* pending) {
  *pending = gpu(d).ecc;
  return put("nvmlDeviceGetEccMode", gpu(d).ecc, now);
}
int nvmlDeviceGetTotalEccErrors(void* d, int kind, int counter, unsigned long long* errors) {
  if (counter != 0) return invalid_argument;
  return put("nvmlDeviceGetTotalEccErrors", kind == 1 ? gpu(d).uncorrected : gpu(d).corrected, errors);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void* d, unsigned* value) {
  return put("nvmlDeviceGetCurrPcieLinkGeneration", gpu(d).pcie_generation, value);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void* d, unsigned* value) {
  return put("nvmlDeviceGetMaxPcieLinkGeneration", gpu(d).pcie_generation_max, value);
}
int nvmlDeviceGetCurrPcieLinkWidth(void* d, unsigned* value) {
  return put("nvmlDeviceGetCurrPcieLinkWidth", gpu(d).pcie_width, value);
}
int nvmlDeviceGetMaxPcieLinkWidth(void* d, unsigned* value) {
  return put("nvmlDeviceGetMaxPcieLinkWidth", gpu(d).pcie_width_max, value);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetPciInfo_v3(void* d, Pci* pci) {
  if (const int status = told("nvmlDeviceGetPciInfo"); status != 0) return status;
  return put_text("nvmlDeviceGetPciInfo", gpu(d).pci_bus, pci->bus_id, sizeof pci->bus_id);
}
int nvmlDeviceGetMemoryBusWidth(void* d, unsigned* bits) {
  return put("nvmlDeviceGetMemoryBusWidth", gpu(d).bus_bits, bits);
}
int nvmlDeviceGetTotalEnergyConsumption(void* d, unsigned long long* millijoules) {
  return put("nvmlDeviceGetTotalEnergyConsumption", gpu(d).energy_mj, millijoules);
}
int nvmlDeviceGetMigMode(void* d, unsigned* now, unsigned* pending) {
  *pending = gpu(d).mig;
  return put("nvmlDeviceGetMigMode", gpu(d).mig, now);
}
int nvmlDeviceGetNvLinkState(void* d, unsigned link, unsigned* active) {
  if (link >= gpu(d).links) return invalid_argument;
  return put("nvmlDeviceGetNvLinkState", link < gpu(d).links_up ? 1 : 0, active);
}
int nvmlEventSetCreate(void** set) {
  ++fake_nvml()->event_sets;
  return put("nvmlEventSetCreate", static_cast<void*>(new EventSet), set);
}
int nvmlEventSetFree(void* set) {
  --fake_nvml()->event_sets;
  delete static_cast<EventSet*>(set);
  return told("nvmlEventSetFree");
}
int nvmlDeviceRegisterEvents(void* d, unsigned long long types, void* set) {
  if (types != 8) return invalid_argument;
  static_cast<EventSet*>(set)->gpu = &gpu(d);
  return told("nvmlDeviceRegisterEvents");
}
int nvmlEventSetWait_v2(void* set, EventData* event, unsigned milliseconds) {
  constexpr int timeout = 10;
  if (const int status = told("nvmlEventSetWait"); status != 0) return status;
  FakeGpu* one = static_cast<EventSet*>(set)->gpu;
  if (one == nullptr || milliseconds != 0) return invalid_argument;
  if (one->xids.empty()) return timeout;
  *event = {one, one->xids.front() == 0 ? 4ULL : 8ULL, one->xids.front(), ~0U, ~0U};
  one->xids.erase(one->xids.begin());
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* count, Process* list) {
  if (const int status = told("nvmlDeviceGetComputeRunningProcesses"); status != 0) return status;
  const std::vector<unsigned>& running = gpu(d).processes;
  const unsigned claimed = fake_nvml()->claimed_processes;
  const auto there = static_cast<unsigned>(running.size());
  const unsigned room = *count;
  *count = claimed != 0 ? claimed : there;
  if (room < there || (list == nullptr && *count > 0)) return insufficient_size;
  for (unsigned i = 0; i < there; ++i) list[i] = {running[i], 1000000ULL * running[i], ~0U, ~0U};
  return 0;
}
#endif
#endif

}  // extern "C"
}  // namespace gpubench
