#include "harness/plan/nearest.h"

#include <algorithm>
#include <vector>

namespace gpubench {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes of a and of b: two ago, the last, this one.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string nearest(std::string_view wanted, std::span<const std::string> known) {
  const std::size_t forgiven = wanted.size() <= 2 ? 1 : std::max<std::size_t>(2, wanted.size() / 3);
  std::size_t best = forgiven + 1;
  std::string result;
  for (const std::string& candidate : known) {
    const bool begun = wanted.size() >= 2 && candidate.starts_with(wanted);
    const std::size_t distance =
        begun ? std::min<std::size_t>(edit_distance(wanted, candidate), 1) : edit_distance(wanted, candidate);
    if (distance < best) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string> known) {
  const std::string candidate = nearest(wanted, known);
  return candidate.empty() ? "" : "; did you mean '" + candidate + "'?";
}

}  // namespace gpubench
