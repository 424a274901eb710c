// Which device a run takes, and why; asked without opening it.
#pragma once

#include <stdexcept>
#include <string>

#include "harness/cli/children.h"
#include "harness/cli/environment.h"

namespace gpubench {

/// Nothing can be measured here; the program ends with exit code 3 and this text.
class CannotMeasure : public std::runtime_error {
 public:
  explicit CannotMeasure(const std::string& what) : std::runtime_error(what) {}
};

struct DeviceChoice {
  const BackendEntry* backend = nullptr;
  int ordinal = 0;     ///< which of the backend's devices
  std::string why;     ///< "asked for", or why `auto` came to it
  int capability = 0;  ///< compute capability of a GPU, 90 for 9.0; 0: none, or not known
  int devices = 0;     ///< GPUs that the driver shows; 0: the device is no GPU

  /// As --device takes it: "cpu", "cuda", "cuda:3".
  [[nodiscard]] std::string word() const;
};

/// `wanted`: the value of --device; `deadline_s`: of each call to a driver, 0 for none. Throws CannotMeasure for `cuda`
/// where there is no driver or no backend for it, never taking the CPU silently; UsageError for a name that is no
/// device, and for cuda:N where the driver shows fewer.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted, const Environment& environment,
                                         double deadline_s = driver_deadline_s);

/// Throws CannotMeasure with the backend's reason.
[[nodiscard]] std::unique_ptr<Backend> open_backend(const DeviceChoice& choice);

/// What the backend says about its device, asked of a child process (verb describe-device), so that this one never
/// opens it, and what NVML adds to that. Throws CannotMeasure where the child cannot say within `deadline_s` (0: it may
/// take as long as it likes).
[[nodiscard]] DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment,
                                         double deadline_s = opening_deadline_s);

/// The child's side: tells the DeviceInfo to `output_fd`, first as the backend gives it, then with what NVML adds.
void tell_device(const DeviceChoice& choice, int output_fd);

}  // namespace gpubench
