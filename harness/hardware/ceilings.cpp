#include "harness/hardware/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/backend.h"
#include "harness/core/recipe.h"
#include "harness/core/record.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr double mega = 1e6;
constexpr double timers_differ = 1.01;
/// In shorter products, starting and ending (waking threads, filling a device's units) takes a share of the time.
constexpr double shortest_peak_ns = 500e3;
constexpr std::string_view memory_limit = "memory";

struct Ceiling {
  double value = 0.0;
  std::string source;
};

struct Best {
  double rate = 0.0;
  std::string id;
  void offer(double candidate, const std::string& from) {
    if (candidate > rate) *this = {candidate, from};
  }
};

struct Bests {
  std::map<std::string, Best> gemm;  // by recipe
  Best memory;
};

bool measured(const CaseRecord& record) {
  const bool counts = record.verdict == Verdict::pass || record.verdict == Verdict::unverified;
  return counts && record.c.ranks == 1 && record.summary.rounds > 0 && record.summary.median_ns > 0.0;
}

// Whether each sample fetched its data from memory: the rotating copies fill three caches.
bool from_memory(const DeviceInfo& device, const CaseRecord& record) {
  return record.c.cache == CacheMode::cold && record.memory_bytes >= 3 * device.cache_bytes;
}

// The fastest arithmetic of a recipe's matrix products. Empty if no rate is published for it.
std::optional<Rate> rate_of(const std::string& recipe_name) {
  const auto all = recipes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Recipe& r) { return r.name == recipe_name; });
  if (found == all.end() || found->math.inputs == Math::Inputs::emulated) return std::nullopt;
  if (found->math.inputs == Math::Inputs::tf32) return Rate::tf32;
  switch (found->operand) {
    case DType::f64: return Rate::fp64;
    case DType::f32: return Rate::fp32;
    case DType::f16: return Rate::fp16;
    case DType::bf16: return Rate::bf16;
    case DType::f8_e4m3:
    case DType::f8_e5m2: return Rate::fp8;
    case DType::f4_e2m1: return Rate::fp4;
    default: return std::nullopt;
  }
}

using SpreadMember = std::optional<Spread> RoundTelemetry::*;

// Over the rounds that report it: the highest reading, or the median of their medians.
std::optional<double> clock_of(const CaseRecord& record, SpreadMember clock, bool highest) {
  std::vector<double> values;
  for (const RoundRecord& round : record.rounds) {
    if (!round.valid || !round.telemetry) continue;
    if (const std::optional<Spread>& read = (*round.telemetry).*clock)
      values.push_back(highest ? read->max : read->median);
  }
  if (values.empty()) return std::nullopt;
  return highest ? *std::max_element(values.begin(), values.end()) : median(values);
}

class Limits {
 public:
  explicit Limits(const DeviceInfo& device)
      : device_(device),
        row_(device.kind == "cuda" ? find_device(device.name, device.units) : nullptr),
        capability_(row_ != nullptr ? row_->capability : reported_capability(device)),
        max_sm_mhz_(property_number(device, device_property::max_sm_mhz)),
        max_memory_mhz_(property_number(device, device_property::max_memory_mhz)),
        bus_bits_(property_number(device, device_property::memory_bus_bits)) {}

  [[nodiscard]] std::optional<Ceiling> arithmetic(Rate rate) const {
    if (row_ != nullptr) {
      std::optional<Figure> figure = peak_rate(*row_, rate);
      const auto tensor = rate == Rate::fp64 ? peak_rate(*row_, Rate::fp64_tensor) : std::nullopt;
      if (tensor && (!figure || tensor->high > figure->high)) figure = tensor;
      if (figure) return published(*figure);
    }
    return max_sm_mhz_ ? arithmetic_at(rate, *max_sm_mhz_) : std::nullopt;
  }

  [[nodiscard]] std::optional<Ceiling> arithmetic_at(Rate rate, double sm_mhz) const {
    if (device_.kind != "cuda" || capability_ == 0) return std::nullopt;
    const bool geforce = is_geforce(device_.name);
    std::optional<double> operations = operations_per_clock(capability_, geforce, rate);
    if (rate == Rate::fp64)
      operations = std::max(operations, operations_per_clock(capability_, geforce, Rate::fp64_tensor));
    if (!operations) return std::nullopt;
    return Ceiling{
        device_.units * *operations * sm_mhz * mega,
        fmt::format("derived: {} SMs x {:.0f} operations per clock x {:.0f} MHz", device_.units, *operations, sm_mhz)};
  }

