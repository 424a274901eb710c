#include "harness/hardware/gpu_survey.h"

#include <fmt/format.h>

#include "harness/core/device_property.h"
#include "harness/core/error.h"

namespace gpubench {
namespace {

Nvml::Device find(const Nvml& nvml, const DeviceInfo& device) {
  for (const std::string_view key : {device_property::uuid, device_property::pci_bus_id}) {
    const std::string id = property(device, key);
    const Nvml::Device handle = id.empty() ? nullptr : nvml.find(id);
    if (handle != nullptr) return handle;
  }
  return nullptr;
}

void add(DeviceInfo& device, std::string_view key, const std::string& value) {
  if (!value.empty() && property(device, key).empty()) device.properties.emplace_back(key, value);
}

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string on_or_off(const std::optional<bool>& value) { return !value ? "" : *value ? "on" : "off"; }

}  // namespace

GpuSurvey survey_gpus(const std::string& library, const CallNotice& before) {
  GpuSurvey survey;
  const auto next = [&before](const std::string& call) {
    if (before) before(call);
  };
  try {
    next("nvmlInit");
    const Nvml nvml(library);
    survey.nvml_path = nvml.path();
    next("nvmlSystemGetDriverVersion");
    survey.driver_version = nvml.driver_version();
    survey.cuda_version = nvml.cuda_version();
    next("nvmlDeviceGetHandleByIndex");
    const std::vector<Nvml::Device> devices = nvml.devices();
    for (int i = 0; i < static_cast<int>(devices.size()); ++i) {
      const Nvml::Device device = devices[static_cast<std::size_t>(i)];
      if (device == nullptr) {
        survey.that_do_not_open.push_back(i);
      } else {
        next(fmt::format("reading GPU {}", i));
        survey.gpus.push_back(nvml.facts(device, i));
      }
    }
    next("nvmlShutdown");
  } catch (const BackendError& e) {
    survey.why_not = e.what();
  }
  return survey;
}

void add_gpu_properties(DeviceInfo& device, const std::string& library) {
  if (device.kind != "cuda") return;
  try {
    const Nvml nvml(library);
    const Nvml::Device handle = find(nvml, device);
    if (handle == nullptr) return;
    const GpuFacts facts = nvml.facts(handle, 0);
    add(device, device_property::uuid, facts.uuid);
    add(device, device_property::max_sm_mhz, text(facts.max_sm_mhz));
    add(device, device_property::max_memory_mhz, text(facts.max_memory_mhz));
    add(device, device_property::memory_bus_bits, text(facts.memory_bus_bits));
    add(device, device_property::power_limit_w, text(facts.power_limit_w));
    add(device, device_property::ecc, on_or_off(facts.ecc));
    add(device, device_property::mig, on_or_off(facts.mig));
    add(device, device_property::driver, nvml.driver_version());
  } catch (const BackendError&) {
    // Without NVML the device is what its backend says.
  }
}

}  // namespace gpubench
