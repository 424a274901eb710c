// A wrong result on purpose (--inject-error): so that anyone can see what a failure looks like, in words and on a page,
// and that the check finds it.
//
// A backend around the real one. What the chosen ops have written is really corrupted in the device's memory before
// anybody reads it, wherever they run: alone, in the timed launch, in the recheck. The harness knows nothing of it.
// Reports say so in `injected` and in the flags of the cases, and are no baselines.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/backend.h"

namespace gpubench {

/// What happens to the first output of the op.
enum class ErrorKind {
  bit,    ///< the second-highest bit flips in every 64th element: a memory cell that is stuck, a transfer gone wrong
  nan,    ///< one element in the middle becomes NaN
  zero,   ///< all of it is 0
  sign,   ///< every element changes its sign
  scale,  ///< every element is doubled: a factor forgotten
  drop    ///< the op does not run at all
};
[[nodiscard]] std::string_view name(ErrorKind kind);
[[nodiscard]] std::span<const ErrorKind> error_kinds();

struct InjectedError {
  std::string op;  ///< kind or label
  ErrorKind kind = ErrorKind::bit;
};

/// The flag of cases in which something was corrupted.
inline constexpr std::string_view wrong_flag = "wrong on purpose";

/// `inner`, but with wrong results of every timed op of that kind or label; `owner` keeps it alive where nobody else
/// does.
[[nodiscard]] std::unique_ptr<Backend> with_error(Backend& inner, const InjectedError& error,
                                                  std::unique_ptr<Backend> owner = nullptr);

}  // namespace gpubench
