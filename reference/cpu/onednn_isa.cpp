#include "reference/cpu/onednn_isa.h"

#include <dnnl.h>
#include <dnnl_version.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "harness/core/error.h"

namespace gpubench::cpu {
namespace {

struct Level {
  const char* name;
  dnnl_cpu_isa_t isa;
};

// From the highest down. Each value is a set of bits, and a level contains those whose bits it has.
constexpr Level levels[] = {
#if DNNL_VERSION_MAJOR >= 3
    {"avx512_core_amx_fp16", dnnl_cpu_isa_avx512_core_amx_fp16},
#endif
    {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
#if DNNL_VERSION_MAJOR >= 3
    {"avx512_core_fp16", dnnl_cpu_isa_avx512_core_fp16},
#endif
    {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
    {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
    {"avx512_core", dnnl_cpu_isa_avx512_core},
#if DNNL_VERSION_MAJOR >= 3
    {"avx2_vnni_2", dnnl_cpu_isa_avx2_vnni_2},
#endif
    {"avx2_vnni", dnnl_cpu_isa_avx2_vnni},
    {"avx2", dnnl_cpu_isa_avx2},
    {"avx", dnnl_cpu_isa_avx},
    {"sse41", dnnl_cpu_isa_sse41},
};

bool contains(dnnl_cpu_isa_t isa, dnnl_cpu_isa_t part) {
  return (static_cast<unsigned>(part) & ~static_cast<unsigned>(isa)) == 0;
}

const Level* level_called(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(levels), std::end(levels), [&](const Level& level) { return name == level.name; });
  return found == std::end(levels) ? nullptr : found;
}

}  // namespace

std::string onednn_isa() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  // A newer library may know higher ones than these: the highest of these that is contained.
  const auto* found =
      std::find_if(std::begin(levels), std::end(levels), [&](const Level& level) { return contains(isa, level.isa); });
  return found == std::end(levels) ? "" : found->name;
}

std::string next_lower_isa(const std::string& isa) {
  const Level* from = level_called(isa);
  if (from == nullptr) return "";
  const auto* found =
      std::find_if(from + 1, std::end(levels), [&](const Level& level) { return contains(from->isa, level.isa); });
  return found == std::end(levels) ? "" : found->name;
}

void limit_onednn(const std::string& isa) {
  const Level* level = level_called(isa);
  if (level == nullptr) throw BackendError(fmt::format("oneDNN has no instruction set '{}'", isa));
  // Refused the second time as well, for a further rank: what counts is what the library uses.
  const dnnl_status_t status = dnnl_set_max_cpu_isa(level->isa);
  if (!contains(level->isa, dnnl_get_effective_cpu_isa())) {
    throw BackendError(
        fmt::format("oneDNN cannot be limited to {} (status {}), and what is higher does not work here; "
                    "set ONEDNN_MAX_CPU_ISA to it, in capitals",
                    isa, static_cast<int>(status)));
  }
}

std::string onednn_isa_variable() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return fmt::format("{}={}", name, value);
  }
  return "";
}

}  // namespace gpubench::cpu
