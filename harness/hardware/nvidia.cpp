#include "harness/hardware/nvidia.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace gpubench {
namespace {

// The driver interface's stable C calls; their results are 0 for success.
using Init = int (*)(unsigned);
using GetCount = int (*)(int*);
using GetVersion = int (*)(int*);
using GetDevice = int (*)(int*, int);
using GetAttribute = int (*)(int*, int, int);

// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
constexpr int capability_major = 75;
constexpr int capability_minor = 76;

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

void say(const CallNotice& before, std::string_view call) {
  if (before) before(call);
}

int capability_of(void* library, int ordinal, const CallNotice& before) {
  const auto get = symbol<GetDevice>(library, "cuDeviceGet");
  const auto attribute = symbol<GetAttribute>(library, "cuDeviceGetAttribute");
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

void ask(void* library, NvidiaDriver& driver, const CallNotice& before) {
  const auto version = symbol<GetVersion>(library, "cuDriverGetVersion");
  const auto init = symbol<Init>(library, "cuInit");
  const auto count = symbol<GetCount>(library, "cuDeviceGetCount");
  if (version == nullptr || init == nullptr || count == nullptr) {
    driver.reason =
        "libcuda.so.1 lacks cuInit, cuDeviceGetCount or cuDriverGetVersion: it is not NVIDIA's driver library";
    return;
  }
  say(before, "cuDriverGetVersion");
  version(&driver.cuda_version);
  say(before, "cuInit");
  if (const int status = init(0); status != 0) {
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
    case 34: return fmt::format("no NVIDIA driver: libcuda.so.1 is only the toolkit's stub ({} answers 34)", call);
    case 35: return fmt::format("the NVIDIA driver is older than its CUDA library needs ({} answers 35)", call);
    case 100:
      return fmt::format("the NVIDIA driver sees no device ({} answers 100; CUDA_VISIBLE_DEVICES may hide them)", call);
    case 803:
      return fmt::format(
          "the NVIDIA driver and libcuda.so.1 are of different versions ({} answers 803): "
          "reboot, or restart the container",
          call);
    default: return fmt::format("the NVIDIA driver does not start: {} answers {}", call, status);
  }
}

NvidiaDriver probe_nvidia_driver(const std::string& root, const std::string& library_name, const CallNotice& before) {
  NvidiaDriver driver;
  driver.hardware_seen = nvidia_hardware_seen(root);
  say(before, "dlopen " + library_name);
  // Never unloaded: the driver starts threads of its own, and taking its code away from under them would crash.
  void* library = ::dlopen(library_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    driver.reason =
        fmt::format("no NVIDIA driver: libcuda.so.1 cannot be loaded ({})", why == nullptr ? "no reason given" : why);
    return driver;
  }
  ask(library, driver, before);
  return driver;
}

}  // namespace gpubench
