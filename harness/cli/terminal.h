// How to print on a given stream: colour and characters, from flags and the variables that everybody agrees on.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// --color wins; then NO_COLOR (non-empty: off), CLICOLOR_FORCE or FORCE_COLOR (non-empty and not "0": on), else colour
/// on a terminal whose TERM is not "dumb".
[[nodiscard]] bool use_color(ColorMode mode, bool is_terminal, const Environment& environment);

/// LC_ALL, LC_CTYPE, LANG: the first that is set says whether the terminal takes UTF-8.
[[nodiscard]] bool use_utf8(const Environment& environment);

[[nodiscard]] ConsoleStyle console_style(const Options& options, bool is_terminal, const Environment& environment);

}  // namespace gpubench
