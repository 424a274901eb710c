// Command lines to copy: for help and the manual page. A test parses every one of them.
#pragma once

#include <string_view>

#include "harness/cli/options.h"

namespace gpubench {

/// Lines "  gpubench ...", each with what it does behind two blanks or more where that needs saying; ends with a
/// newline. Empty for hidden verbs.
[[nodiscard]] std::string_view examples_of(Verb verb);

/// The three that a program called without any word shows.
[[nodiscard]] std::string_view first_examples();

}  // namespace gpubench
