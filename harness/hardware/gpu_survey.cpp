#include "harness/hardware/gpu_survey.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "harness/core/backend.h"
#include "harness/core/error.h"
#include "harness/core/recipe.h"
#include "harness/hardware/nvml_calls.h"

namespace gpubench {
namespace {

// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
constexpr int capability_major = 75;
constexpr int capability_minor = 76;
constexpr int stub_library = 34;  // CUDA_ERROR_STUB_LIBRARY

void say(const CallNotice& before, std::string_view call) {
  if (before) before(call);
}

int capability_of(void* library, int ordinal, const CallNotice& before) {
  int (*get)(int*, int) = nvml::lookup(library, "cuDeviceGet");
  int (*attribute)(int*, int, int) = nvml::lookup(library, "cuDeviceGetAttribute");
  int device = 0;
  int high = 0;
  int low = 0;
  if (get == nullptr || attribute == nullptr) return 0;
  say(before, "cuDeviceGet");
  if (get(&device, ordinal) != 0) return 0;
  say(before, "cuDeviceGetAttribute");
  const bool told = attribute(&high, capability_major, device) == 0 && attribute(&low, capability_minor, device) == 0;
  return told ? 10 * high + low : 0;
}

// The driver's stable C calls return 0 for success.
void ask(void* library, NvidiaDriver& driver, const CallNotice& before) {
  int (*version)(int*) = nvml::lookup(library, "cuDriverGetVersion");
  int (*init)(unsigned) = nvml::lookup(library, "cuInit");
  int (*count)(int*) = nvml::lookup(library, "cuDeviceGetCount");
  if (version == nullptr || init == nullptr || count == nullptr) {
    driver.reason =
        "libcuda.so.1 lacks cuInit, cuDeviceGetCount or cuDriverGetVersion: it is not NVIDIA's driver library";
    return;
  }
  say(before, "cuDriverGetVersion");
  version(&driver.cuda_version);
  say(before, "cuInit");
  if (const int status = init(0); status != 0) {
    driver.missing = status == stub_library;
    driver.reason = cuda_failure(status, "cuInit");
    return;
  }
  say(before, "cuDeviceGetCount");
  if (const int status = count(&driver.devices); status != 0) {
    driver.reason = cuda_failure(status, "cuDeviceGetCount");
    return;
  }
  driver.usable = driver.devices > 0;
  for (int i = 0; i < driver.devices; ++i) driver.capabilities.push_back(capability_of(library, i, before));
  if (!driver.usable) driver.reason = "the NVIDIA driver sees no device (CUDA_VISIBLE_DEVICES may hide them)";
}

}  // namespace

bool nvidia_hardware_seen(const std::string& root) {
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(root + "/sys/bus/pci/devices", ignored)) {
    std::ifstream file(device.path() / "vendor");
    std::string vendor;
    if (file >> vendor && vendor == "0x10de") return true;
  }
  return false;
}

std::string cuda_failure(int status, const std::string& call) {
  switch (status) {
    case stub_library:
      return fmt::format("no NVIDIA driver: libcuda.so.1 is only the toolkit's stub ({} returned {})", call, status);
    case 35: return fmt::format("the NVIDIA driver is older than its CUDA library needs ({} returned 35)", call);
    case 100:
      return fmt::format("the NVIDIA driver sees no device ({} returned 100; CUDA_VISIBLE_DEVICES may hide them)",
                         call);
    case 803:
      return fmt::format(
          "the NVIDIA driver and libcuda.so.1 are of different versions ({} returned 803): "
          "reboot, or restart the container",
          call);
    default: return fmt::format("the NVIDIA driver does not start: {} returned {}", call, status);
  }
}

NvidiaDriver probe_nvidia_driver(const std::string& root, const std::string& library_name, const CallNotice& before) {
  NvidiaDriver driver;
  driver.hardware_seen = nvidia_hardware_seen(root);
  say(before, "dlopen " + library_name);
  // Never unloaded: the driver's threads would crash without its code.
  void* library = ::dlopen(library_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    driver.missing = true;
    driver.reason =
        fmt::format("no NVIDIA driver: libcuda.so.1 cannot be loaded ({})", why == nullptr ? "no reason given" : why);
    return driver;
  }
  ask(library, driver, before);
  return driver;
}

namespace {

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
  const auto next = [&before](const std::string& call) { say(before, call); };
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
        survey.unresponsive.push_back(i);
      } else {
        next(fmt::format("reading GPU {}", i));
        survey.gpus.push_back(nvml.facts(device, i));
      }
    }
    next("nvmlShutdown");
  } catch (const BackendError& e) {
    survey.failure = e.what();
  }
  return survey;
}

void add_gpu_properties(DeviceInfo& device, const std::string& library) {
  if (device.kind != "cuda") return;
  try {
    const Nvml nvml(library);
    const Nvml::Device handle = nvml.find(device);
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
  }
}

namespace {

constexpr int block_scaled_products = 100;
constexpr int eight_bit_products = 89;
constexpr int bf16_and_tf32_products = 80;

bool is_eight_bit(DType type) { return type == DType::f8_e4m3 || type == DType::f8_e5m2; }

int min_capability(const Recipe& recipe) {
  if (recipe.block > 0) return block_scaled_products;
  if (is_eight_bit(recipe.operand) || is_eight_bit(recipe.gradient_operand)) return eight_bit_products;
  const bool bf16 = recipe.tensor == DType::bf16 || recipe.operand == DType::bf16;
  return bf16 || recipe.math.inputs == Math::Inputs::tf32 ? bf16_and_tf32_products : 0;
}

std::string version(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

}  // namespace

std::vector<GpuRecipe> gpu_recipes() {
  std::vector<GpuRecipe> all;
  for (const Recipe& recipe : recipes()) all.push_back({std::string(recipe.name), min_capability(recipe)});
  return all;
}

std::vector<std::string> recipes_of_gpu(int capability) {
  std::vector<std::string> names;
  for (const GpuRecipe& recipe : gpu_recipes()) {
    if (capability == 0 || recipe.min_capability <= capability) names.push_back(recipe.name);
  }
  return names;
}

std::string recipes_lacking(int capability) {
  if (capability == 0) return {};
  std::map<int, std::string> lacking;  // by required capability
  for (const GpuRecipe& recipe : gpu_recipes()) {
    if (recipe.min_capability <= capability) continue;
    std::string& names = lacking[recipe.min_capability];
    names += (names.empty() ? "" : ", ") + recipe.name;
  }
  std::string text;
  for (const auto& [needed, names] : lacking) {
    const bool one = names.find(',') == std::string::npos;
    text += fmt::format("{} need{} compute capability {}; ", names, one ? "s" : "", version(needed));
  }
  return text.empty() ? text : text + "this device has " + version(capability);
}

}  // namespace gpubench
