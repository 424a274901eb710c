#include "harness/cli/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/cli/options.h"
#include "harness/core/error.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/plan/names.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

const BackendEntry* find(const Environment& environment, std::string_view wanted) {
  const auto found = std::find_if(environment.backends.begin(), environment.backends.end(),
                                  [&](const BackendEntry& entry) { return entry.name == wanted; });
  return found == environment.backends.end() ? nullptr : &*found;
}

int capability_of(const NvidiaDriver& driver, int ordinal) {
  const auto index = static_cast<std::size_t>(ordinal);
  return index < driver.capabilities.size() ? driver.capabilities[index] : 0;
}

constexpr std::string_view no_cuda_backend =
    "this build has no CUDA backend (libgpubench_cuda.so): build it where a GPU's driver and nvcc are, or with "
    "-DGPUBENCH_CUDA_MODULE=ON";

DeviceChoice choose_automatically(const Environment& environment, double deadline_s) {
  const BackendEntry* cuda = find(environment, "cuda");
  const BackendEntry* other = &environment.backends.front();
  const NvidiaDriver driver = environment.nvidia_driver(deadline_s);
  if (driver.usable && cuda != nullptr)
    return {cuda, 0, fmt::format("NVIDIA driver with {} device(s)", driver.devices), capability_of(driver, 0),
            driver.devices};
  if (driver.usable) return {other, 0, fmt::format("an NVIDIA driver is there, but {}", no_cuda_backend)};
  // Most machines without a GPU have no driver either; doctor tells all that is known of that.
  const bool none = driver.reason.starts_with("no NVIDIA driver:");
  if (!none) return {other, 0, driver.reason};
  return {other, 0,
          driver.hardware_seen ? "no NVIDIA driver found, but an NVIDIA device: see gpubench doctor"
                               : "no NVIDIA driver found"};
}

// N of "cuda:N"; 0 of "cuda".
int ordinal_of(const std::string& wanted) {
  const std::size_t colon = wanted.find(':');
  if (colon == std::string::npos) return 0;
  int ordinal = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data() + colon + 1, end, ordinal);
  if (error != std::errc() || stop != end || ordinal < 0) {
    throw UsageError(
        fmt::format("--device: '{}' names no device; expected cuda or cuda:N with N from 0", visible(wanted)));
  }
  return ordinal;
}

DeviceChoice choose_cuda(const std::string& wanted, const Environment& environment, double deadline_s) {
  const int ordinal = ordinal_of(wanted);
  const NvidiaDriver driver = environment.nvidia_driver(deadline_s);
  if (!driver.usable) throw CannotMeasure(fmt::format("--device {}: {}", wanted, driver.reason));
  const BackendEntry* entry = find(environment, "cuda");
  if (entry == nullptr)
    throw CannotMeasure(fmt::format("--device {}: an NVIDIA driver is there, but {}", wanted, no_cuda_backend));
  if (ordinal >= driver.devices) {
    std::vector<std::string> known;
    for (int i = 0; i < driver.devices; ++i) known.push_back(fmt::format("cuda:{}", i));
    throw UsageError(fmt::format("--device: there is no {}; the driver shows {} device(s): {}", wanted, driver.devices,
                                 joined(known)));
  }
  return {entry, ordinal, "asked for", capability_of(driver, ordinal), driver.devices};
}

}  // namespace

std::string DeviceChoice::word() const {
  return ordinal == 0 ? backend->name : fmt::format("{}:{}", backend->name, ordinal);
}

DeviceChoice choose_device(const std::string& wanted, const Environment& environment, double deadline_s) {
  if (wanted == "auto") return choose_automatically(environment, deadline_s);
  if (wanted == "cuda" || wanted.rfind("cuda:", 0) == 0) return choose_cuda(wanted, environment, deadline_s);
  if (const BackendEntry* entry = find(environment, wanted); entry != nullptr) return {entry, 0, "asked for"};
  std::vector<std::string> names{"auto", "cuda"};
  for (const BackendEntry& entry : environment.backends) {
    if (entry.name != "cuda") names.push_back(entry.name);
  }
  throw UsageError(
      fmt::format("--device: '{}' is not one of {}{}", visible(wanted), joined(names), did_you_mean(wanted, names)));
}

std::unique_ptr<Backend> open_backend(const DeviceChoice& choice) {
  try {
    return choice.backend->open({choice.ordinal});
  } catch (const std::exception& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
}

DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment, double deadline_s) {
  try {
    if (choice.backend->before_children) choice.backend->before_children();
  } catch (const BackendError& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
  const Heard heard = ask({environment.program, std::string(name(Verb::describe_device)), "--device", choice.word()},
                          deadline_s, environment.stop);
  // With an answer, what hung or crashed after it was NVML or the end of the child.
  if (heard.answer.empty()) {
    throw CannotMeasure(fmt::format("the {} backend does not start: it {}", choice.backend->name,
                                    heard.trouble.empty() ? "said nothing" : heard.trouble));
  }
  try {
    const Json json = parse_json(heard.answer, "describe-device");
    return device_from_json({json, "describe-device"});
  } catch (const ReadError& e) {
    throw CannotMeasure(e.what());
  }
}

void tell_device(const DeviceChoice& choice, int output_fd) {
  const Teller teller(output_fd);
  teller.call("opening the device");
  const std::unique_ptr<Backend> backend = open_backend(choice);
  DeviceInfo info = backend->device();
  teller.answer(dump(to_json(info)));
  teller.call("NVML");
  add_gpu_properties(info);
  teller.answer(dump(to_json(info)));
  teller.call("closing the device");
}

}  // namespace gpubench
