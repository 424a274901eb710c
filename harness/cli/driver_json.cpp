#include "harness/cli/driver_json.h"

#include <limits>

#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace {

// Each struct's members are listed once, for Putter and Taker alike. What is not known is left out.
template <class Archive>
void members(Archive& a, NvidiaDriver& d) {
  a("usable", d.usable);
  a("devices", d.devices);
  a("cuda_version", d.cuda_version);
  a("hardware_seen", d.hardware_seen);
  a("reason", d.reason);
  a("capabilities", d.capabilities);
}

template <class Archive>
void members(Archive& a, GpuReading& r) {
  a("sm_mhz", r.sm_mhz);
  a("memory_mhz", r.memory_mhz);
  a("power_w", r.power_w);
  a("energy_j", r.energy_j);
  a("temperature_c", r.temperature_c);
  a("reasons", r.reasons);
  a("uncorrected_errors", r.uncorrected_errors);
}

template <class Archive>
void members(Archive& a, GpuProcess& p) {
  a("pid", p.pid);
  a("memory_bytes", p.memory_bytes);
}

template <class Archive>
void members(Archive& a, GpuFacts& f) {
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
void members(Archive& a, GpuSurvey& s) {
  a("why_not", s.why_not);
  a("nvml_path", s.nvml_path);
  a("driver_version", s.driver_version);
  a("cuda_version", s.cuda_version);
  a("gpus", s.gpus);
  a("that_do_not_open", s.that_do_not_open);
}

class Putter {
 public:
  template <class T>
  static Json put(T& value) {
    if constexpr (requires(Putter & a) { members(a, value); }) {
      Putter object;
      members(object, value);
      return std::move(object.json_);
    } else {
      return value;
    }
  }
  template <class T>
  void operator()(const char* name, T& value) {
    json_[name] = put(value);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& values) {
    Json list = Json::array();
    for (T& value : values) list.push_back(put(value));
    json_[name] = std::move(list);
  }

 private:
  Json json_ = Json::object();
};

class Taker {
 public:
  explicit Taker(const Node& node) : node_(node) {}

  static void take(const Node& node, std::string& to) { to = node.text(); }
  static void take(const Node& node, bool& to) { to = node.boolean(); }
  static void take(const Node& node, double& to) { to = node.number(); }
  static void take(const Node& node, std::uint64_t& to) { to = node.natural(); }
  static void take(const Node& node, std::int64_t& to) {
    to = node.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  }
  static void take(const Node& node, int& to) {
    to = static_cast<int>(node.integer(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
  }
  template <class T>
  static void take(const Node& node, T& to) {
    Taker object(node);
    members(object, to);
  }

  template <class T>
  void operator()(const char* name, T& to) {
    take(node_.at(name), to);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& to) {
    if (!node_.has(name)) return;
    to.emplace();
    (*this)(name, *to);
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& to) {
    const Node list = node_.at(name);
    for (std::size_t i = 0; i < list.length(); ++i) take(list.at(i), to.emplace_back());
  }

 private:
  const Node& node_;
};

template <class T>
T taken_from(const Node& node) {
  T value;
  Taker::take(node, value);
  return value;
}

}  // namespace

Json to_json(const NvidiaDriver& driver) {
  NvidiaDriver copy = driver;
  return Putter::put(copy);
}

NvidiaDriver driver_from_json(const Node& node) { return taken_from<NvidiaDriver>(node); }

Json to_json(const GpuSurvey& survey) {
  GpuSurvey copy = survey;
  return Putter::put(copy);
}

GpuSurvey survey_from_json(const Node& node) { return taken_from<GpuSurvey>(node); }

}  // namespace gpubench
