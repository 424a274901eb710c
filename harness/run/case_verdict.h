// How a case's record comes to its verdict: the worst of what was found, told in one sentence.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/core/record.h"
#include "harness/parity/end_to_end.h"
#include "harness/run/run.h"

namespace gpubench {

/// A record that knows which case it is and what that stands for; nothing of a run yet.
[[nodiscard]] CaseRecord record_of(const PlannedCase& planned);

/// The same that also knows how to run the case again; `pass` until something worse is found.
[[nodiscard]] CaseRecord open_record(const PlannedCase& planned, const RunOptions& options);

/// Takes the verdict and the reason, if it is worse than what was found before.
void blame(CaseRecord& record, Verdict verdict, std::string reason);

/// Adds what was found about one op: "op 'mlp.up' (gemm) failed in recheck: ...".
void add_op(CaseRecord& record, OpParity parity);

/// Adds what the whole program left, tensor by tensor; a failure where one is further from fp64 than it may be.
void add_end_to_end(CaseRecord& record, std::span<const EndToEndResult> results);

/// Fills in what follows from all ops: the largest error, its op, the coverage. `pauses`: segments of the recheck;
/// `rounds`: what the rounds were compared with. A record that would pass with nothing judged becomes `not_proven`, or
/// `unverified` with the check off.
void close_parity(CaseRecord& record, CheckMode check, int pauses, const std::string& rounds);

/// "gpubench run --filter '^gemm/a\.b/x1$' --tier quick --seed 42"
[[nodiscard]] std::string rerun_line(const RunOptions& options, const Case& c);

}  // namespace gpubench
