#include "harness/parity/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

const int tf32_bits = significant_bits(DType::f16), bf16_bits = significant_bits(DType::bf16);

double in_two_bf16(double value) {
  const double high = narrowed(value, bf16_bits, Narrowing::to_even);
  return high + narrowed(value - high, bf16_bits, Narrowing::to_even);
}

std::string_view words_of(Narrowing how) {
  switch (how) {
    case Narrowing::to_even: return "rounded to nearest even";
    case Narrowing::to_away: return "rounded to nearest, ties away";
    case Narrowing::to_zero: return "cut";
  }
  return "";
}

struct Candidate {
  InputWidth width;
  std::function<double(double)> of;
};

std::vector<Candidate> candidates_for(int bits) {
  using Kind = InputWidth::Kind;
  std::vector<Candidate> all{{{Kind::exact, bits, "exact"}, [](double value) { return value; }}};
  const auto add = [&](Kind kind, std::string_view what, int width) {
    for (const Narrowing how : {Narrowing::to_even, Narrowing::to_away, Narrowing::to_zero}) {
      all.push_back({{kind, width, fmt::format("{}, {}", what, words_of(how))},
                     [width, how](double value) { return narrowed(value, width, how); }});
    }
  };
  if (bits > 2 * bf16_bits) all.push_back({{Kind::two_bf16, 2 * bf16_bits, "two bf16"}, in_two_bf16});
  if (bits > tf32_bits) add(Kind::tf32, "tf32", tf32_bits);
  if (bits > bf16_bits) add(Kind::bf16, "bf16", bf16_bits);
  for (int width = bits - 1; width > 1; --width) add(Kind::fewer_bits, fmt::format("{} bits", width), width);
  return all;
}

}  // namespace

double narrowed(double value, int bits, Narrowing how) {
  if (value == 0.0) return value;
  const int shift = bits - 1 - std::ilogb(value);
  const double scaled = std::ldexp(value, shift);
  const double whole = how == Narrowing::to_even   ? std::nearbyint(scaled)
                       : how == Narrowing::to_away ? std::round(scaled)
                                                   : std::trunc(scaled);
  return std::ldexp(whole, -shift);
}

std::vector<double> width_numbers(DType type, const Exponents& range, std::uint64_t key) {
  const int bits = significant_bits(type);
  std::vector<double> all;
  for (const int width : {tf32_bits, bf16_bits}) {
    for (const double odd : {1.0, 3.0}) {
      if (bits > width) all.push_back(1.0 + std::ldexp(odd, -width));
    }
  }
  for (std::uint64_t i = 0; all.size() < width_numbers_tried; ++i) {
    const std::uint64_t random = hash_at(key, i);
    const double last = std::ldexp(1.0, 1 - bits);
    const double mantissa = 1.0 + std::ldexp(static_cast<double>(random >> 12U), -52);
    // An odd last bit, and an exponent within the range: 4-bit types don't hold 1 and 1.5 with every exponent.
    const double value = narrowed(mantissa, bits - 1, Narrowing::to_zero) + last;
    const int exponent = std::clamp(static_cast<int>(random % 5) - 2, range.least, range.most - 1);
    all.push_back(std::ldexp(random % 2 == 0 ? value : -value, exponent));
  }
  return all;
}

InputWidth width_of(DType type, const std::vector<double>& numbers, const std::vector<double>& results) {
  for (const Candidate& candidate : candidates_for(significant_bits(type))) {
    bool all = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) all = all && results[i] == candidate.of(numbers[i]);
    if (all) return candidate.width;
  }
  return {InputWidth::Kind::unknown, 0, "unknown"};
}

}  // namespace gpubench
