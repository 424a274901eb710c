// The self-test of the check, on this machine's libraries. Faults of the catalogue, injected into ops of real cases,
// must be rejected; faults of a device, injected by a wrapping backend, must fail their case; correct launches must
// raise no alarm.
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
  std::int64_t clean_launches = 10'000;  ///< judged launches without a fault
  double max_fault_flop = 5e5;           ///< fp64 operations to judge all of an op with injected faults
  double max_case_flop = 1e9;            ///< of a case
  std::int64_t max_repeated_bytes = std::int64_t{1} << 20U;  ///< memory of a case with repeated launches
  double clean_check_flop = 1e5;                             ///< fp64 operations to judge a case
  std::size_t kinds_per_error = 8;                           ///< kinds of ops per fault of a device
  std::size_t places_per_fault = 2;                          ///< of a step that ranks share
  bool needs_every_family = false;                           ///< fails if a family was never tried
};

struct FaultRow {
  std::string name, where;
  std::string rule;  ///< must reject them
  std::int64_t faults = 0;
  std::int64_t caught = 0;             ///< by that rule
  std::int64_t unseen = 0;             ///< within the bounds, like rounding
  double weakest = 0.0;                ///< the smallest caught, in units of the bound
  std::string weakest_name{};          ///< "k = 12 of 'c', gemm (bf16)"
  std::vector<std::string> escaped{};  ///< outside the bounds, or of a certain family, and not rejected by that rule
  std::vector<std::string> hidden{};   ///< names of the unseen
};

struct SelftestResult {
  std::vector<FaultRow> rows;
  std::int64_t ops = 0;             ///< calls with injected faults, each with other attributes or types
  std::int64_t kinds = 0;           ///< of ops
  std::int64_t clean_launches = 0;  ///< judged launches without a fault
  std::int64_t clean_elements = 0;  ///< judged elements of these
  std::int64_t clean_cases = 0;
  std::vector<std::string> alarms;      ///< clean launches that did not pass: false alarms, or wrong results
  std::vector<std::string> left_out;    ///< cases that did not run, with reasons
  std::vector<std::string> unmeasured;  ///< faults of devices whose case ended in an error
  std::int64_t steps = 0;               ///< cases, plus one for faulty devices, plus one for steps that ranks share
  std::int64_t steps_done = 0;          ///< fewer if `stop` was raised
  /// A fault escaped, or a clean launch raised an alarm.
  [[nodiscard]] bool has_failed() const;
  /// Not failed, nothing unmeasured, at least one fault caught and one clean launch run.
  [[nodiscard]] bool passed() const;
};

using SelftestProgress = std::function<void(const std::string& now, const SelftestResult& so_far)>;

/// Injects the faults of parallel_faults.h into the steps of `cases` whose ranks can share their tensors, made small
/// enough for the textbook and shared in several ways; one row per class. A correct step that differs from one rank's
/// adds to `alarms`. Ends early when `stop` is raised.
[[nodiscard]] std::vector<FaultRow> parallel_selftest(std::span<const PlannedCase> cases, const SelftestEffort& effort,
                                                      std::uint64_t seed, std::vector<std::string>& alarms,
                                                      const std::function<void(const std::string& now)>& progress,
                                                      const StopFlag& stop);

/// Runs on `cases`; cases of several ranks need RunOptions::open_ranks. Unsupported cases are left out. Ends early when
/// `stop` is raised.
[[nodiscard]] SelftestResult selftest(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                                      const SelftestEffort& effort, const SelftestProgress& progress,
                                      const StopFlag& stop);

}  // namespace gpubench
