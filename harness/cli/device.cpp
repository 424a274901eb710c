#include "harness/cli/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <new>

#include "harness/cli/options.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/plan/names.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/record_io.h"
#include "harness/report/report_json.h"

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
  if (driver.usable) return {other, 0, fmt::format("an NVIDIA driver is installed, but {}", no_cuda_backend)};
  // Most machines without a GPU have no driver; doctor reports the details.
  if (!driver.missing) return {other, 0, driver.reason};
  return {other, 0,
          driver.hardware_seen ? "no NVIDIA driver found, but an NVIDIA device: see gpubench doctor"
                               : "no NVIDIA driver found"};
}

int ordinal_of(const std::string& wanted) {
  const std::size_t colon = wanted.find(':');
  if (colon == std::string::npos) return 0;
  int ordinal = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data() + colon + 1, end, ordinal);
  if (error != std::errc() || stop != end || ordinal < 0) {
    throw UsageError(
        fmt::format("--device: '{}' is not a device; expected cuda or cuda:N with N from 0", visible(wanted)));
  }
  return ordinal;
}

DeviceChoice choose_cuda(const std::string& wanted, const Environment& environment, double deadline_s) {
  const int ordinal = ordinal_of(wanted);
  const NvidiaDriver driver = environment.nvidia_driver(deadline_s);
  if (!driver.usable) throw CannotMeasure(fmt::format("--device {}: {}", wanted, driver.reason));
  const BackendEntry* entry = find(environment, "cuda");
  if (entry == nullptr)
    throw CannotMeasure(fmt::format("--device {}: an NVIDIA driver is installed, but {}", wanted, no_cuda_backend));
  if (ordinal >= driver.devices) {
    std::vector<std::string> known;
    for (int i = 0; i < driver.devices; ++i) known.push_back(fmt::format("cuda:{}", i));
    throw UsageError(fmt::format("--device: there is no {}; the driver shows {} device(s): {}", wanted, driver.devices,
                                 joined(known)));
  }
  return {entry, ordinal, "asked for", capability_of(driver, ordinal), driver.devices};
}

// The child's answer as parsed by `read`; nothing without an answer.
template <class Read>
auto understood(const ChildReply& heard, const Read& read, const char* verb = "probe")
    -> std::optional<decltype(read(std::declval<Node>()))> {
  if (heard.answer.empty()) return std::nullopt;
  try {
    const Json json = parse_json(heard.answer, verb);
    return read({json, verb});
  } catch (const ReadError& e) {
    throw CannotMeasure(e.what());
  }
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
  } catch (const std::bad_alloc&) {
    throw;  // the caller reports it; a message here would need memory
  } catch (const std::exception& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
}

void prepare_for_children(const DeviceChoice& choice) {
  try {
    if (choice.backend->before_children) choice.backend->before_children();
  } catch (const BackendError& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
}

DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment, double deadline_s) {
  prepare_for_children(choice);
  const ChildReply heard =
      ask({environment.program, "describe-device", "--device", choice.word()}, deadline_s, environment.stop);
  // After an answer, only NVML or the end of the child can have hung or crashed.
  if (heard.answer.empty()) {
    throw CannotMeasure(fmt::format("the {} backend does not start: it {}", choice.backend->name,
                                    heard.trouble.empty() ? "said nothing" : heard.trouble));
  }
  return *understood(
      heard, [](const Node& node) { return device_from_json(node); }, "describe-device");
}

void report_device(const DeviceChoice& choice, int output_fd) {
  const ChildReporter teller(output_fd);
  teller.call("opening the device");
  const std::unique_ptr<Backend> backend = open_backend(choice);
  DeviceInfo info = backend->device();
  teller.answer(dump(to_json(info)));
  teller.call("NVML");
  add_gpu_properties(info);
  teller.answer(dump(to_json(info)));
  teller.call("closing the device");
}

namespace {

ChildReply query_child(const std::string& subject, const std::string& program, double deadline_s,
                       const StopFlag& stop) {
  return ask({program, "probe", subject}, deadline_s, stop);
}

}  // namespace

NvidiaDriver query_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop) {
  const ChildReply heard = query_child("driver", program, deadline_s, stop);
  NvidiaDriver driver = understood(heard, driver_from_json).value_or(NvidiaDriver{});
  if (heard.answer.empty()) {
    driver.hardware_seen = nvidia_hardware_seen();
    driver.reason = "the NVIDIA driver " + (heard.trouble.empty() ? "said nothing" : heard.trouble);
  }
  return driver;
}

GpuSurvey query_gpus(const std::string& program, double deadline_s, const StopFlag& stop) {
  const ChildReply heard = query_child("gpus", program, deadline_s, stop);
  GpuSurvey survey = understood(heard, survey_from_json).value_or(GpuSurvey{});
  if (!heard.trouble.empty()) survey.failure = "NVML " + heard.trouble;
  return survey;
}

