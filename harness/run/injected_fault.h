// Injected faults, to test gates and failures: longer times (--inject-slowdown) and wrong results (--inject-error).
// Reports name them in `injected` and in the flags of the cases, and can't be baselines.
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
[[nodiscard]] bool runs_timed(const Program& program, std::string_view op);

/// Lengthens the recorded times of every case that runs the op, not the work itself.
struct Slowdown {
  std::string op;      ///< kind or label
  double share = 0.0;  ///< 0.25: a quarter longer
};
inline constexpr std::string_view slowed_flag = "injected slowdown";

void slow_down(const Slowdown& slowdown, RoundRecord& round);

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
  late,     ///< every element is doubled, only after every fourth round
  rare      ///< one bit of one element flips, in one launch of a hundred
};
template <>
inline constexpr auto enum_names<ErrorKind> = std::to_array<std::string_view>({"bit", "nan", "zero", "sign", "scale",
                                                                               "drop", "lanes", "input", "overrun",
                                                                               "late", "rare"});

/// "one element is NaN"
[[nodiscard]] std::string_view describe(ErrorKind kind);

struct InjectedError {
  std::string op;  ///< kind or label
  ErrorKind kind = ErrorKind::bit;
  /// Counts the launches that it changed (a doubled zero changes nothing). May be null.
  std::shared_ptr<std::atomic<std::int64_t>> effects{};
};
inline constexpr std::string_view wrong_flag = "injected error";

/// Forwards to `inner` and corrupts, in the device's memory, the results of every timed op of that kind or label:
/// alone, in the timed launch and in the recheck. `owner` keeps `inner` alive if nothing else does.
[[nodiscard]] std::unique_ptr<Backend> with_error(Backend& inner, const InjectedError& error,
                                                  std::unique_ptr<Backend> owner = nullptr);

}  // namespace gpubench
