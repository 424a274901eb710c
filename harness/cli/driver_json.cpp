#include "harness/cli/driver_json.h"

#include "harness/report/record_reader.h"
#include "harness/report/record_writer.h"

namespace gpubench {
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
  a.signed_number("temperature_c", r.temperature_c);
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
