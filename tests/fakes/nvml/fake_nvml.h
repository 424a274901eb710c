// A scriptable NVML, built as libnvidia-ml.so.1 and loaded by path. fake_nvml() returns its script; get it through
// dlsym(), since the library is not linked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gpubench {

struct FakeGpu {
  std::string name = "NVIDIA H200";
  std::string uuid = "GPU-11111111-2222-3333-4444-555555555555";
  std::string pci_bus = "00000000:18:00.0";
  int major = 9;
  int minor = 0;
  std::uint64_t memory_bytes = 150000000000;
  std::uint64_t free_bytes = 149000000000;
  unsigned sm_mhz = 1755;
  unsigned memory_mhz = 3201;
  unsigned max_sm_mhz = 1980;
  unsigned max_memory_mhz = 3201;
  unsigned bus_bits = 6144;
  unsigned power_mw = 650500;
  unsigned power_now_mw = ~0U;  ///< field of instantaneous power; ~0: not supported
  unsigned power_limit_mw = 700000;
  unsigned power_limit_max_mw = 700000;
  std::uint64_t energy_mj = 5000000;
  unsigned temperature_c = 61;
  std::uint64_t reasons = 0;
  unsigned persistence = 1;
  unsigned ecc = 1;
  unsigned mig = 0;
  std::uint64_t corrected = 0;
  std::uint64_t uncorrected = 0;
  unsigned links = 18;
  unsigned links_up = 18;
  unsigned pcie_generation = 5;
  unsigned pcie_generation_max = 5;
  unsigned pcie_width = 16;
  unsigned pcie_width_max = 16;
  std::vector<unsigned> processes;
  std::vector<unsigned long long> xids{};  ///< pending Xid events; 0: another event
};

struct FakeNvml {
  std::string driver = "580.65.06";
  int cuda = 13000;
  std::vector<FakeGpu> gpus{FakeGpu{}};
  std::map<std::string, int> answers;  ///< function -> status that it returns without effect
  bool endless_text = false;           ///< texts fill their buffers without NUL
  unsigned claimed_processes = 0;      ///< number that it reports, unless 0
  int starts = 0;
  int stops = 0;
  int event_sets = 0;  ///< not freed yet
};

extern "C" FakeNvml* fake_nvml();

class ScriptedNvml {
 public:
  /// `kind`: "today", "old", "foreign". Resets the script.
  explicit ScriptedNvml(const std::string& kind = "today");
  [[nodiscard]] const std::string& path() const { return path_; }
  FakeNvml* operator->() { return script_; }
  FakeGpu& gpu() { return script_->gpus.at(0); }

 private:
  std::string path_;
  FakeNvml* script_ = nullptr;
};

}  // namespace gpubench
