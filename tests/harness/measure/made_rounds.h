#pragma once

#include <utility>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

inline RoundRecord round_of(std::vector<double> intervals) {
  RoundRecord record;
  record.times.wall_ns = intervals;
  record.times.device_ns = std::move(intervals);
  return record;
}

inline RoundRecord spoiled(RoundRecord record) {
  record.valid = false;
  record.note = "clock throttled";
  return record;
}

inline std::vector<RoundRecord> rounds_of(const std::vector<double>& medians) {
  std::vector<RoundRecord> rounds;
  for (const double median : medians) rounds.push_back(round_of({median, median, median}));
  return rounds;
}

}  // namespace gpubench