  [[nodiscard]] std::optional<Ceiling> memory() const {
    if (row_ != nullptr) {
      if (const auto figure = peak_bandwidth(*row_)) return published(*figure);
    }
    return max_memory_mhz_ ? memory_at(*max_memory_mhz_) : std::nullopt;
  }

  [[nodiscard]] std::optional<Ceiling> memory_at(double mhz) const {
    if (device_.kind != "cuda" || !bus_bits_) return std::nullopt;
    return Ceiling{bandwidth_at(mhz, *bus_bits_),
                   fmt::format("derived: {:.0f} MHz x {:.0f} bits x 2", mhz, *bus_bits_)};
  }

  [[nodiscard]] std::optional<Ceiling> link() const {
    if (row_ == nullptr) return std::nullopt;
    const std::optional<Figure> figure = peak_link(*row_);
    return figure ? std::optional(published(*figure)) : std::nullopt;
  }

  [[nodiscard]] double max_sm_mhz() const { return max_sm_mhz_.value_or(0.0); }
  [[nodiscard]] double max_memory_mhz() const { return max_memory_mhz_.value_or(0.0); }

 private:
  static int reported_capability(const DeviceInfo& device) {
    const double version = property_number(device, device_property::compute_capability).value_or(0.0);
    return version < 100.0 ? static_cast<int>(std::lround(10.0 * version)) : 0;
  }

  [[nodiscard]] Ceiling published(const Figure& figure) const {
    const Confidence confidence = figure.confidence.value_or(Confidence::datasheet);
    return {figure.high, fmt::format("{}, {}: {}", row_->name, name(confidence), figure.source)};
  }

  const DeviceInfo& device_;
  const DeviceRow* row_;
  int capability_;
  std::optional<double> max_sm_mhz_;
  std::optional<double> max_memory_mhz_;
  std::optional<double> bus_bits_;
};

// `alone`: each record's share without a comparison with other cases.
Bests bests_of(const DeviceInfo& device, std::span<const CaseRecord> records,
               std::span<const std::optional<PeakShare>> alone) {
  Bests bests;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const CaseRecord& record = records[i];
    if (!measured(record) || timing_unreliable(record.summary)) continue;
    if (alone[i] && !alone[i]->finding.empty()) continue;
    if (consists_of(record, {"gemm"}) && record.summary.median_ns >= shortest_peak_ns)
      bests.gemm[record.c.recipe].offer(record.derived.flop_per_s, record.id);
    if (is_stream(record) && from_memory(device, record)) bests.memory.offer(record.derived.bytes_per_s, record.id);
  }
  return bests;
}

class Comparison {
 public:
  Comparison(const DeviceInfo& device, const Limits& limits, const Bests& bests, const CaseRecord& record)
      : limits_(limits), record_(record), rate_(rate_of(record.c.recipe)) {
    if (rate_) arithmetic_ = limits.arithmetic(*rate_);
    if (from_memory(device, record)) memory_ = limits.memory();
    const auto gemm = bests.gemm.find(record.c.recipe);
    if (gemm != bests.gemm.end()) best_gemm_ = &gemm->second;
    if (from_memory(device, record) && bests.memory.rate > 0.0) best_memory_ = &bests.memory;
  }

  [[nodiscard]] std::optional<PeakShare> share() const {
    const bool by_memory = bound_by_memory();
    const std::optional<Ceiling>& ceiling = by_memory ? memory_ : arithmetic_;
    const Best* best = by_memory ? best_memory_ : best_gemm_;
    if (timing_unreliable(record_.summary)) best = nullptr;
    PeakShare share;
    share.limit = by_memory ? std::string(memory_limit) : rate_ ? std::string(name(*rate_)) : record_.c.recipe;
    share.rate = by_memory ? record_.derived.bytes_per_s : record_.derived.flop_per_s;
    if ((!ceiling && best == nullptr) || !(share.rate > 0.0)) return std::nullopt;
    if (ceiling) {
      share.peak = ceiling->value;
      share.peak_source = ceiling->source;
      share.of_peak = share.rate / ceiling->value;
    }
    if (const auto at_clock = ceiling_at(by_memory, false)) {
      share.peak_at_clock = at_clock->value;
      share.of_peak_at_clock = share.rate / at_clock->value;
    }
    if (best != nullptr) {
      share.of_best = share.rate / best->rate;
      share.best_case = best->id;
    }
    share.finding = finding(by_memory, share);
    return share;
  }

