#include "harness/parity/sample.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

// A fault spread over the whole output must hit a few judged units, however expensive they are.
constexpr std::int64_t min_strata = 16;

// Rounding two ends, comparing, and updating the tally take about as long as this many fp64 operations.
constexpr double comparison_flop = 16.0;

}  // namespace

double work_of_unit(const CheckUnits& units) {
  return units.flop_per_unit + comparison_flop * static_cast<double>(units.elements);
}

double min_work(const CheckUnits& units) {
  return static_cast<double>(std::min(units.count, min_strata)) * work_of_unit(units);
}

UnitChoice UnitChoice::all(std::int64_t count) {
  UnitChoice choice;
  choice.everything_ = true;
  choice.count_ = count;
  return choice;
}

UnitChoice UnitChoice::some(std::vector<std::int64_t> units) {
  if (!std::is_sorted(units.begin(), units.end())) std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  UnitChoice choice;
  choice.units_ = std::move(units);
  return choice;
}

std::vector<std::int64_t> UnitChoice::slice(std::int64_t first, std::int64_t count) const {
  if (!everything_) return {units_.begin() + first, units_.begin() + first + count};
  std::vector<std::int64_t> units(static_cast<std::size_t>(count));
  std::iota(units.begin(), units.end(), first);
  return units;
}

UnitChoice choose_units(const CheckUnits& units, double flop_budget, std::vector<std::int64_t> suspects,
                        std::uint64_t key) {
  const double affordable = flop_budget / work_of_unit(units);
  if (static_cast<double>(units.count) <= affordable || units.count <= min_strata) return UnitChoice::all(units.count);

  std::set<std::int64_t> met;
  std::erase_if(suspects, [&](std::int64_t unit) { return !met.insert(unit).second; });
  const auto max_suspects = static_cast<std::size_t>(std::max(affordable, static_cast<double>(min_strata)));
  if (suspects.size() > max_suspects) suspects.resize(max_suspects);  // the first ones decide the verdict
  const auto paid = static_cast<std::int64_t>(affordable) - static_cast<std::int64_t>(units.landmarks.size());
  const std::int64_t strata = std::min(units.count, std::max(paid, min_strata));
  // stratum * count may overflow 64 bits.
  const std::int64_t width = units.count / strata;
  const std::int64_t wider = units.count % strata;
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(strata));  // ascending, one of each stratum
  for (std::int64_t i = 0; i < strata; ++i) {
    const auto of = static_cast<std::uint64_t>(width + (i < wider ? 1 : 0));
    drawn[static_cast<std::size_t>(i)] =
        i * width + std::min(i, wider) + static_cast<std::int64_t>(hash_at(key, static_cast<std::uint64_t>(i)) % of);
  }
  suspects.insert(suspects.end(), units.landmarks.begin(), units.landmarks.end());
  std::sort(suspects.begin(), suspects.end());
  std::vector<std::int64_t> chosen(drawn.size() + suspects.size());
  std::merge(drawn.begin(), drawn.end(), suspects.begin(), suspects.end(), chosen.begin());
  return UnitChoice::some(std::move(chosen));
}

namespace {

constexpr std::size_t max_largest = 8;
constexpr std::size_t most_smallest = 4;
constexpr std::int64_t run_elements = 128;  // scanned together

// The first elements in the order of `Before`, at most a given number; of equal ones the first seen.
template <class Before>
class First {
 public:
  explicit First(std::size_t most) : max_(most) {}
  [[nodiscard]] bool takes(std::uint64_t magnitude) const {
    return found_.size() < max_ || Before()(magnitude, found_.back().first);
  }
  void offer(std::uint64_t magnitude, std::int64_t linear) {
    if (!takes(magnitude)) return;
    const auto after =
        std::find_if(found_.begin(), found_.end(), [&](const auto& other) { return Before()(magnitude, other.first); });
    found_.insert(after, {magnitude, linear});
    if (found_.size() > max_) found_.pop_back();
  }
  [[nodiscard]] const auto& found() const { return found_; }

 private:
  std::size_t max_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> found_;
};

struct Extremes {
  First<std::greater<>> largest{max_largest};
  First<std::less<>> smallest{most_smallest};
};

// The chunks that hold everything a Scan names. The n largest elements are in the n chunks with the largest maxima.
std::set<std::int64_t> suspects_of(std::span<const ChunkScan> chunks, std::int64_t max_suspects, bool floating) {
  std::set<std::int64_t> chosen;
  std::int64_t suspects = 0;
  bool unwritten = false;
  Extremes extremes;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkScan& chunk = chunks[i];
    const auto at = static_cast<std::int64_t>(i);
    if ((chunk.suspects() > 0 && suspects < max_suspects) || (chunk.unwritten > 0 && !unwritten)) chosen.insert(at);
    suspects += chunk.suspects();
    unwritten = unwritten || chunk.unwritten > 0;
    if (!floating || chunk.finite == 0) continue;
    extremes.largest.offer(chunk.largest, at);
    extremes.smallest.offer(chunk.smallest, at);
  }
  for (const auto& [magnitude, chunk] : extremes.largest.found()) chosen.insert(chunk);
  for (const auto& [magnitude, chunk] : extremes.smallest.found()) chosen.insert(chunk);
  return chosen;
}

}  // namespace

bool poison_is_ambiguous(DType type) { return !is_float(type) || bits_of(type) <= 8; }

Scan scan(const TensorView& output, std::int64_t most) {
  const DType type = output.dtype();
  const std::vector<ChunkScan> chunks = output.scan();
  const ScanPattern look = scan_pattern(type);
  Scan found;
  Extremes extremes;
  std::vector<std::byte> bits(static_cast<std::size_t>(bytes_of(type, scan_chunk_elements)));
  for (const std::int64_t chunk : suspects_of(chunks, most, is_float(type))) {
    const std::int64_t first = chunk * scan_chunk_elements;
    const std::int64_t count = std::min(scan_chunk_elements, output.shape().elements() - first);
    output.read_bits(first, count, bits.data());
    for (std::int64_t i = 0, end = 0; i < count; ++i) {
      if (i == end) {  // most runs have nothing to report
        end = std::min(i + run_elements, count);
        const ChunkScan run = scan_chunk(type, bits.data() + bytes_of(type, i), end - i);
        const bool extreme = extremes.largest.takes(run.largest) || extremes.smallest.takes(run.smallest);
        if (run.suspects() == 0 && !(is_float(type) && extreme)) {
          i = end - 1;
          continue;
        }
      }
      const std::uint64_t element = load_bits(type, bits.data(), i);
      if ((element & look.mask) == look.pattern) {
        if (element == look.poison && found.first_unwritten < 0) found.first_unwritten = first + i;
        if (static_cast<std::int64_t>(found.suspects.size()) < most) found.suspects.push_back(first + i);
      } else {
        extremes.largest.offer(element & look.magnitude, first + i);
        extremes.smallest.offer(element & look.magnitude, first + i);
      }
    }
  }
  if (poison_is_ambiguous(type)) {
    found.first_unwritten = -1;
  } else {
    for (const ChunkScan& chunk : chunks) found.unwritten += chunk.unwritten;
  }
  if (!is_float(type)) return found;
  for (const auto& [magnitude, linear] : extremes.largest.found()) found.extremes.push_back(linear);
  for (const auto& [magnitude, linear] : extremes.smallest.found()) found.extremes.push_back(linear);
  return found;
}

}  // namespace gpubench
