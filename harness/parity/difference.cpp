#include "harness/parity/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <queue>
#include <utility>

namespace gpubench {
namespace {

// Equal stretches are passed at the speed of memcmp.
constexpr std::int64_t stretch_elements = 4096;

bool equal_bits(const TensorView& a, const TensorView& b, std::int64_t linear, std::int64_t elements) {
  return std::memcmp(a.address(linear), b.address(linear), static_cast<std::size_t>(elements) * size_of(a.dtype())) ==
         0;
}

double distance(double got, double expected) {
  const double apart = std::fabs(got - expected);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

}  // namespace

Difference difference(const TensorView& got, const TensorView& expected, std::int64_t most) {
  const std::int64_t elements = got.shape().elements();
  const bool dense = got.spec().layout.is_row_major(got.shape());
  Difference found;
  using Apart = std::pair<double, std::int64_t>;  // the index negated, so that of equals the first is kept
  std::priority_queue<Apart, std::vector<Apart>, std::greater<>> largest;
  for (std::int64_t first = 0; first < elements; first += stretch_elements) {
    const std::int64_t last = std::min(elements, first + stretch_elements);
    if (dense && equal_bits(got, expected, first, last - first)) continue;
    for (std::int64_t i = first; i < last; ++i) {
      if (equal_bits(got, expected, i, 1)) continue;
      ++found.elements;
      largest.emplace(distance(got[i], expected[i]), -i);
      if (static_cast<std::int64_t>(largest.size()) > most) largest.pop();
    }
  }
  found.largest.resize(largest.size());
  for (auto at = found.largest.rbegin(); at != found.largest.rend(); ++at, largest.pop()) *at = -largest.top().second;
  return found;
}

}  // namespace gpubench