 private:
  // The limit that takes longer. If only one is known, the one of the case's headline.
  [[nodiscard]] bool bound_by_memory() const {
    const double arithmetic = arithmetic_ ? arithmetic_->value : best_gemm_ != nullptr ? best_gemm_->rate : 0.0;
    const double memory = memory_ ? memory_->value : best_memory_ != nullptr ? best_memory_->rate : 0.0;
    if (arithmetic > 0.0 && memory > 0.0) return record_.derived.bytes / memory > record_.derived.flop / arithmetic;
    return record_.derived.headline_unit == "B/s";
  }

  // At the median clock of the rounds, or at the highest clock of the device or of its readings.
  [[nodiscard]] std::optional<Ceiling> ceiling_at(bool by_memory, bool highest) const {
    const SpreadMember clock = by_memory ? &RoundTelemetry::memory_mhz : &RoundTelemetry::sm_mhz;
    std::optional<double> mhz = clock_of(record_, clock, highest);
    if (highest) mhz = std::max(mhz.value_or(0.0), by_memory ? limits_.max_memory_mhz() : limits_.max_sm_mhz());
    if (!mhz || !(*mhz > 0.0)) return std::nullopt;
    if (by_memory) return limits_.memory_at(*mhz);
    return rate_ ? limits_.arithmetic_at(*rate_, *mhz) : std::nullopt;
  }

  [[nodiscard]] std::string finding(bool by_memory, const PeakShare& share) const {
    const auto at_highest = ceiling_at(by_memory, true);
    if (!share.peak && !at_highest) return "";
    const bool clock_allows_more = at_highest && at_highest->value > share.peak.value_or(0.0);
    const double most = clock_allows_more ? at_highest->value : *share.peak;
    if (share.rate <= timers_differ * most) return "";
    return fmt::format("{:.4g} {} is above the device's limit of {:.4g} ({}): the time, the work or the peak is wrong",
                       share.rate, by_memory ? "B/s" : "FLOP/s", most,
                       clock_allows_more ? at_highest->source : share.peak_source);
  }

  const Limits& limits_;
  const CaseRecord& record_;
  std::optional<Rate> rate_;
  std::optional<Ceiling> arithmetic_;
  std::optional<Ceiling> memory_;
  const Best* best_gemm_ = nullptr;
  const Best* best_memory_ = nullptr;
};

// Bus bandwidth over one direction of the link. In-switch reduction may correctly exceed it.
std::optional<PeakShare> link_share(const Limits& limits, const CaseRecord& record) {
  const std::optional<Ceiling> link = limits.link();
  if (!link || !record.derived.collective || record.c.has_mode("virtual")) return std::nullopt;
  if (record.verdict != Verdict::pass || record.c.ranks == 1) return std::nullopt;
  PeakShare share;
  share.limit = "link";
  share.rate = record.derived.collective->bus_bytes_per_s;
  share.peak = link->value;
  share.peak_source = link->source + ", one direction";
  share.of_peak = share.rate / link->value;
  return share;
}

}  // namespace

std::vector<std::optional<PeakShare>> peak_shares(const DeviceInfo& device, std::span<const CaseRecord> records) {
  const Limits limits(device);
  const auto shares_with = [&](const Bests& bests) {
    std::vector<std::optional<PeakShare>> shares;
    for (const CaseRecord& record : records)
      shares.push_back(measured(record) ? Comparison(device, limits, bests, record).share()
                                        : link_share(limits, record));
    return shares;
  };
  std::vector<std::optional<PeakShare>> alone = shares_with({});
  std::vector<std::optional<PeakShare>> shares = shares_with(bests_of(device, records, alone));
  // Whether a rate is possible does not depend on other cases; impossible rates are compared with none.
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (alone[i] && !alone[i]->finding.empty())
      shares[i] = std::move(alone[i]);
    else if (shares[i])
      shares[i]->finding.clear();
  }
  return shares;
}

}  // namespace gpubench
