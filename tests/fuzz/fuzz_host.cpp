// Fuzz target: any content of kernel files, and any answer of the driver, NVML and the probing children, is accepted or
// rejected with a reason. Accepted ones give a valid report and plain text lines. The first byte selects the source.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "harness/cli/device.h"
#include "harness/cli/run_context.h"
#include "harness/hardware/doctor.h"
#include "harness/hardware/telemetry.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/sinks.h"

using namespace gpubench;

namespace {

void require_holding(const Report& report) {
  Problems problems;
  problems.attempt([&] { (void)report_from_json(parse_json(dump(report_json(report)), "fuzz"), "fuzz", problems); });
  if (problems.none()) return;
  for (const std::string& problem : problems.kept()) std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}

// The input is split at record separators into these files, in order.
constexpr std::array files{"proc/cpuinfo",
                           "proc/meminfo",
                           "proc/loadavg",
                           "proc/pressure/cpu",
                           "etc/os-release",
                           "sys/devices/system/cpu/online",
                           "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                           "sys/devices/system/cpu/cpu0/cache/index0/type",
                           "sys/devices/system/cpu/cpu0/cache/index0/level",
                           "sys/devices/system/cpu/cpu0/cache/index0/size",
                           "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
                           "sys/fs/cgroup/cpu.max",
                           "sys/fs/cgroup/memory.max",
                           "sys/fs/cgroup/memory.current",
                           "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                           "sys/fs/cgroup/cpu/cpu.cfs_period_us",
                           "sys/fs/cgroup/memory/memory.limit_in_bytes",
                           "sys/fs/cgroup/memory/memory.usage_in_bytes",
                           "sys/bus/pci/devices/0000:01:00.0/vendor"};

void read_kernel(std::string_view text) {
  static const MemoryFolder folder;
  static std::array<std::string, files.size()> contents;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string_view part = text.substr(0, text.find('\x1e'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (contents[i] == part) continue;
    contents[i] = part;
    folder.put(files[i], part);
  }
  const HostInfo host = read_host(folder.path());
  (void)nvidia_hardware_seen(folder.path());
  (void)read_scheduler(folder.path() + "/proc/pressure/cpu");
  if (host.available_bytes < 0 || host.cpus < 1 || host.sockets < 1) std::abort();
  (void)diagnose(host, {}, true);
  Report report = holding_report();
  report.host = host_context(host, "gpubench");
  require_holding(report);
}

void tell(const GpuSurvey& survey) {
  const std::string table = gpu_table(survey, {});
  const std::string lines(survey.gpus.empty() ? 0 : survey.gpus.size() + 1, '\n');
  if (const std::string problem = terminal_problem(table, lines); !problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  NvidiaDriver driver;
  driver.usable = true;
  driver.devices = static_cast<int>(survey.gpus.size());
  (void)diagnose_gpus(driver, survey, {});
}

// An accepted answer is the same after encoding.
template <class Read>
auto taken(std::string_view text, const Read& read) -> decltype(read(std::declval<Node>())) {
  const Json json = parse_json(text, "fuzz");
  auto answer = read(Node(json, "fuzz"));
  const Json told = to_json(answer);
  if (dump(to_json(read(Node(told, "fuzz")))) != dump(told)) std::abort();
  return answer;
}

void read_device(std::string_view answer) {
  Report report = holding_report();
  report.run.devices = {taken(answer, [](const Node& node) { return device_from_json(node); })};
  require_holding(report);
}

// A driver's text of any bytes, passed from the library through the child's answer.
void read_names(const std::string& text) {
  GpuFacts facts;
  facts.name = facts.uuid = facts.pci_bus = text;
  GpuSurvey survey;
  survey.failure = survey.nvml_path = survey.driver_version = text;
  survey.gpus = {facts};
  tell(taken(dump(to_json(survey)), survey_from_json));
  NvidiaDriver driver;
  driver.reason = text;
  (void)diagnose({}, taken(dump(to_json(driver)), driver_from_json), true);
  DeviceInfo device = holding_report().run.devices.front();
  device.name = text;
  for (auto& [library, version] : device.libraries) version = text;
  for (auto& [property, value] : device.properties) value = text;
  read_device(dump(to_json(device)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 5) {
      case 0: read_kernel(text); break;
      case 1: (void)diagnose({}, taken(text, driver_from_json), true); break;
      case 2: tell(taken(text, survey_from_json)); break;
      case 3: read_device(text); break;
      default: read_names(std::string(text));
    }
  } catch (const ReadError&) {
    // Rejection is allowed.
  }
  return 0;
}
