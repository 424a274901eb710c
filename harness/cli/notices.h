// What a run says before it starts: that faults are injected on purpose, and that other work has the processors.
#pragma once

#include <span>
#include <string>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/hardware/host.h"
#include "harness/plan/plan.h"

namespace gpubench {

/// Tells on standard error how many cases are slowed, or made wrong, on purpose: nobody may take such a run for an
/// honest one. Throws UsageError, with the nearest kind of op, where no planned case runs the op.
void announce_injections(const Options& options, std::span<const PlannedCase> plan, const Environment& environment);

/// After the run: a note where an error was asked for and no case had it, since the op was fused into another.
void tell_error_without_effect(const Options& options, std::span<const CaseRecord> records,
                               const Environment& environment);

/// "gemm=25%", "gemm=bit", or both with a comma; "" for an honest run.
[[nodiscard]] std::string injected_text(const Options& options);

/// For the start of a run: after it, nobody can tell what was lost.
/// "warning: tasks waited for a processor during 82% of the last 10 s: ..."; empty on a quiet machine. By the kernel's
/// pressure, and where it tells none by the load average, as doctor's D205 and D206 do.
[[nodiscard]] std::string busy_warning(const HostInfo& host);

}  // namespace gpubench
