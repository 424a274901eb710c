#include "harness/measure/protocol.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace gpubench {
namespace {

constexpr Protocol minimal{"minimal", 3, 3, 3, 0.0, 0.12, 200e-6, 1, 0.002, 1, 0.001};
constexpr Protocol brief{"brief", 3, 3, 5, 0.0, 1.0, 500e-6, 2, 0.020, 1, 0.005};
constexpr Protocol normal{"normal", 10, 20, 10, 0.005, 10.0, 500e-6, 5, 0.200, 3, 0.050};
constexpr Protocol gate{"gate", 5, 10, 10, 0.005, 5.0, 500e-6, 5, 0.200, 3, 0.050};
constexpr Protocol thorough{"thorough", 20, 40, 20, 0.0025, 60.0, 500e-6, 5, 0.200, 3, 0.050};

constexpr std::int64_t largest_batch = 4096;
constexpr std::int64_t most_copies = 64;

}  // namespace

std::string_view name(Preset preset) { return protocol_of(preset).name; }

Preset preset_of(Tier tier) {
  switch (tier) {
    case Tier::smoke: return Preset::minimal;
    case Tier::quick: return Preset::brief;
    case Tier::standard:
    case Tier::large: return Preset::normal;
  }
  return Preset::normal;
}

const Protocol& protocol_of(Preset preset) {
  switch (preset) {
    case Preset::minimal: return minimal;
    case Preset::brief: return brief;
    case Preset::normal: return normal;
    case Preset::gate: return gate;
    case Preset::thorough: return thorough;
  }
  return normal;
}

std::int64_t batch_for(const Protocol& protocol, CacheMode cache, double estimate_s) {
  if (cache == CacheMode::step) return 1;
  const double runs = std::ceil(protocol.min_sample_s / estimate_s);
  if (!(runs < static_cast<double>(largest_batch))) return largest_batch;  // also for an estimate of 0
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(runs, 1.0))));
}

int copies_for(CacheMode cache, std::int64_t working_set_bytes, std::int64_t cache_bytes,
               std::int64_t available_bytes) {
  if (cache != CacheMode::cold || working_set_bytes <= 0 || working_set_bytes >= 3 * cache_bytes) return 1;
  const std::int64_t wanted = std::min(1 + 3 * cache_bytes / working_set_bytes, most_copies);
  const std::int64_t affordable = available_bytes / 4 / working_set_bytes;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, affordable)));
}

bool settled(const Protocol& protocol, std::span<const RoundRecord> rounds, std::int64_t batch, double spent_s) {
  const std::vector<double> log_medians = log_round_medians(rounds, batch);
  const auto valid = static_cast<int>(log_medians.size());
  // A machine that spoils every round must not keep a case going for ever.
  if (valid >= protocol.max_rounds || static_cast<int>(rounds.size()) >= 2 * protocol.max_rounds) return true;
  if (valid < protocol.min_rounds) return false;
  return spent_s >= protocol.budget_s ||
         (protocol.half_width > 0.0 && mean_half_width(log_medians) <= protocol.half_width);
}

}  // namespace gpubench