std::vector<ModuleReport> query_libraries(const std::string& program, double deadline_s, const StopFlag& stop) {
  const ChildReply heard = query_child("libraries", program, deadline_s, stop);
  const ModuleSurvey survey = understood(heard, module_from_json).value_or(ModuleSurvey{});
  if (!survey.failure.empty()) throw BackendError(survey.failure);
  if (heard.answer.empty())
    throw CannotMeasure("the CUDA module " + (heard.trouble.empty() ? "said nothing" : heard.trouble));
  return survey.libraries;
}

void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends) {
  const ChildReporter teller(output_fd);
  const auto before = [&teller](std::string_view call) { teller.call(call); };
  if (subject == "driver") {
    teller.answer(dump(to_json(probe_nvidia_driver("", "libcuda.so.1", before))));
  } else if (subject == "gpus") {
    teller.answer(dump(to_json(survey_gpus("libnvidia-ml.so.1", before))));
  } else if (subject == "libraries") {
    teller.call("loading it");
    ModuleSurvey survey;
    try {
      for (const BackendEntry& entry : backends) {
        if (entry.libraries) survey.libraries = entry.libraries();
      }
    } catch (const BackendError& e) {
      survey.failure = e.what();
    }
    teller.answer(dump(to_json(survey)));
  } else {
    throw UsageError(fmt::format("probe: '{}' is not one of driver, gpus, libraries", visible(subject)));
  }
}

namespace record_members {

template <>
inline constexpr bool is_part<GpuReading> = true;
template <>
inline constexpr bool is_part<GpuProcess> = true;
template <>
inline constexpr bool is_part<GpuFacts> = true;
template <>
inline constexpr bool is_part<ModuleReport> = true;

template <class Archive>
void visit(Archive& a, NvidiaDriver& d) {
  a("usable", d.usable);
  a("devices", d.devices);
  a("cuda_version", d.cuda_version);
  a("hardware_seen", d.hardware_seen);
  a("missing", d.missing);
  a("reason", d.reason);
  a("capabilities", d.capabilities);
}

template <class Archive>
void visit(Archive& a, GpuReading& r) {
  a("sm_mhz", r.sm_mhz);
  a("memory_mhz", r.memory_mhz);
  a("power_w", r.power_w);
  a("energy_j", r.energy_j);
  a("temperature_c", r.temperature_c, {.sign = Sign::any});
  a("reasons", r.reasons);
  a("uncorrected_errors", r.uncorrected_errors);
}

template <class Archive>
void visit(Archive& a, GpuProcess& p) {
  a("pid", p.pid);
  a("memory_bytes", p.memory_bytes);
}

template <class Archive>
void visit(Archive& a, GpuFacts& f) {
  a("index", f.index);
  a("name", f.name);
  a("uuid", f.uuid);
  a("pci_bus", f.pci_bus);
  a("compute_capability", f.compute_capability);
  a("memory_bytes", f.memory_bytes);
  a("free_bytes", f.free_bytes);
  a("max_sm_mhz", f.max_sm_mhz);
  a("max_memory_mhz", f.max_memory_mhz);
  a("memory_bus_bits", f.memory_bus_bits);
  a("power_limit_w", f.power_limit_w);
  a("power_limit_max_w", f.power_limit_max_w);
  a("persistence", f.persistence);
  a("ecc", f.ecc);
  a("mig", f.mig);
  a("corrected_errors", f.corrected_errors);
  a("nvlinks", f.nvlinks);
  a("nvlinks_up", f.nvlinks_up);
  a("pcie_generation", f.pcie_generation);
  a("pcie_generation_max", f.pcie_generation_max);
  a("pcie_width", f.pcie_width);
  a("pcie_width_max", f.pcie_width_max);
  a("processes", f.processes);
  a("now", f.now);
}

template <class Archive>
void visit(Archive& a, GpuSurvey& s) {
  a("why_not", s.failure);
  a("nvml_path", s.nvml_path);
  a("driver_version", s.driver_version);
  a("cuda_version", s.cuda_version);
  a("gpus", s.gpus);
  a("that_do_not_open", s.unresponsive);
}

template <class Archive>
void visit(Archive& a, ModuleReport& r) {
  a("name", r.name);
  a("version", r.version);
  a("path", r.path);
}

template <class Archive>
void visit(Archive& a, ModuleSurvey& s) {
  a("why_not", s.failure);
  a("libraries", s.libraries);
}

}  // namespace record_members

using record_members::Reader;
using record_members::Writer;

Json to_json(const NvidiaDriver& driver) { return Writer::written(driver); }
NvidiaDriver driver_from_json(const Node& node) { return Reader::read<NvidiaDriver>(node); }

Json to_json(const GpuSurvey& survey) { return Writer::written(survey); }
GpuSurvey survey_from_json(const Node& node) { return Reader::read<GpuSurvey>(node); }

Json to_json(const ModuleSurvey& survey) { return Writer::written(survey); }
ModuleSurvey module_from_json(const Node& node) { return Reader::read<ModuleSurvey>(node); }

}  // namespace gpubench
