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

double distance(double got, double expected) {
  const double apart = std::fabs(got - expected);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

}  // namespace

Difference difference(const TensorView& got, const TensorView& expected, std::int64_t most) {
  const std::int64_t elements = got.shape().elements();
  const std::size_t size = size_of(got.dtype());
  std::vector<std::byte> a(stretch_elements * size);
  std::vector<std::byte> b(a.size());
  Difference found;
  using Apart = std::pair<double, std::int64_t>;  // the index negated, so that of equals the first is kept
  std::priority_queue<Apart, std::vector<Apart>, std::greater<>> largest;
  for (std::int64_t first = 0; first < elements; first += stretch_elements) {
    const std::int64_t count = std::min(elements - first, stretch_elements);
    got.read_bits(first, count, a.data());
    expected.read_bits(first, count, b.data());
    if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(count) * size) == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * size;
      if (std::memcmp(a.data() + at, b.data() + at, size) == 0) continue;
      if (found.elements++ == 0) found.first = first + i;
      largest.emplace(distance(load(got.dtype(), a.data() + at), load(got.dtype(), b.data() + at)), -(first + i));
      if (static_cast<std::int64_t>(largest.size()) > most) largest.pop();
    }
  }
  found.largest.resize(largest.size());
  for (auto at = found.largest.rbegin(); at != found.largest.rend(); ++at, largest.pop()) *at = -largest.top().second;
  return found;
}

}  // namespace gpubench
