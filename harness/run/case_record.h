// A case's record and its verdict, the worst of its findings. Only this file sets verdicts.
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

/// The def_hash: 16 hexadecimal digits, from definition_digest() and the values of fill() for each kind of fill and
/// type. Cases whose hashes differ measured different work, or other data.
[[nodiscard]] std::string definition_hash(const PlannedCase& planned);

/// With the case and its def_hash.
[[nodiscard]] CaseRecord record_of(const PlannedCase& planned);

/// record_of() with seed, rerun line and the initial verdict `pass`.
[[nodiscard]] CaseRecord open_record(const PlannedCase& planned, const RunOptions& options);

/// Sets verdict and reason if the verdict is worse than the record's.
void blame(CaseRecord& record, Verdict verdict, std::string reason);

/// Adds peak_shares(). A rate above the device's peak makes the case an error, since it must not be ranked; a
/// convolution is only flagged, because Winograd and FFT need fewer operations than are counted.
void add_peak_shares(const DeviceInfo& device, std::span<CaseRecord> records);
void add_peak_share(CaseRecord& record, std::optional<PeakShare> share);

/// Verdict `skipped` if a signal interrupted the run, else `error`. `left`: the case's rounds so far, or null.
[[nodiscard]] CaseRecord unfinished_record(const PlannedCase& planned, int signal, const CaseRecord* left);

/// Adds the result of one op; a reason begins "op 'mlp.up' (gemm) failed in recheck: ...".
void add_op(CaseRecord& record, OpParity parity);

/// Adds the results of the whole program, by tensor; `fail` if one is outside its bound.
void add_end_to_end(CaseRecord& record, std::span<const EndToEndResult> results);

/// Sets the largest error, its op and the coverage. `pauses`: of the recheck's replay; `rounds`:
/// RoundCheck::coverage(). A `pass` without judged elements becomes `not_proven`, or `unverified` with the check off.
void close_parity(CaseRecord& record, CheckMode check, int pauses, const std::string& rounds);

/// "gpubench run --filter '^gemm/a\.b/x1$' --tier quick --seed 42"
[[nodiscard]] std::string rerun_line(const RunOptions& options, const Case& c);

}  // namespace gpubench
