#include "harness/compare/false_discovery.h"

#include <algorithm>
#include <numeric>

namespace gpubench {

std::vector<double> false_discovery_rates(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> q(p.size());
  const auto tests = static_cast<double>(p.size());
  double least = 1.0;
  for (std::size_t rank = p.size(); rank > 0; --rank) {
    const std::size_t test = order[rank - 1];
    least = std::min(least, p[test] * tests / static_cast<double>(rank));
    q[test] = least;
  }
  return q;
}

}  // namespace gpubench
