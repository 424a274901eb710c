// Soaking a device: the same launches over and over, each held against bits that were judged, to find results that are
// wrong now and then, when the device is hot, or in one of its units.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// The work of some time. Launches are of whole programs.
struct SoakInterval {
  double at_s = 0.0;      ///< its end, since the soak began
  double seconds = 0.0;   ///< how long it was, without what the textbook took
  double device_s = 0.0;  ///< of these, in launches
  std::int64_t launches = 0;
  std::int64_t ops = 0;  ///< in these launches
  double flop = 0.0;
  std::optional<RoundTelemetry> telemetry{};
};

/// A launch that left other bits than the textbook has judged.
struct Divergence {
  double at_s = 0.0;
  std::string case_id;
  std::string text;  ///< the op, the first element that differs, how many do, and what the next launch left
  std::optional<RoundTelemetry> telemetry{};  ///< since the last interval
};

struct SoakEffort {
  double seconds = 300.0;
  double interval_s = 10.0;
  double recheck_s = 60.0;  ///< how often the textbook judges everything anew, on other data
};

struct SoakResult {
  double seconds = 0.0;  ///< of the intervals
  double device_s = 0.0;
  std::int64_t launches = 0;
  std::int64_t ops = 0;
  double flop = 0.0;
  std::int64_t rechecks = 0;            ///< how often the textbook has judged all cases
  double burst_rate = 0.0;              ///< launches per second that the device ran, in the first interval
  double sustained_rate = 0.0;          ///< the same in the second half of the intervals
  std::vector<std::string> cases;       ///< that took part
  std::vector<std::string> left_out;    ///< and why the others did not
  std::int64_t diverged = 0;            ///< launches
  std::vector<Divergence> divergences;  ///< the first hundred of them
  std::vector<std::string> wrong;       ///< what the textbook has rejected

  [[nodiscard]] bool passed() const { return launches > 0 && diverged == 0 && wrong.empty(); }
};

/// The smallest rate of faults, each on its own, of which `trials` without one leave a chance of 5% at most.
[[nodiscard]] double excluded_rate(std::int64_t trials);

/// Told of as they happen, so that they are kept whatever comes.
struct SoakObserver {
  std::function<void(const SoakInterval&)> interval;
  std::function<void(const Divergence&)> divergence;
  std::function<void(const std::string&)> wrong;
};

/// Runs the timed programs of `cases` in turn, by implementations that give the same bits each time, until the time is
/// up or `stop` is raised. Each launch begins from the same state; what it leaves must have the fingerprints of what
/// the textbook has judged. A case that the textbook has rejected waits for its next recheck. Cases that do not fit
/// into half of the memory together are left out, as are those of several ranks.
[[nodiscard]] SoakResult soak(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                              const SoakEffort& effort, const SoakObserver& observer, const StopFlag& stop);

}  // namespace gpubench
