// The self-test: the check itself under test, on this machine's libraries. Faults of the catalogue, put into the ops of
// real cases, must be rejected; faults of a device, injected by a backend around the real one, must fail their case;
// and launches that are right must raise no alarm.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/parity/fault_catalogue.h"
#include "harness/run/run.h"

namespace gpubench {

struct SelftestEffort {
  std::int64_t clean_launches = 10'000;  ///< judged ones that nothing was done to
  double max_fault_flop = 5e5;           ///< fp64 work of judging all of an op into which faults are put
  double max_case_flop = 1e9;            ///< work of a case that takes part at all
  std::int64_t max_repeated_bytes = std::int64_t{1} << 20U;   ///< memory of a case of which launches are repeated
  double clean_check_flop = 1e5;                              ///< fp64 work of judging a case
  std::size_t kinds_per_error = 8;                            ///< kinds of ops into which a faulty device is put
  std::size_t places_per_fault = 2;                           ///< of a step that ranks share
  bool needs_every_family = false;                            ///< one that was never tried fails
};

/// A row of the table: one family of faults in all ops.
struct FaultRow {
  std::string name, where;
  std::string rule;  ///< that must reject them
  std::int64_t faults = 0;
  std::int64_t caught = 0;             ///< by that rule
  std::int64_t unseen = 0;             ///< within the bounds: not to be told from rounding
  double weakest = 0.0;                ///< the smallest caught, in units of the bound
  std::string weakest_name{};          ///< "k = 12 of 'c', gemm (bf16)"
  std::vector<std::string> escaped{};  ///< outside the bounds, or of a certain family, and not rejected by that rule
  std::vector<std::string> hidden{};   ///< the names of those unseen
};

struct SelftestResult {
  std::vector<FaultRow> rows;
  std::int64_t ops = 0;             ///< calls into which faults were put, each with other attributes or types
  std::int64_t kinds = 0;           ///< of ops
  std::int64_t clean_launches = 0;  ///< judged launches of which all are right
  std::int64_t clean_elements = 0;  ///< that were judged in these
  std::int64_t clean_cases = 0;
  std::vector<std::string> alarms;      ///< clean launches that did not pass: a false alarm, or a wrong result
  std::vector<std::string> left_out;    ///< cases that did not run, and why
  std::vector<std::string> unmeasured;  ///< faulty devices whose case ended in an error: neither caught nor escaped
  std::int64_t steps = 0;               ///< cases, one for faulty devices, and one for steps that ranks share
  std::int64_t steps_done = 0;          ///< fewer where `stop` was raised
  /// Something escaped, or something clean raised an alarm.
  [[nodiscard]] bool has_failed() const;
  /// Nothing has, nothing is unmeasured, something was caught, and something clean ran.
  [[nodiscard]] bool passed() const;
};

/// What is done now, and what has been found so far.
using SelftestProgress = std::function<void(const std::string& now, const SelftestResult& so_far)>;

/// Puts the faults of parallel_faults.h into the steps among `cases` whose ranks can share their tensors, made small
/// enough for the textbook and shared in several ways; a row for each class. A step without a fault that is not found
/// to be one rank's adds to `alarms`. Ends early when `stop` is raised.
[[nodiscard]] std::vector<FaultRow> parallel_selftest(std::span<const PlannedCase> cases, const SelftestEffort& effort,
                                                      std::uint64_t seed, std::vector<std::string>& alarms,
                                                      const std::function<void(const std::string& now)>& progress,
                                                      const StopFlag& stop);

/// Runs on `cases`; those of several ranks where RunOptions::open_ranks is set. A case that the backend does not
/// support is left out. Ends early when `stop` is raised.
[[nodiscard]] SelftestResult selftest(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                                      const SelftestEffort& effort, const SelftestProgress& progress,
                                      const StopFlag& stop);

}  // namespace gpubench
