// A case's record: how it is opened, and how it comes to its verdict, the worst of what was found. Only this file sets
// a record's verdict.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/record.h"
#include "harness/parity/end_to_end.h"
#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace gpubench {

/// The def_hash: 16 hexadecimal digits of definition_digest() and of what fill() writes for each kind of fill and type.
/// Two reports in which a case's hashes differ measured different work, or the same work on other data.
[[nodiscard]] std::string definition_hash(const PlannedCase& planned);

/// A record with the case and its def_hash.
[[nodiscard]] CaseRecord record_of(const PlannedCase& planned);

/// The same with seed and rerun line; its verdict is `pass` until something worse is found.
[[nodiscard]] CaseRecord open_record(const PlannedCase& planned, const RunOptions& options);

/// Sets the verdict and the reason if they are worse than what was found before.
void blame(CaseRecord& record, Verdict verdict, std::string reason);

/// Adds how near the device's limits each record comes (peak_shares()). A rate above what the device can do makes the
/// case an error, since the number must not be ranked; a convolution is only flagged, because Winograd and FFT need
/// fewer operations than are counted.
void add_peak_shares(const DeviceInfo& device, std::span<CaseRecord> records);
void add_peak_share(CaseRecord& record, std::optional<PeakShare> share);

/// The record of a case without one: skipped where a signal interrupted the run, else an error. `left`: the rounds that
/// it had by then, or null.
[[nodiscard]] CaseRecord unfinished_record(const PlannedCase& planned, int signal, const CaseRecord* left);

/// Adds what was found about one op: "op 'mlp.up' (gemm) failed in recheck: ...".
void add_op(CaseRecord& record, OpParity parity);

/// Adds the results of the whole program, tensor by tensor; fails if one is further from fp64 than allowed.
void add_end_to_end(CaseRecord& record, std::span<const EndToEndResult> results);

/// Fills in what follows from all ops: the largest error, its op, the coverage. `pauses`: of the recheck's replay;
/// `rounds`: RoundCheck::coverage(). A record that would pass with nothing judged becomes `not_proven`, or `unverified`
/// with the check off.
void close_parity(CaseRecord& record, CheckMode check, int pauses, const std::string& rounds);

/// "gpubench run --filter '^gemm/a\.b/x1$' --tier quick --seed 42"
[[nodiscard]] std::string rerun_line(const RunOptions& options, const Case& c);

}  // namespace gpubench
