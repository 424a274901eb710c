#include "harness/core/processor.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

namespace gpubench {
namespace {

struct ArmPart {
  std::string_view implementer, part, name;
};

// Parts of servers and of boards with a GPU, by the numbers of register MIDR_EL1.
constexpr std::array arm_parts{
    ArmPart{"0x41", "0xd08", "Cortex-A72"},  ArmPart{"0x41", "0xd0c", "Neoverse-N1"},
    ArmPart{"0x41", "0xd40", "Neoverse-V1"}, ArmPart{"0x41", "0xd42", "Cortex-A78AE"},
    ArmPart{"0x41", "0xd49", "Neoverse-N2"}, ArmPart{"0x41", "0xd4f", "Neoverse-V2"},
    ArmPart{"0x41", "0xd84", "Neoverse-V3"}, ArmPart{"0x41", "0xd8e", "Neoverse-N3"},
    ArmPart{"0x46", "0x001", "A64FX"},       ArmPart{"0x48", "0xd01", "TaiShan v110"},
    ArmPart{"0x4e", "0x004", "Carmel"},      ArmPart{"0xc0", "0xac3", "Ampere-1"},
};

}  // namespace

std::string line_value(std::string_view text, std::string_view key, char separator) {
  constexpr std::string_view blanks = " \t\r\"";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t at = line.find(separator);
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, at);
    if (name.substr(0, name.find_last_not_of(blanks) + 1) != key) continue;
    const std::size_t begin = line.find_first_not_of(blanks, at + 1);
    if (begin == std::string_view::npos) return {};
    return std::string(line.substr(begin, line.find_last_not_of(blanks) + 1 - begin));
  }
  return {};
}

std::string processor_model(std::string_view cpuinfo) {
  if (std::string name = line_value(cpuinfo, "model name"); !name.empty()) return name;
  const std::string implementer = line_value(cpuinfo, "CPU implementer"), part = line_value(cpuinfo, "CPU part");
  if (implementer.empty() || part.empty()) return {};
  for (const ArmPart& known : arm_parts) {
    if (known.implementer == implementer && known.part == part) return std::string(known.name);
  }
  return "Arm part " + part + ", implementer " + implementer;
}

std::vector<std::string> instruction_sets(std::string_view cpuinfo) {
  constexpr std::array<std::string_view, 19> interesting{
      "sse4_2",      "avx",         "f16c",        "fma",      "avx2",     "avx512f",  "avx512bw",
      "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "asimd",
      "asimdhp",     "bf16",        "i8mm",        "sve",      "sve2"};
  std::string flags = line_value(cpuinfo, "flags");
  if (flags.empty()) flags = line_value(cpuinfo, "Features");  // on Arm
  std::istringstream words(flags);
  const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> found;
  for (const std::string_view name : interesting) {
    if (std::find(all.begin(), all.end(), name) != all.end()) found.emplace_back(name);
  }
  return found;
}

}  // namespace gpubench
