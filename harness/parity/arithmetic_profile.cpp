#include "harness/parity/arithmetic_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/parity/lower_precision.h"

namespace gpubench {
namespace {

constexpr std::string_view mma_sim = "Xie et al., arXiv 2511.10909";
constexpr std::string_view fasi = "Fasi et al., PeerJ CS 7:e330; Xie et al., arXiv 2511.10909";
constexpr std::string_view ieee = "IEEE 754";

// Sums of 8-bit products on sm_89 and sm_90 keep this many bits (Xie et al.), and libraries that don't accumulate fast
// empty them after as many products (sum_error_bound.cpp).
constexpr int fast_f8_bits = 14;
constexpr std::int64_t declared_interval = 128;

bool fits(const KnownAccumulator& known, const SumReading& sums) {
  const bool at_once =
      known.at_once >= sums.at_once_least && (sums.at_once_most == 0 || known.at_once <= sums.at_once_most);
  const bool fraction = !sums.fraction || known.fraction == 0 || known.fraction == *sums.fraction;
  return known.bits == sums.bits && known.rounding == sums.rounding && at_once && fraction;
}

std::string type_of_bits(int bits) {
  if (bits == significant_bits(DType::bf16)) return "bf16";
  if (bits == significant_bits(DType::f16)) return "f16";
  return fmt::format("{} bits", bits);
}

}  // namespace

std::vector<KnownAccumulator> known_accumulators() {
  using enum SumRounding;
  const int f64 = significant_bits(DType::f64), f32 = significant_bits(DType::f32);
  const int f16 = significant_bits(DType::f16), bf16 = significant_bits(DType::bf16);
  return {
      {"f64, one product at a time", f64, nearest, 1, 0, ieee},
      {"f32, one product at a time", f32, nearest, 1, 0, ieee},
      {"bf16, one product at a time", bf16, nearest, 1, 0, ieee},
      {"f16, one product at a time", f16, nearest, 1, 0, ieee},
      {"f16 on Volta's tensor cores", f16, nearest, 4, 23, fasi},
      {"f16 on Turing's, Ampere's or Ada's tensor cores", f16, nearest, 8, 24, fasi},
      {"f16 on Hopper's or Blackwell's tensor cores", f16, nearest, 16, 25, mma_sim},
      {"Volta", f32, cut, 4, 23, fasi},
      {"Turing, Ampere or Ada", f32, cut, 8, 24, fasi},
      {"Ampere or Ada, tf32", f32, cut, 4, 24, fasi},
      {"Ada, 8-bit", fast_f8_bits, cut, 16, 13, mma_sim},
      {"Hopper or Blackwell", f32, cut, 16, 25, mma_sim},
      {"Hopper or Blackwell, tf32", f32, cut, 8, 25, mma_sim},
      {"Hopper, 8-bit", fast_f8_bits, cut, 32, 13, mma_sim},
      {"CDNA3", f32, nearest, 8, 24, mma_sim},
      {"CDNA3, xf32", f32, nearest, 4, 24, mma_sim},
      {"Blackwell, 8-bit", f32, cut, 32, 25, mma_sim},
      {"Blackwell, 4-bit", f32, cut, 64, 35, mma_sim},
  };
}

std::string accumulator_name(const SumReading& sums) {
  if (!sums.plain || !sums.bits || !sums.rounding || (sums.at_once_least == 1 && sums.at_once_most == 0)) return {};
  std::string name;
  for (const KnownAccumulator& known : known_accumulators()) {
    if (!fits(known, sums)) continue;
    name += fmt::format("{}{}", name.empty() ? "" : " or: ", known.name);
  }
  if (sums.emptied_every && (*sums.bits != fast_f8_bits || *sums.emptied_every != declared_interval ||
                             sums.outer_bits.value_or(significant_bits(DType::f32)) != significant_bits(DType::f32)))
    name.clear();
  if (name.empty()) return "unknown";
  if (sums.emptied_every) name += fmt::format(", emptied every {} products", *sums.emptied_every);
  if (sums.partial_bits) name += fmt::format(", partial sums in {}", type_of_bits(*sums.partial_bits));
  return name;
}

std::vector<Shortfall> shortfalls(const SumReading& sums, const ValueReading& values, const Math& math, DType a,
                                  DType b, bool blocks) {
  std::vector<Shortfall> all;
  using Kind = InputWidth::Kind;
  const auto look_at = [&](const std::optional<InputWidth>& width, DType type) {
    // A product that is added alone is rounded to what sums keep: where inputs show as many bits, that may be all.
    if (!width || (sums.kept && width->bits >= *sums.kept)) return;
    const bool tf32 = math.inputs == Math::Inputs::tf32 && type == DType::f32;
    std::string_view name;
    if (width->kind == Kind::tf32 && !tf32) name = lower_arithmetic::tf32.name;
    if (width->kind == Kind::bf16) name = lower_arithmetic::bf16.name;
    if (width->kind == Kind::two_bf16 && !tf32) name = lower_arithmetic::two_bf16.name;
    if (width->kind == Kind::fewer_bits) name = lower_arithmetic::fewer_input_bits.name;
    if (name.empty() || (!all.empty() && all.back().name == name)) return;
    all.push_back({name, "inputs as " + width->words, tf32 ? "tf32" : "exact inputs"});
  };
  look_at(values.a, a);
  look_at(values.b, b);
  if (!sums.plain) return all;
  const int wanted = significant_bits(math.accumulate);
  const std::optional<int>& kept = sums.kept;
  const std::string declared = fmt::format("{} ({})", wanted, name(math.accumulate));
  if (kept && *kept < wanted) {
    const bool f8 = !blocks && std::max(bits_of(a), bits_of(b)) == 8 && *kept >= fast_f8_bits;
    if (!f8) {
      const std::string_view name = *kept == significant_bits(DType::f16)    ? lower_arithmetic::f16_sums.name
                                    : *kept == significant_bits(DType::bf16) ? lower_arithmetic::bf16_sums.name
                                                                             : lower_arithmetic::fewer_sum_bits.name;
      all.push_back({name, fmt::format("running sums of {} bits", *kept), declared});
    } else if (!math.fast_accumulation &&
               (sums.emptied_every.value_or(0) > declared_interval || sums.not_emptied_within > declared_interval)) {
      all.push_back({lower_arithmetic::fast_f8.name,
                     fmt::format("running sums of {} bits for more than {} products", *kept,
                                 sums.emptied_every ? *sums.emptied_every - 1 : sums.not_emptied_within),
                     fmt::format("at most {}", declared_interval)});
    }
  }
  if (sums.partial_bits && *sums.partial_bits < wanted && !math.split_k_in_output) {
    all.push_back({lower_arithmetic::split_k_in_output.name,
                   fmt::format("partial sums in {}", type_of_bits(*sums.partial_bits)), declared});
  }
  return all;
}

}  // namespace gpubench
