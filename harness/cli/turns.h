// Rounds on demand (--turns): for a race, in which another program has the device in between.
#pragma once

#include <chrono>
#include <cstddef>
#include <istream>
#include <ostream>

#include "harness/core/record.h"

namespace gpubench {

/// RunOptions::another_round. A turn is a line of `in`, its length in seconds: rounds are run until they have taken so
/// long, one at least. Each is answered by a line of `out`, {"turn": 1, "copies": 3, "rounds": 12, "median_ns":
/// 1234.5}: cold copies, and the median time of one run of the program over the turn's samples, null where no round was
/// valid. At the end of `in` the rounds end. Throws UsageError for another line.
class Turns {
 public:
  Turns(std::istream& in, std::ostream& out) : in_(&in), out_(&out) {}
  bool operator()(const CaseRecord& record);

 private:
  using Clock = std::chrono::steady_clock;

  void answer(const CaseRecord& record) const;

  std::istream* in_;
  std::ostream* out_;
  int turn_ = 0;             ///< from 1
  std::size_t first_ = 0;    ///< round of the turn
  Clock::time_point begun_;  ///< the turn
  std::chrono::duration<double> length_{0.0};
};

}  // namespace gpubench
