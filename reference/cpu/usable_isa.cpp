#include "reference/cpu/usable_isa.h"

#include <dnnl.h>
#include <dnnl_version.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "harness/core/backend.h"
#include "harness/core/error.h"
#include "reference/cpu/own_kernel_proof.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gpubench::cpu {
namespace {

// Passes the result to child processes. Not GPUBENCH_...: users should not set it, and no flag corresponds to it.
constexpr const char* handed_down = "_GPUBENCH_USABLE_ISA";

// Why announced AMX cannot work, by CPUID. Leaf 0x1D describes the tiles, 0x1E the multiply unit (Intel 64 and IA-32
// Architectures Software Developer's Manual, CPUID).
std::string missing_amx_reason(const CpuidReader& cpuid) {
  constexpr std::uint32_t tiles = 1U << 24U;
  if ((cpuid(7, 0)[3] & tiles) == 0) return "";
  const auto empty = [&](std::uint32_t leaf, std::uint32_t subleaf) {
    const std::array<std::uint32_t, 4> registers = cpuid(leaf, subleaf);
    return std::all_of(registers.begin(), registers.end(), [](std::uint32_t value) { return value == 0; });
  };
  if (empty(0x1D, 0)) return "amx is announced, but CPUID leaf 0x1D is empty";
  if (empty(0x1D, 1)) return "amx is announced, but CPUID leaf 0x1D describes no tiles";
  if (empty(0x1E, 0)) return "amx is announced, but CPUID leaf 0x1E is empty";
  return "";
}

std::string onednn_exclusion_reason(const IsaProof& proof, const CpuidReader& cpuid) {
  const bool by_amx = proof.onednn.find("amx") != std::string::npos;
  const std::string lack = by_amx ? missing_amx_reason(cpuid) : "";
  return lack.empty() ? fmt::format("oneDNN {} in {}", proof.fault, proof.step) : lack;
}

UsableIsa find_or_inherit() {
  if (const char* text = std::getenv(handed_down); text != nullptr) {
    if (const std::optional<UsableIsa> inherited = from_text(text, ::getppid())) return *inherited;
  }
  return find_usable_isa(prove_in_child, read_cpuid, onednn_isa_variable());
}

// Field separator; texts come last, with it replaced by blanks.
constexpr char separator = '|';

std::string one_field(std::string text) {
  std::replace(text.begin(), text.end(), separator, ' ');
  return text;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool names_own_kernels(const std::string& isa) {
  const auto all = own_kernels();
  return std::any_of(all.begin(), all.end(), [&](const OwnKernels& kernels) { return kernels.isa == isa; });
}

struct Level {
  const char* name;
  dnnl_cpu_isa_t isa;
};

// From the highest down. A value is a set of bits; a level contains another if it has all its bits.
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

const UsableIsa& usable_isa() {
  static const UsableIsa found = [] {
    UsableIsa isa = find_or_inherit();
    limit_vector_kernels(isa.limit.barred);
    (void)::setenv(handed_down, to_text(isa, ::getpid()).c_str(), 1);  // on failure, children run their own trial
    return isa;
  }();
  return found;
}

void limit_vector_kernels(const std::set<std::string>& barred) {
  constexpr auto from = [](std::int64_t target) { return target | (target - 1); };  // the better, the lower the bit
  hwy::DisableTargets(barred.contains("avx2") ? from(HWY_AVX2) : barred.contains("avx512") ? from(HWY_AVX3) : 0);
}

bool own_kernels_usable(const std::string& isa) { return !usable_isa().limit.barred.contains(isa); }

std::vector<std::pair<std::string, std::string>> properties_of(const UsableIsa& isa) {
  if (isa.why.empty()) return {};
  std::vector<std::string> words;
  if (!isa.left_to_user.empty()) words.push_back(fmt::format("left as {} says", isa.left_to_user));
  if (!isa.limit.onednn.empty()) words.push_back(fmt::format("limited to {}", isa.limit.onednn));
  if (!isa.limit.barred.empty())
    words.push_back(fmt::format("limited to own kernels without {}", fmt::join(isa.limit.barred, " and ")));
  return {{std::string(device_property::cpu_isa), fmt::format("{}", fmt::join(words, ", "))},
          {std::string(device_property::cpu_isa_reason), isa.why}};
}

std::array<std::uint32_t, 4> read_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  std::array<std::uint32_t, 4> registers{};
#if defined(__x86_64__)
  if (__get_cpuid_count(leaf, subleaf, registers.data(), &registers[1], &registers[2], &registers[3]) == 0) return {};
#else
  (void)leaf;
  (void)subleaf;
#endif
  return registers;
}

UsableIsa find_usable_isa(const IsaProver& prove, const CpuidReader& cpuid, const std::string& users_variable) {
  UsableIsa isa;
  std::string onednn_reason;
  std::vector<std::string> why;
  while (true) {
    const IsaProof proof = prove(isa.limit);
    switch (proof.stage) {
      case IsaProof::Stage::passed:
        // The library may lack code for the requested level and use the one below it.
        if (!isa.limit.onednn.empty()) isa.limit.onednn = proof.onednn;
        break;
      case IsaProof::Stage::own:
        if (!isa.limit.barred.insert(proof.step).second) {
          throw BackendError(
              fmt::format("cpu: kernels for {} {} although they were excluded", proof.step, proof.fault));
        }
        why.push_back(fmt::format("own kernels for {} {}", proof.step, proof.fault));
        continue;
      case IsaProof::Stage::onednn: {
        onednn_reason = onednn_exclusion_reason(proof, cpuid);
        if (!users_variable.empty()) {
          isa.left_to_user = users_variable;
          break;
        }
        const std::string lower = next_lower_isa(proof.onednn);
        if (lower.empty() || lower == isa.limit.onednn) {
          throw BackendError(
              fmt::format("cpu: oneDNN {} in {}, with {} as its highest instruction set and no lower one "
                          "left to try",
                          proof.fault, proof.step, proof.onednn.empty() ? "none" : proof.onednn));
        }
        isa.limit.onednn = lower;
        continue;
      }
      case IsaProof::Stage::started:
      case IsaProof::Stage::baseline:
        throw BackendError(
            fmt::format("cpu: vector code {}: this processor, or its emulator, announces features that it lacks; "
                        "correct its CPUID flags",
                        proof.fault));
    }
    if (!onednn_reason.empty()) why.insert(why.begin(), onednn_reason);
    isa.why = fmt::format("{}", fmt::join(why, "; "));
    return isa;
  }
}

std::string to_text(const UsableIsa& isa, std::int64_t process) {
  return fmt::format("{}{}{}{}{}{}{}{}{}", process, separator, isa.limit.onednn, separator,
                     fmt::join(isa.limit.barred, ","), separator, one_field(isa.left_to_user), separator,
                     one_field(isa.why));
}

std::optional<UsableIsa> from_text(const std::string& text, std::int64_t process) {
  const std::vector<std::string> fields = split(text, separator);
  if (fields.size() != 5 || fields[0] != std::to_string(process)) return std::nullopt;
  UsableIsa isa;
  isa.limit.onednn = fields[1];
  if (!fields[2].empty()) {
    for (const std::string& barred : split(fields[2], ',')) isa.limit.barred.insert(barred);
  }
  isa.left_to_user = fields[3];
  isa.why = fields[4];
  const bool known = std::all_of(isa.limit.barred.begin(), isa.limit.barred.end(), names_own_kernels);
  return known ? std::optional(isa) : std::nullopt;
}

std::string onednn_isa() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  // A newer library may have higher levels: returns the highest known level that is contained.
  const auto* found =
      std::find_if(std::begin(levels), std::end(levels), [&](const Level& level) { return contains(isa, level.isa); });
  return found == std::end(levels) ? "" : found->name;
}

bool onednn_multiplies_bf16() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
#if DNNL_VERSION_MAJOR >= 3
  if (contains(isa, dnnl_cpu_isa_avx2_vnni_2)) return true;
#endif
  return contains(isa, dnnl_cpu_isa_avx512_core_bf16);
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
  // A second call, for a further rank, fails too: the effective level decides.
  const dnnl_status_t status = dnnl_set_max_cpu_isa(level->isa);
  if (!contains(level->isa, dnnl_get_effective_cpu_isa())) {
    throw BackendError(
        fmt::format("oneDNN cannot be limited to {} (status {}), and higher ones do not work here; "
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
