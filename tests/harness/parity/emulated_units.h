// Units that add up products, bit-accurate as far as published: Xie et al., "MMA-Sim", arXiv 2511.10909; Fasi, Higham,
// Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021.
//
// Tensor cores align the products of a block and the old sum to the largest exponent among them (of a product: the sum
// of its factors' exponents), truncate each to a number of bits below it, and truncate or round the exact sum to the
// register's type. Facts only; independently written in fp64.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/dtype.h"

namespace gpubench::testing {

enum class Register { f32_cut, f32_cut_to_13_bits, f16_nearest };

struct Split {
  double significand;
  int exponent;
  Split(double value, int least) : exponent(value == 0.0 ? least : std::max(std::ilogb(value), least)) {
    significand = std::ldexp(value, -exponent);
  }
};

inline double cut(double value, int fraction_bits, int min_exponent) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  return std::ldexp(std::trunc(std::ldexp(value, fraction_bits - exponent)), exponent - fraction_bits);
}

inline int min_exponent(DType type) { return std::ilogb(smallest_normal(type)); }

/// A term of a block with its exponent for the alignment: a product, or in nvfp4 the exact sum of 16 products.
struct Term {
  double significand = 0.0;
  int exponent = 0;
};

inline double fused_sum(std::span<const Term> terms, double old, int fraction, Register kept) {
  const Split sum(old, min_exponent(DType::f32));
  int largest = old == 0.0 ? -100000 : sum.exponent;
  for (const Term& term : terms) {
    if (term.significand != 0.0) largest = std::max(largest, term.exponent);
  }
  if (largest == -100000) return 0.0;
  const auto aligned = [&](double significand, int exponent) {
    return std::trunc(std::ldexp(significand, exponent - largest + fraction));
  };
  double total = old == 0.0 ? 0.0 : aligned(sum.significand, sum.exponent);
  for (const Term& term : terms) total += aligned(term.significand, term.exponent);
  const double value = std::ldexp(total, largest - fraction);
  switch (kept) {
    case Register::f32_cut: return round_to(DType::f32, cut(value, 23, -126));
    case Register::f32_cut_to_13_bits: return cut(value, 13, -126);
    case Register::f16_nearest: return round_to(DType::f16, value);
  }
  return value;
}

/// A sum of products a[k] b[k]. `least`: exponents of the smallest normal numbers of both types.
struct Factors8 {
  std::span<const double> a, b;
  int min_a = -126, min_b = -126;
};

struct TensorUnit {
  int block, fraction;
  Register kept = Register::f32_cut;
  int empty_every = 0;   ///< products after which the register is added to an f32 sum; 0: never
  int group = 1;         ///< neighbours whose products are summed exactly, with the scale of their block
  int made_up_bits = 0;  ///< significant bits that the register is truncated to after that; no known unit does this

  [[nodiscard]] double operator()(const Factors8& f) const {
    const auto length = f.a.size(), step = static_cast<std::size_t>(block);
    double outer = 0.0, sum = 0.0;
    std::vector<Term> terms;
    for (std::size_t k = 0; k < length; k += step) {
      const std::size_t end = std::min(k + step, length);
      terms.clear();
      bool special = false;
      double plain = sum;
      for (std::size_t i = k; i < end; i += static_cast<std::size_t>(group)) {
        Term term;
        for (std::size_t j = i; j < std::min(i + static_cast<std::size_t>(group), end); ++j) {
          const double product = f.a[j] * f.b[j];
          plain += product;
          if (!std::isfinite(product)) special = true;
          if (product == 0.0) continue;
          const Split a(f.a[j], f.min_a), b(f.b[j], f.min_b);
          // A single term is exact; a group holds at most one from the probe, with scales that are powers of two.
          term = {a.significand * b.significand, a.exponent + b.exponent};
        }
        terms.push_back(term);
      }
      if (special || !std::isfinite(sum)) {
        sum = kept == Register::f16_nearest ? round_to(DType::f16, plain) : plain;
      } else {
        sum = fused_sum(terms, sum, fraction, kept);
        if (made_up_bits > 0) sum = cut(sum, made_up_bits - 1, -126);
      }
      if (empty_every > 0 && end % static_cast<std::size_t>(empty_every) == 0) {
        outer = round_to(DType::f32, outer + sum);
        sum = 0.0;
      }
    }
    return empty_every > 0 ? round_to(DType::f32, outer + sum) : sum;
  }
};

/// CDNA3: the products of a block are aligned and truncated among themselves, then added to the old sum, both truncated
/// towards minus infinity, and rounded to f32.
struct MatrixCore {
  int block, fraction = 24, wide_fraction = 31;

  [[nodiscard]] double operator()(const Factors8& f) const {
    const auto length = f.a.size(), step = static_cast<std::size_t>(block);
    double sum = 0.0;
    for (std::size_t k = 0; k < length; k += step) {
      const std::size_t end = std::min(k + step, length);
      int largest = -100000;
      std::vector<Term> terms;
      double plain = sum;
      bool special = !std::isfinite(sum);
      for (std::size_t i = k; i < end; ++i) {
        const double product = f.a[i] * f.b[i];
        plain += product;
        special = special || !std::isfinite(product);
        if (product == 0.0) continue;
        const Split a(f.a[i], f.min_a), b(f.b[i], f.min_b);
        terms.push_back({a.significand * b.significand, a.exponent + b.exponent});
        largest = std::max(largest, terms.back().exponent);
      }
      if (special) {
        sum = plain;
        continue;
      }
      if (terms.empty()) continue;
      double products = 0.0;
      for (const Term& term : terms)
        products += std::trunc(std::ldexp(term.significand, term.exponent - largest + fraction));
      products = std::ldexp(products, -fraction);
      const Split old(sum, -126);
      const int top = sum == 0.0 ? largest : std::max(largest, old.exponent);
      double total = std::ldexp(std::floor(std::ldexp(products, largest - top + wide_fraction)), -wide_fraction);
      if (sum != 0.0)
        total += std::ldexp(std::floor(std::ldexp(old.significand, old.exponent - top + fraction)), -fraction);
      sum = round_to(DType::f32, std::ldexp(total, top));
    }
    return sum;
  }
};

inline double fused_f32(const Factors8& f) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < f.a.size(); ++k)
    sum = std::fma(static_cast<float>(f.a[k]), static_cast<float>(f.b[k]), sum);
  return sum;
}
inline double fused_f64(const Factors8& f) {
  double sum = 0.0;
  for (std::size_t k = 0; k < f.a.size(); ++k) sum = std::fma(f.a[k], f.b[k], sum);
  return sum;
}
inline double rounded_each_time(const Factors8& f, DType type) {
  double sum = 0.0;
  for (std::size_t k = 0; k < f.a.size(); ++k) sum = round_to(type, sum + f.a[k] * f.b[k]);
  return sum;
}

/// Any way of adding, over `parts` parts of k whose sums are stored in `type` and added in f32.
template <class Sum>
double split_sum(const Factors8& f, std::size_t parts, DType type, const Sum& sum_of) {
  double sum = 0.0;
  const std::size_t length = (f.a.size() + parts - 1) / parts;
  for (std::size_t k = 0; k < f.a.size(); k += length) {
    const std::size_t count = std::min(length, f.a.size() - k);
    sum = round_to(DType::f32,
                   sum + round_to(type, sum_of({f.a.subspan(k, count), f.b.subspan(k, count), f.min_a, f.min_b})));
  }
  return sum;
}

}  // namespace gpubench::testing
