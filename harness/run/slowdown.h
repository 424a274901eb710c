// A slowdown on purpose (--inject-slowdown): what a gate must find, for trying gates and nothing else.
//
// The recorded times of every case that runs the op are made longer by the share asked for; the work itself is what it
// was, and so is its check. Reports say so in `injected` and in the flags of the cases, and are no baselines.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/program.h"
#include "harness/core/record.h"

namespace gpubench {

struct Slowdown {
  std::string op;      ///< kind or label
  double share = 0.0;  ///< 0.25: a quarter longer
};

/// The flag of cases that were slowed.
inline constexpr std::string_view slowed_flag = "slowed on purpose";

/// Whether the op is timed, and of this kind or label.
[[nodiscard]] bool is_timed(const OpCall& call, std::string_view op);
/// Whether the program runs such an op.
[[nodiscard]] bool runs_timed(const Program& program, std::string_view op);

/// Whether the program runs the op in its timed phase.
[[nodiscard]] bool concerns(const Slowdown& slowdown, const Program& program);

/// Makes every interval of the round longer.
void slow_down(const Slowdown& slowdown, RoundRecord& round);

}  // namespace gpubench
