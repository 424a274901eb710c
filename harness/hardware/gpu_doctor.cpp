#include "harness/hardware/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "harness/core/telemetry.h"
#include "harness/hardware/gpu_survey.h"

namespace gpubench {
namespace {

// CUDA needs a driver of at least its major version. The oldest such drivers, from NVIDIA's release notes.
constexpr std::pair<int, const char*> oldest_drivers[] = {{12, "525.60.13"}, {13, "580"}};

// 0 if the text does not start with a number.
int major_of(std::string_view version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

void library_findings(std::span<const ModuleReport> libraries, std::vector<Finding>& findings) {
  for (const ModuleReport& library : libraries) {
    if (library.version.empty()) {
      findings.push_back({Health::warning, "D106", fmt::format("{} could not be loaded", library.name),
                          "install the CUDA toolkit with cuDNN, or NVIDIA's Python wheels of both"});
    } else {
      findings.push_back(fact(
          fmt::format("{} {}{}{}", library.name, library.version, library.path.empty() ? "" : " from ", library.path)));
    }
  }
}

void age_finding(int driver_cuda, const std::string& driver_version, std::span<const ModuleReport> libraries,
                 std::vector<Finding>& findings) {
  const auto runtime = std::find_if(libraries.begin(), libraries.end(),
                                    [](const ModuleReport& library) { return library.name == "cudart"; });
  if (runtime == libraries.end() || driver_cuda == 0) return;
  const int needed = major_of(runtime->version);
  if (driver_cuda / 1000 >= needed) return;
  std::string fix = "install a newer driver";
  for (const auto& [cuda, driver] : oldest_drivers) {
    if (cuda == needed) fix += fmt::format(" (CUDA {} needs {} or newer)", cuda, driver);
  }
  findings.push_back({Health::warning, "D104",
                      fmt::format("the driver{}{} is too old: it supports CUDA {}.{}, this build needs {}",
                                  driver_version.empty() ? "" : " ", driver_version, driver_cuda / 1000,
                                  driver_cuda % 1000 / 10, runtime->version),
                      fix + ", or the package cuda-compat on a data-centre GPU"});
}

bool has_reason(const GpuFacts& gpu, std::string_view wanted) {
  const std::vector<std::string> reasons = clock_reasons(gpu.now.reasons.value_or(0));
  return std::find(reasons.begin(), reasons.end(), wanted) != reasons.end();
}

class Patient {
 public:
  Patient(const GpuFacts& gpu, std::vector<Finding>& findings) : gpu_(gpu), findings_(findings) {}

  void examine() {
    recipes();
    clocks();
    memory_errors();
    modes();
    company();
    links();
  }

 private:
  void say(Health health, const char* code, const std::string& text, std::string fix) {
    findings_.push_back({health, code, fmt::format("gpu {}: {}", gpu_.index, text), std::move(fix)});
  }

  void recipes() {
    if (!gpu_.compute_capability) return;
    const int capability = *gpu_.compute_capability;
    const std::string lacking = recipes_lacking(capability);
    findings_.push_back(
        {lacking.empty() ? Health::ok : Health::note, lacking.empty() ? "" : "D122",
         fmt::format("gpu {}: compute capability {}.{}: {}{}{}", gpu_.index, capability / 10, capability % 10,
                     fmt::join(recipes_of_gpu(capability), ", "), lacking.empty() ? "" : "; ", lacking),
         ""});
  }

  void clocks() {
    if (has_reason(gpu_, clock_reason::hw_thermal_slowdown) || has_reason(gpu_, clock_reason::sw_thermal_slowdown)) {
      say(Health::warning, "D110", fmt::format("throttled by heat now{}", temperature()),
          "improve the cooling or let it cool down; throttled rounds are repeated, then flagged");
    }
    if (has_reason(gpu_, clock_reason::hw_power_brake)) {
      say(Health::warning, "D110", "throttled by an external power brake now",
          "check the power supply and the rack's power limit");
    } else if (has_reason(gpu_, clock_reason::hw_slowdown)) {
      say(Health::warning, "D110", "throttled by the hardware now",
          "check temperature, power supply and cables: nvidia-smi -q -d PERFORMANCE");
    }
    if (has_reason(gpu_, clock_reason::application_clocks))
      say(Health::note, "D121", "application clocks limit its clocks", "sudo nvidia-smi -rac, if that is not intended");
    if (gpu_.power_limit_w && gpu_.power_limit_max_w && *gpu_.power_limit_w < *gpu_.power_limit_max_w) {
      say(Health::note, "D118",
          fmt::format("power limit {:.0f} W, below its maximum of {:.0f} W", *gpu_.power_limit_w,
                      *gpu_.power_limit_max_w),
          fmt::format("sudo nvidia-smi -i {} -pl {:.0f}, if that is not intended", gpu_.index,
                      *gpu_.power_limit_max_w));
    }
  }

  void memory_errors() {
    if (const auto errors = gpu_.now.uncorrected_errors; errors && *errors > 0) {
      say(Health::warning, "D111", fmt::format("{} uncorrected memory error(s) since the driver was loaded", *errors),
          "reset the device or reboot; replace it if they recur");
    }
    if (gpu_.corrected_errors && *gpu_.corrected_errors > 0)
      say(Health::note, "D112",
          fmt::format("{} memory error(s) corrected since the driver was loaded", *gpu_.corrected_errors),
          "nothing, unless the count grows");
    if (gpu_.ecc && !*gpu_.ecc)
      say(Health::note, "D113", "ECC is off: memory errors go undetected",
          fmt::format("sudo nvidia-smi -i {} -e 1, then reboot; this changes the bandwidth", gpu_.index));
  }

  void modes() {
    if (gpu_.mig && *gpu_.mig)
      say(Health::note, "D114", "MIG is on: only its slices can be measured",
          fmt::format("choose a slice by CUDA_VISIBLE_DEVICES=MIG-..., or sudo nvidia-smi -i {} -mig 0", gpu_.index));
    if (gpu_.persistence && !*gpu_.persistence)
      say(Health::note, "D115", "persistence mode is off: the driver restarts when a first process opens the GPU",
          fmt::format("sudo nvidia-smi -i {} -pm 1", gpu_.index));
  }

  void company() {
    if (!gpu_.processes || gpu_.processes->empty()) return;
    constexpr std::size_t most = 8;
    std::string pids;
    for (std::size_t i = 0; i < std::min(most, gpu_.processes->size()); ++i)
      pids += fmt::format("{}{}", i == 0 ? "" : ", ", gpu_.processes->at(i).pid);
    if (gpu_.processes->size() > most) pids += ", ...";
    say(Health::warning, "D116", fmt::format("{} process(es) compute on it: {}", gpu_.processes->size(), pids),
        "end them, or wait for them, before measuring");
  }

  void links() {
    if (gpu_.nvlinks && gpu_.nvlinks_up && *gpu_.nvlinks_up < *gpu_.nvlinks)
      say(Health::note, "D119", fmt::format("{} of {} NVLinks are up", *gpu_.nvlinks_up, *gpu_.nvlinks),
          "nothing, if the machine is wired this way; else nvidia-smi nvlink -s");
    // An idle device lowers its link's generation.
    if (!gpu_.now.reasons || has_reason(gpu_, clock_reason::idle)) return;
    if (below(gpu_.pcie_generation, gpu_.pcie_generation_max) || below(gpu_.pcie_width, gpu_.pcie_width_max)) {
      say(Health::note, "D117",
          fmt::format("PCIe runs at generation {} x{} of {} x{} under load", told(gpu_.pcie_generation),
                      told(gpu_.pcie_width), told(gpu_.pcie_generation_max), told(gpu_.pcie_width_max)),
          "check the slot, the riser and the firmware's settings");
    }
  }

  static bool below(const std::optional<int>& now, const std::optional<int>& most) {
    return now && most && *now < *most;
  }
  static std::string told(const std::optional<int>& value) { return value ? std::to_string(*value) : "?"; }
  [[nodiscard]] std::string temperature() const {
    return gpu_.now.temperature_c ? fmt::format(" ({} C)", *gpu_.now.temperature_c) : "";
  }

  const GpuFacts& gpu_;
  std::vector<Finding>& findings_;
};

}  // namespace

std::vector<Finding> diagnose_gpus(const NvidiaDriver& driver, const GpuSurvey& survey,
                                   std::span<const ModuleReport> libraries) {
  std::vector<Finding> findings;
  library_findings(libraries, findings);
  const int driver_cuda = driver.cuda_version != 0 ? driver.cuda_version : survey.cuda_version.value_or(0);
  age_finding(driver_cuda, survey.driver_version, libraries, findings);
  if (!survey.failure.empty()) {
    if (driver.usable) {
      findings.push_back({Health::warning, "D105", survey.failure + ": clocks, power and throttling are unknown",
                          "install the driver's libnvidia-ml.so.1; in a container, set "
                          "NVIDIA_DRIVER_CAPABILITIES=compute,utility"});
    }
    return findings;
  }
  findings.push_back(
      fact(fmt::format("NVML of driver {}{}{}", survey.driver_version.empty() ? "?" : survey.driver_version,
                       survey.nvml_path.empty() ? "" : " from ", survey.nvml_path)));
  for (const int index : survey.unresponsive) {
    findings.push_back({Health::warning, "D120", fmt::format("gpu {}: does not respond", index),
                        "check the kernel's log for its errors (dmesg: NVRM, Xid); reset it or reboot"});
  }
  for (const GpuFacts& gpu : survey.gpus) Patient(gpu, findings).examine();
  return findings;
}

}  // namespace gpubench
