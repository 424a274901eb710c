// Faults on purpose, for trying out gates and seeing what a failure looks like: longer times (--inject-slowdown) and
// wrong results (--inject-error). Reports name them in `injected` and in the flags of the cases, and are no baselines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "harness/core/backend.h"
#include "harness/core/enum_names.h"
#include "harness/core/program.h"
#include "harness/core/record.h"

namespace gpubench {

/// Whether the op is timed, and of this kind or label.
[[nodiscard]] bool is_timed(const OpCall& call, std::string_view op);
/// Whether the program runs such an op.
[[nodiscard]] bool runs_timed(const Program& program, std::string_view op);

/// Lengthens the recorded times of every case that runs the op; the work itself and its check stay as they are.
struct Slowdown {
  std::string op;      ///< kind or label
  double share = 0.0;  ///< 0.25: a quarter longer
};
/// The flag of cases that were slowed.
inline constexpr std::string_view slowed_flag = "injected slowdown";

/// Lengthens every interval of the round.
void slow_down(const Slowdown& slowdown, RoundRecord& round);

/// What happens to the first output of the op.
enum class ErrorKind {
  bit,      ///< the second-highest bit flips in every 64th element: a stuck memory cell, a corrupted transfer
  nan,      ///< one element in the middle becomes NaN
  zero,     ///< all of it is 0
  sign,     ///< every element changes its sign
  scale,    ///< every element is doubled: a forgotten factor
  drop,     ///< the op does not run at all
  lanes,    ///< three bits flip in every 32nd element of one stretch of 1,024: a faulty lane of a processor
  input,    ///< the first element of an input changes instead
  overrun,  ///< the 16 bytes behind the output change
  late,     ///< every element is doubled, but only after every fourth round
  rare      ///< one bit of one element flips, in one launch of a hundred
};
template <>
inline constexpr auto enum_names<ErrorKind> = std::to_array<std::string_view>({"bit", "nan", "zero", "sign", "scale",
                                                                               "drop", "lanes", "input", "overrun",
                                                                               "late", "rare"});

/// What it does, in a few words: "one element is NaN".
[[nodiscard]] std::string_view describe(ErrorKind kind);

struct InjectedError {
  std::string op;  ///< kind or label
  ErrorKind kind = ErrorKind::bit;
  /// Counts the times that it changed something: a zero that is doubled stays what it is. May be null.
  std::shared_ptr<std::atomic<std::int64_t>> effects{};
};
/// The flag of cases in which something was corrupted.
inline constexpr std::string_view wrong_flag = "injected error";

/// `inner`, but with wrong results from every timed op of that kind or label: the device's memory really is corrupted
/// before anybody reads it, wherever the op runs (alone, in the timed launch, in the recheck), and the rest of the
/// harness does not know. `owner` keeps `inner` alive if nothing else does.
[[nodiscard]] std::unique_ptr<Backend> with_error(Backend& inner, const InjectedError& error,
                                                  std::unique_ptr<Backend> owner = nullptr);

}  // namespace gpubench
