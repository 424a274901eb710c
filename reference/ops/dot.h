// The inner loop of contractions in the textbook.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "reference/ops/sum_error_bound.h"

namespace gpubench {

/// Sum of a[i] b[i] and of their squares, with one term per element. Eight products at a time, so that the compiler can
/// use vector registers; the order depends on the length only, so that a unit has the same value however it is asked
/// for. In sums of more than 64 products, those of neighbours are looked at behind every eighth one, and stand for
/// those before: in between they move by sqrt(8) of the eight products' Q at most.
[[nodiscard]] inline ProductSum dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> product{};
  std::array<double, lanes> squares{};
  const std::size_t whole = a.size() <= 64 ? 0 : a.size() - a.size() % lanes;
  ProductSum sum;
  for (std::size_t k = 0; k < whole; k += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      product[lane] = a[k + lane] * b[k + lane];
      squares[lane] += product[lane] * product[lane];
    }
    sum.value += ((product[0] + product[1]) + (product[2] + product[3])) +
                 ((product[4] + product[5]) + (product[6] + product[7]));
    sum.reach(static_cast<double>(lanes));
  }
  for (const double of_lane : squares) sum.squares += of_lane;
  for (std::size_t k = whole; k < a.size(); ++k) sum.add(a[k] * b[k]);
  sum.terms = static_cast<double>(a.size());
  return sum;
}

/// The same where what is judged was itself summed in fp64: the value is summed in long double, whose 64 bits (x86)
/// leave an error far below the bound.
[[nodiscard]] inline ProductSum wide_dot(std::span<const double> a, std::span<const double> b) {
  ProductSum sum;
  long double value = 0.0L;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum.add(a[k] * b[k]);
    value += static_cast<long double>(a[k]) * static_cast<long double>(b[k]);
  }
  sum.value = static_cast<double>(value);
  return sum;
}

}  // namespace gpubench
