// Whether an NVIDIA driver can be used here, found out without linking anything of NVIDIA's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

struct NvidiaDriver {
  bool usable = false;  ///< libcuda.so.1 loads, initializes and sees a device
  int devices = 0;
  int cuda_version = 0;             ///< the newest CUDA that the driver supports: 13000 for 13.0; 0: not known
  bool hardware_seen = false;       ///< a PCI device of NVIDIA's is there, driver or not
  std::string reason;               ///< why not usable: "no NVIDIA driver: libcuda.so.1 cannot be loaded (...)"
  std::vector<int> capabilities{};  ///< compute capability of each device, 90 for 9.0; 0: the driver does not tell
};

/// Whether a PCI device of NVIDIA's is there; asks the kernel, not the driver.
[[nodiscard]] bool nvidia_hardware_seen(const std::string& root = "");

/// Told the name of each call into a library before it is made: of one that hangs or crashes, it is known.
using CallNotice = std::function<void(std::string_view call)>;

/// Loads libcuda.so.1, if it is there, and asks it; no device is opened. `root` as for read_host(): where /sys is
/// looked at. `library`: for tests.
[[nodiscard]] NvidiaDriver probe_nvidia_driver(const std::string& root = "",
                                               const std::string& library = "libcuda.so.1",
                                               const CallNotice& before = {});

/// The sentence for a result of cuInit() or cuDeviceGetCount(); pure, so that every case can be tested.
[[nodiscard]] std::string cuda_failure(int status, const std::string& call);

}  // namespace gpubench
