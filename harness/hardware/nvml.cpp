#include "harness/hardware/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "harness/core/backend.h"
#include "harness/core/error.h"
#include "harness/core/telemetry.h"
#include "harness/hardware/nvml_calls.h"

namespace gpubench {

struct Nvml::Calls {
  explicit Calls(void* loaded) : library(loaded) {}

  [[nodiscard]] nvml::Symbol at(const char* newest, const char* older = nullptr) const {
    return nvml::lookup(library, newest, older);
  }

  void* library;
  nvml::Status (*init)() = at("nvmlInit_v2", "nvmlInit");
  nvml::Status (*shutdown)() = at("nvmlShutdown");
  const char* (*error_text)(nvml::Status) = at("nvmlErrorString");
  nvml::Status (*driver)(char*, nvml::Number) = at("nvmlSystemGetDriverVersion");
  nvml::Status (*cuda)(int*) = at("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion");
  nvml::Status (*count)(nvml::Number*) = at("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
  nvml::Status (*by_index)(nvml::Number, nvml::Device*) = at("nvmlDeviceGetHandleByIndex_v2",
                                                             "nvmlDeviceGetHandleByIndex");
  nvml::Status (*by_bus)(const char*, nvml::Device*) = at("nvmlDeviceGetHandleByPciBusId_v2",
                                                          "nvmlDeviceGetHandleByPciBusId");
  nvml::Status (*by_uuid)(const char*, nvml::Device*) = at("nvmlDeviceGetHandleByUUID");
  nvml::GetText name = at("nvmlDeviceGetName");
  nvml::GetText uuid = at("nvmlDeviceGetUUID");
  nvml::Status (*pci)(nvml::Device, nvml::PciInfo*) = at("nvmlDeviceGetPciInfo_v3");
  nvml::Status (*memory)(nvml::Device, nvml::Memory*) = at("nvmlDeviceGetMemoryInfo");
  nvml::Status (*capability)(nvml::Device, int*, int*) = at("nvmlDeviceGetCudaComputeCapability");
  nvml::GetOfKind clock = at("nvmlDeviceGetClockInfo");
  nvml::GetOfKind max_clock = at("nvmlDeviceGetMaxClockInfo");
  nvml::GetOfKind temperature = at("nvmlDeviceGetTemperature");
  nvml::GetNumber bus_bits = at("nvmlDeviceGetMemoryBusWidth");
  nvml::GetNumber power = at("nvmlDeviceGetPowerUsage");
  nvml::GetFields fields = at("nvmlDeviceGetFieldValues");
  nvml::GetNumber power_limit = at("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit");
  nvml::GetPair power_range = at("nvmlDeviceGetPowerManagementLimitConstraints");
  nvml::GetLong energy = at("nvmlDeviceGetTotalEnergyConsumption");
  nvml::GetLong reasons = at("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  nvml::GetNumber persistence = at("nvmlDeviceGetPersistenceMode");
  nvml::GetPair ecc = at("nvmlDeviceGetEccMode");
  nvml::Status (*errors)(nvml::Device, int, int, nvml::Long*) = at("nvmlDeviceGetTotalEccErrors");
  nvml::GetPair mig = at("nvmlDeviceGetMigMode");
  nvml::Status (*link)(nvml::Device, nvml::Number, nvml::Number*) = at("nvmlDeviceGetNvLinkState");
  nvml::GetNumber pcie_generation = at("nvmlDeviceGetCurrPcieLinkGeneration");
  nvml::GetNumber pcie_generation_max = at("nvmlDeviceGetMaxPcieLinkGeneration");
  nvml::GetNumber pcie_width = at("nvmlDeviceGetCurrPcieLinkWidth");
  nvml::GetNumber pcie_width_max = at("nvmlDeviceGetMaxPcieLinkWidth");
  nvml::Status (*new_events)(nvml::EventSet*) = at("nvmlEventSetCreate");
  nvml::Status (*free_events)(nvml::EventSet) = at("nvmlEventSetFree");
  nvml::Status (*register_events)(nvml::Device, nvml::Long, nvml::EventSet) = at("nvmlDeviceRegisterEvents");
  nvml::Status (*wait_for_event)(nvml::EventSet, nvml::EventData*, nvml::Number) = at("nvmlEventSetWait_v2",
                                                                                      "nvmlEventSetWait");
  nvml::Status (*processes)(nvml::Device, nvml::Number*,
                            nvml::Process*) = at("nvmlDeviceGetComputeRunningProcesses_v3");

  [[nodiscard]] std::string words(nvml::Status status) const {
    const char* text = error_text == nullptr ? nullptr : error_text(status);
    return text == nullptr ? fmt::format("error {}", status) : fmt::format("error {}, {}", status, text);
  }
};

namespace {

constexpr std::size_t text_bytes = 96;      // the largest that NVML requires
constexpr nvml::Number max_devices = 1024;  // more would be nonsense
constexpr nvml::Number max_processes = 4096;
constexpr double milli = 1e-3;

// False if the library lacks the function.
template <class... Parameters>
bool succeeds(nvml::Status (*get)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  return get != nullptr && get(arguments...) == nvml::success;
}

std::optional<nvml::Number> number(nvml::GetNumber get, nvml::Device device) {
  nvml::Number value = nvml::no_number;
  if (!succeeds(get, device, &value) || value == nvml::no_number) return std::nullopt;
  return value;
}

std::optional<nvml::Number> power_now(nvml::GetFields get, nvml::Device device) {
  nvml::FieldValue field{};
  field.id = nvml::power_now;
  field.status = -1;
  if (!succeeds(get, device, 1, &field) || field.status != nvml::success) return std::nullopt;
  if (field.type != nvml::type_of_number || field.value.as_number == nvml::no_number) return std::nullopt;
  return field.value.as_number;
}

std::optional<int> small(std::optional<nvml::Number> value) {
  if (!value || *value > static_cast<nvml::Number>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<int> of_kind(nvml::GetOfKind get, nvml::Device device, int kind) {
  nvml::Number value = nvml::no_number;
  if (!succeeds(get, device, kind, &value)) return std::nullopt;
  return small(value);
}

std::optional<nvml::Long> long_number(nvml::GetLong get, nvml::Device device) {
  nvml::Long value = nvml::no_long;
  if (!succeeds(get, device, &value) || value == nvml::no_long) return std::nullopt;
  return value;
}

std::optional<std::int64_t> count(nvml::Long value) {
  if (value > static_cast<nvml::Long>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// The first of a pair: the current value (the second is pending, or the upper end).
std::optional<std::pair<nvml::Number, nvml::Number>> pair_of(nvml::GetPair get, nvml::Device device) {
  nvml::Number first = nvml::no_number;
  nvml::Number second = nvml::no_number;
  if (!succeeds(get, device, &first, &second) || first == nvml::no_number) return std::nullopt;
  return std::pair(first, second);
}

std::optional<bool> enabled(nvml::GetPair get, nvml::Device device) {
  const auto modes = pair_of(get, device);
  return modes ? std::optional(modes->first != 0) : std::nullopt;
}

std::optional<double> thousandth(std::optional<nvml::Number> value) {
  return value ? std::optional(milli * static_cast<double>(*value)) : std::nullopt;
}

// `device`: a device, or empty for the library's text.
template <class Get, class... Device>
std::string text(Get get, Device... device) {
  std::array<char, text_bytes + 1> buffer{};  // one byte more than the library gets, so that the text is terminated
  if (!succeeds(get, device..., buffer.data(), text_bytes)) return "";
  buffer.back() = '\0';
  return buffer.data();
}

std::optional<std::vector<GpuProcess>> list_processes(nvml::Status (*get)(nvml::Device, nvml::Number*, nvml::Process*),
                                                      nvml::Device device) {
  if (get == nullptr) return std::nullopt;
  nvml::Number found = 0;
  const nvml::Status status = get(device, &found, nullptr);
  if (status == nvml::success && found == 0) return std::vector<GpuProcess>{};
  if (status != nvml::success && status != nvml::insufficient_size) return std::nullopt;
  // Some may have started since the count.
  const nvml::Number room = std::min(found, max_processes) + 8;
  std::vector<nvml::Process> raw(room);
  found = room;
  if (get(device, &found, raw.data()) != nvml::success) return std::nullopt;
  std::vector<GpuProcess> list;
  for (const nvml::Process& process : std::span(raw).first(std::min(found, room))) {
    list.push_back({static_cast<int>(process.pid),
                    process.memory_bytes == nvml::no_long ? std::nullopt : count(process.memory_bytes)});
  }
  return list;
}

void read_links(nvml::Status (*get)(nvml::Device, nvml::Number, nvml::Number*), nvml::Device device, GpuFacts& facts) {
  if (get == nullptr) return;
  int there = 0;
  int up = 0;
  for (nvml::Number link = 0; link < nvml::max_links; ++link) {
    nvml::Number active = 0;
    if (get(device, link, &active) != nvml::success) break;
    ++there;
    up += active != 0 ? 1 : 0;
  }
  if (there == 0) return;  // no links, or an error, which devices without links return
  facts.nvlinks = there;
  facts.nvlinks_up = up;
}

void* load(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* why = ::dlerror();
  throw BackendError(
      fmt::format("NVML cannot be loaded from {} ({})", library, why == nullptr ? "no reason given" : why));
}

}  // namespace

std::vector<std::string> clock_reasons(std::uint64_t bits) {
  static constexpr std::array words{clock_reason::idle,
                                    clock_reason::application_clocks,
                                    clock_reason::sw_power_cap,
                                    clock_reason::hw_slowdown,
                                    clock_reason::sync_boost,
                                    clock_reason::sw_thermal_slowdown,
                                    clock_reason::hw_thermal_slowdown,
                                    clock_reason::hw_power_brake,
                                    clock_reason::display_clocks};
  std::vector<std::string> reasons;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1U) == 0) continue;
    reasons.push_back(bit < words.size() ? std::string(words[bit]) : fmt::format("bit {}", bit));
  }
  return reasons;
}

std::string xid_text(std::uint64_t xid) {
  // NVIDIA, "Xid Errors" (docs.nvidia.com/deploy/xid-errors).
  constexpr std::pair<std::uint64_t, std::string_view> names[] = {
      {13, "graphics engine exception"}, {31, "GPU memory page fault"}, {43, "GPU stopped processing"},
      {45, "preemptive cleanup"},        {48, "double-bit ECC error"},  {63, "row remapping recorded"},
      {64, "row remapping failed"},      {74, "NVLink error"},          {79, "GPU has fallen off the bus"},
      {94, "contained ECC error"},       {95, "uncontained ECC error"}, {119, "GSP timeout"}};
  for (const auto& [number, name] : names) {
    if (number == xid) return fmt::format("Xid {} ({})", xid, name);
  }
  return fmt::format("Xid {}", xid);
}

// The library stays loaded: its threads would crash without its code.
Nvml::Nvml(const std::string& library) : calls_(std::make_unique<Calls>(load(library))) {
  if (calls_->init == nullptr || calls_->shutdown == nullptr)
    throw BackendError(fmt::format("{} has no nvmlInit or no nvmlShutdown: it is not NVML", library));
  if (const nvml::Status status = calls_->init(); status != nvml::success)
    throw BackendError(fmt::format("NVML does not start: nvmlInit returned {}", calls_->words(status)));
}

Nvml::~Nvml() { calls_->shutdown(); }

std::string Nvml::driver_version() const { return text(calls_->driver); }

std::optional<int> Nvml::cuda_version() const {
  int version = 0;
  if (!succeeds(calls_->cuda, &version) || version <= 0) return std::nullopt;
  return version;
}

std::string Nvml::path() const {
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<void*>(calls_->init), &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : "";
}

std::vector<Nvml::Device> Nvml::devices() const {
  nvml::Number found = 0;
  if (calls_->count == nullptr || calls_->by_index == nullptr || calls_->count(&found) != nvml::success) return {};
  std::vector<Device> all(std::min(found, max_devices), nullptr);
  for (nvml::Number i = 0; i < all.size(); ++i) {
    if (calls_->by_index(i, &all[i]) != nvml::success) all[i] = nullptr;
  }
  return all;
}

Nvml::Device Nvml::find(const std::string& id) const {
  const auto get = id.starts_with("GPU-") || id.starts_with("MIG-") ? calls_->by_uuid : calls_->by_bus;
  Device device = nullptr;
  if (!succeeds(get, id.c_str(), &device)) return nullptr;
  return device;
}

Nvml::Device Nvml::find(const DeviceInfo& device) const {
  for (const std::string_view key : {device_property::uuid, device_property::pci_bus_id}) {
    const std::string id = property(device, key);
    if (const Device handle = id.empty() ? nullptr : find(id); handle != nullptr) return handle;
  }
  return nullptr;
}

GpuReading Nvml::read(Device device) const {
  GpuReading reading;
  reading.sm_mhz = of_kind(calls_->clock, device, nvml::sm_clock);
  reading.memory_mhz = of_kind(calls_->clock, device, nvml::memory_clock);
  reading.temperature_c = of_kind(calls_->temperature, device, nvml::gpu_temperature);
  reading.power_w = thousandth(power_now(calls_->fields, device));
  if (!reading.power_w) {
    reading.power_w = thousandth(number(calls_->power, device));
    reading.power_is_average = reading.power_w.has_value();
  }
  if (const auto millijoules = long_number(calls_->energy, device))
    reading.energy_j = milli * static_cast<double>(*millijoules);
  reading.reasons = long_number(calls_->reasons, device);
  reading.uncorrected_errors = memory_errors(device).uncorrected;
  return reading;
}

MemoryErrors Nvml::memory_errors(Device device) const {
  const auto counted = [&](int kind) -> std::optional<std::int64_t> {
    nvml::Long errors = nvml::no_long;
    if (!succeeds(calls_->errors, device, kind, nvml::since_driver_load, &errors)) return std::nullopt;
    return count(errors);
  };
  return {counted(nvml::corrected), counted(nvml::uncorrected)};
}

Nvml::XidEvents Nvml::watch_xids(Device device) const {
  constexpr int most = 64;  // per call: a failing device must not block the run
  const Calls& calls = *calls_;
  nvml::EventSet made = nullptr;
  if (calls.free_events == nullptr || calls.register_events == nullptr || calls.wait_for_event == nullptr ||
      !succeeds(calls.new_events, &made))
    return {};
  const std::shared_ptr<void> events(made, [&calls](nvml::EventSet set) { calls.free_events(set); });
  if (calls.register_events(device, nvml::xid_critical_error, made) != nvml::success) return {};
  return [&calls, events] {
    std::vector<std::uint64_t> xids;
    nvml::EventData event{};
    for (int i = 0; i < most && calls.wait_for_event(events.get(), &event, 0) == nvml::success; ++i) {
      if (event.type == nvml::xid_critical_error) xids.push_back(event.data);
    }
    return xids;
  };
}

GpuFacts Nvml::facts(Device device, int index) const {
  GpuFacts facts;
  facts.index = index;
  facts.name = text(calls_->name, device);
  facts.uuid = text(calls_->uuid, device);
  nvml::PciInfo pci{};
  if (succeeds(calls_->pci, device, &pci)) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    facts.pci_bus = pci.bus_id;
  }
  nvml::Memory memory{};
  if (succeeds(calls_->memory, device, &memory)) {
    facts.memory_bytes = count(memory.total);
    facts.free_bytes = count(memory.free);
  }
  int major = 0;
  int minor = 0;
  const bool told = succeeds(calls_->capability, device, &major, &minor);
  if (told && major > 0 && major < 100 && minor >= 0 && minor < 10) facts.compute_capability = 10 * major + minor;
  facts.max_sm_mhz = of_kind(calls_->max_clock, device, nvml::sm_clock);
  facts.max_memory_mhz = of_kind(calls_->max_clock, device, nvml::memory_clock);
  facts.memory_bus_bits = small(number(calls_->bus_bits, device));
  facts.power_limit_w = thousandth(number(calls_->power_limit, device));
  if (const auto range = pair_of(calls_->power_range, device); range && range->second != nvml::no_number)
    facts.power_limit_max_w = milli * static_cast<double>(range->second);
  if (const auto mode = number(calls_->persistence, device)) facts.persistence = *mode != 0;
  facts.ecc = enabled(calls_->ecc, device);
  facts.mig = enabled(calls_->mig, device);
  facts.corrected_errors = memory_errors(device).corrected;
  read_links(calls_->link, device, facts);
  facts.pcie_generation = small(number(calls_->pcie_generation, device));
  facts.pcie_generation_max = small(number(calls_->pcie_generation_max, device));
  facts.pcie_width = small(number(calls_->pcie_width, device));
  facts.pcie_width_max = small(number(calls_->pcie_width_max, device));
  facts.processes = list_processes(calls_->processes, device);
  facts.now = read(device);
  return facts;
}

}  // namespace gpubench
