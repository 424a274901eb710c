#include "harness/hardware/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/core/backend.h"

namespace gpubench {
namespace {

constexpr double gigabyte = 1e9;

void cpu_findings(const HostInfo& host, std::vector<Finding>& findings) {
  const std::string model = host.cpu_model.empty() ? "unknown processor model" : host.cpu_model;
  findings.push_back(fact(fmt::format("cpu {}, {} logical processors in {} socket(s), {} usable", model, host.cpus,
                                      host.sockets, host.usable_cpus)));
  const std::vector<std::string>& sets = host.instruction_sets;
  if (!sets.empty()) findings.push_back(fact(fmt::format("instruction sets {}", fmt::join(sets, " "))));
  const auto has = [&sets](const char* set) { return std::ranges::find(sets, set) != sets.end(); };
  if (!has("avx512_bf16") && !has("amx_bf16")) {
    findings.push_back({Health::note, "D201",
                        "no bf16 instructions: products in bf16 are computed in f32, at about its rate",
                        "compare bf16 rates only with machines that have avx512_bf16 or amx_bf16"});
  }
  if (host.usable_cpus < host.cpus) {
    findings.push_back({Health::note, "D202",
                        fmt::format("affinity leaves {} of {} processors", host.usable_cpus, host.cpus),
                        "start without taskset or a job scheduler's binding to use them all"});
  }
  if (host.cgroup_cpus && *host.cgroup_cpus < host.usable_cpus) {
    findings.push_back({Health::warning, "D203",
                        fmt::format("the cgroup allows {:.2g} processors of {}: threads are paused during samples",
                                    *host.cgroup_cpus, host.usable_cpus),
                        "raise the container's CPU limit to a whole number that matches its processors"});
  }
}

void noise_findings(const HostInfo& host, std::vector<Finding>& findings) {
  if (host.cpu_scaling_enabled()) {
    findings.push_back({Health::warning, "D204",
                        fmt::format("frequency governor is \"{}\": rates drift with the clock", host.governor),
                        "sudo cpupower frequency-set -g performance"});
  }
  if (const std::optional<Finding> busy = busy_finding(host)) findings.push_back(*busy);
}

void memory_findings(const HostInfo& host, std::vector<Finding>& findings) {
  findings.push_back(
      fact(fmt::format("memory {:.1f} GB, {:.1f} GB available", static_cast<double>(host.memory_bytes) / gigabyte,
                       static_cast<double>(host.available_bytes) / gigabyte)));
  if (host.cgroup_memory_bytes) {
    findings.push_back({Health::note, "D207",
                        fmt::format("the cgroup limits memory to {:.1f} GB",
                                    static_cast<double>(*host.cgroup_memory_bytes) / gigabyte),
                        "cases that do not fit are skipped"});
  }
  if (host.available_bytes < static_cast<std::int64_t>(2 * gigabyte)) {
    findings.push_back({Health::warning, "D208", "less than 2 GB of memory is available: many cases will be skipped",
                        "free memory, or choose small cases with --tier smoke"});
  }
}

void gpu_findings(const NvidiaDriver& driver, bool has_cuda_backend, std::vector<Finding>& findings) {
  if (driver.usable) {
    findings.push_back(fact(fmt::format("NVIDIA driver for CUDA {}.{}, {} device(s)", driver.cuda_version / 1000,
                                        driver.cuda_version % 1000 / 10, driver.devices)));
  } else {
    findings.push_back(
        {driver.hardware_seen ? Health::warning : Health::note, "D101",
         driver.reason +
             (driver.hardware_seen ? "; an NVIDIA device is on the PCI bus" : "; no NVIDIA device is on the PCI bus"),
         driver.hardware_seen
             ? "install NVIDIA's driver, or start the container with --gpus all (Docker) or --nv (Apptainer)"
             : "nothing, if this machine has no NVIDIA GPU: the CPU backend is used"});
  }
  if (!has_cuda_backend) {
    findings.push_back({driver.usable ? Health::warning : Health::note, "D102",
                        "this build has no CUDA backend (libgpubench_cuda.so)",
                        driver.usable ? "build on a machine with the CUDA toolkit to measure the GPU" : ""});
  }
}

}  // namespace

Finding fact(std::string text) { return {Health::ok, "", std::move(text), ""}; }

std::optional<Finding> busy_finding(const HostInfo& host) {
  constexpr double max_percent = 10.0;
  constexpr double max_load = 0.5;  // a processor
  if (host.cpu_pressure && *host.cpu_pressure > max_percent)
    return Finding{Health::warning, "D205",
                   fmt::format("tasks waited for a processor during {:.0f}% of the last 10 s", *host.cpu_pressure),
                   "stop other work on this machine before measuring"};
  if (!host.load_avg.empty() && host.load_avg[0] > max_load * host.usable_cpus)
    return Finding{Health::note, "D206",
                   fmt::format("load average is {:.2f} on {} processors", host.load_avg[0], host.usable_cpus),
                   "wait until it falls; other work makes samples noisy"};
  return std::nullopt;
}

std::vector<Finding> diagnose(const HostInfo& host, const NvidiaDriver& driver, bool has_cuda_backend) {
  std::vector<Finding> findings;
  findings.push_back(fact(fmt::format(
      "{}, {}", host.distribution.empty() ? "unknown Linux distribution" : host.distribution, host.kernel)));
  cpu_findings(host, findings);
  memory_findings(host, findings);
  noise_findings(host, findings);
  gpu_findings(driver, has_cuda_backend, findings);
  return findings;
}

std::vector<Finding> diagnose_unused(const DeviceInfo& device) {
  std::vector<Finding> findings;
  if (const std::string excluded = property(device, device_property::excluded_kernels); !excluded.empty())
    findings.push_back(fact("excluded: " + excluded));
  if (const std::string text = cpu_isa_text(device); !text.empty())
    findings.push_back({Health::warning, "D210", text,
                        "correct the processor type of the virtual machine; until then compare rates "
                        "only with runs that have the same limit, or set a limit with ONEDNN_MAX_CPU_ISA"});
  return findings;
}

}  // namespace gpubench
