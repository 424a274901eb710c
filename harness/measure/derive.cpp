#include "harness/measure/derive.h"

namespace gpubench {
namespace {

void set_headline(Derived& derived, const WorkloadInfo& info) {
  switch (info.headline) {
    case PrimaryMetric::flop_per_s:
      derived.headline = derived.flop_per_s;
      derived.headline_unit = "FLOP/s";
      break;
    case PrimaryMetric::bytes_per_s:
      derived.headline = derived.bytes_per_s;
      derived.headline_unit = "B/s";
      break;
    case PrimaryMetric::items_per_s:
      derived.headline = derived.items_per_s;
      derived.headline_unit = info.item + "/s";
      break;
  }
}

}  // namespace

Derived derive(const WorkloadInfo& info, double items, const Cost& cost, const Summary& summary,
               std::span<const OpShare> breakdown) {
  Derived derived;
  derived.flop = cost.flop;
  derived.bytes = cost.bytes;
  derived.item = info.item;
  derived.breakdown.assign(breakdown.begin(), breakdown.end());
  if (summary.median_ns > 0.0) {
    const double seconds = summary.median_ns * 1e-9;
    derived.flop_per_s = cost.flop / seconds;
    derived.bytes_per_s = cost.bytes / seconds;
    derived.items_per_s = items / seconds;
    if (cost.message_bytes > 0.0 && breakdown.empty()) {
      derived.collective = CollectiveRates{cost.message_bytes, cost.message_bytes / seconds, derived.bytes_per_s};
    }
    double alone_ns = 0.0;
    for (OpShare& op : derived.breakdown) {
      op.share = op.median_ns / summary.median_ns;
      alone_ns += op.median_ns;
    }
    if (!breakdown.empty()) derived.remainder = (summary.median_ns - alone_ns) / summary.median_ns;
  }
  set_headline(derived, info);
  return derived;
}

void add_energy(Derived& derived, std::optional<double> joules, const Summary& summary) {
  derived.energy_j = joules;
  const double work = derived.headline * summary.median_ns * 1e-9;  // of one run
  if (joules && work > 0.0) derived.energy_per_work_j = *joules / work;
}

}  // namespace gpubench
