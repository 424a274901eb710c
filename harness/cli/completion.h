// Scripts that complete gpubench's command line in a shell, from the table of flags.
#pragma once

#include <span>
#include <string>

#include "harness/cli/options.h"

namespace gpubench {

/// The whole script. Verbs, flags, the words of choice flags (those of lists one by one), and files where a file is
/// meant.
[[nodiscard]] std::string completion_text(Shell shell, std::span<const std::string> suites);

}  // namespace gpubench
