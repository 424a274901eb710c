#include "harness/cli/driver_child.h"

#include <fmt/format.h>

#include "harness/cli/children.h"
#include "harness/cli/device.h"
#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/record_io.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// What the child answered as `read` understands it; nothing where it gave no answer.
template <class Read>
auto understood(const Heard& heard, const Read& read) -> std::optional<decltype(read(std::declval<Node>()))> {
  if (heard.answer.empty()) return std::nullopt;
  try {
    const Json json = parse_json(heard.answer, "probe");
    return read({json, "probe"});
  } catch (const ReadError& e) {
    throw CannotMeasure(e.what());
  }
}

Heard ask_about(const std::string& subject, const std::string& program, double deadline_s, const StopFlag& stop) {
  return ask({program, "probe", subject}, deadline_s, stop);
}

}  // namespace

NvidiaDriver ask_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("driver", program, deadline_s, stop);
  NvidiaDriver driver = understood(heard, driver_from_json).value_or(NvidiaDriver{});
  if (heard.answer.empty()) {
    driver.hardware_seen = nvidia_hardware_seen();
    driver.reason = "the NVIDIA driver " + (heard.trouble.empty() ? "said nothing" : heard.trouble);
  }
  return driver;
}

GpuSurvey ask_gpus(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("gpus", program, deadline_s, stop);
  GpuSurvey survey = understood(heard, survey_from_json).value_or(GpuSurvey{});
  if (!heard.trouble.empty()) survey.why_not = "NVML " + heard.trouble;
  return survey;
}

std::vector<ModuleReport> ask_libraries(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("libraries", program, deadline_s, stop);
  const ModuleSurvey survey = understood(heard, module_from_json).value_or(ModuleSurvey{});
  if (!survey.why_not.empty()) throw BackendError(survey.why_not);
  if (heard.answer.empty())
    throw CannotMeasure("the CUDA module " + (heard.trouble.empty() ? "said nothing" : heard.trouble));
  return survey.libraries;
}

void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends) {
  const Teller teller(output_fd);
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
      survey.why_not = e.what();
    }
    teller.answer(dump(to_json(survey)));
  } else {
    throw UsageError(fmt::format("probe: '{}' is none of driver, gpus, libraries", visible(subject)));
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
  a("why_not", s.why_not);
  a("nvml_path", s.nvml_path);
  a("driver_version", s.driver_version);
  a("cuda_version", s.cuda_version);
  a("gpus", s.gpus);
  a("that_do_not_open", s.that_do_not_open);
}

template <class Archive>
void visit(Archive& a, ModuleReport& r) {
  a("name", r.name);
  a("version", r.version);
  a("path", r.path);
}

template <class Archive>
void visit(Archive& a, ModuleSurvey& s) {
  a("why_not", s.why_not);
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
