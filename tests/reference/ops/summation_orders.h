// Orders in which correct implementations add f32 terms, each sum rounded to nearest. A fused multiply-add rounds once:
// fp64 holds the product of two f32 numbers exactly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace gpubench::testing {

/// Factors of the terms a[k] b[k], all of them f32 numbers.
struct Factors {
  std::span<const double> a, b;
  [[nodiscard]] std::size_t size() const { return a.size(); }
  [[nodiscard]] Factors part(std::size_t first, std::size_t count) const {
    return {a.subspan(first, count), b.subspan(first, count)};
  }
};

inline float fused(float sum, double a, double b) { return static_cast<float>(static_cast<double>(sum) + a * b); }

inline float in_order(const Factors& terms) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < terms.size(); ++k) sum = fused(sum, terms.a[k], terms.b[k]);
  return sum;
}

/// As in_order(), but products are rounded before they are added.
inline float in_order_unfused(const Factors& terms) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < terms.size(); ++k) sum += static_cast<float>(terms.a[k] * terms.b[k]);
  return sum;
}

/// Vector lanes, or threads that take every n-th term, with sums added as a tree.
inline float interleaved(const Factors& terms, std::size_t lanes) {
  std::vector<float> sums(lanes, 0.0F);
  for (std::size_t k = 0; k < terms.size(); ++k) sums[k % lanes] = fused(sums[k % lanes], terms.a[k], terms.b[k]);
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

/// Blocks of neighbours in `lanes` lanes each, added in order: cache blocks, split-K, threads' shares.
inline float blocked(const Factors& terms, std::size_t block, std::size_t lanes = 1) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < terms.size(); k += block)
    sum += interleaved(terms.part(k, std::min(block, terms.size() - k)), lanes);
  return sum;
}

inline float in_parts(const Factors& terms, std::size_t parts) {
  return blocked(terms, (terms.size() + parts - 1) / parts);
}

inline float pairwise(const Factors& terms) {
  if (terms.size() == 1) return static_cast<float>(terms.a[0] * terms.b[0]);
  const std::size_t half = terms.size() / 2;
  return pairwise(terms.part(0, half)) + pairwise(terms.part(half, terms.size() - half));
}

struct SummationOrder {
  const char* name;
  float (*sum)(const Factors&);
};

inline constexpr SummationOrder summation_orders[] = {
    {"in order", in_order},
    {"in order, products rounded", in_order_unfused},
    {"8 lanes", [](const Factors& t) { return interleaved(t, 8); }},
    {"16 lanes", [](const Factors& t) { return interleaved(t, 16); }},
    {"blocks of 64", [](const Factors& t) { return blocked(t, 64); }},
    {"blocks of 256 in 8 lanes", [](const Factors& t) { return blocked(t, 256, 8); }},
    {"2 parts", [](const Factors& t) { return in_parts(t, 2); }},
    {"4 parts", [](const Factors& t) { return in_parts(t, 4); }},
    {"16 parts", [](const Factors& t) { return in_parts(t, 16); }},
    {"pairwise", pairwise},
};

}  // namespace gpubench::testing
