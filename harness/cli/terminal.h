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

enum class Stream { out, err };

/// Columns that a stream's lines may have: COLUMNS where it is a whole number above 0, else those of the terminal; 100
/// where there is none.
[[nodiscard]] int columns_of(Stream stream, const Environment& environment);

/// Lines have a width only on a terminal: elsewhere each case keeps to one line.
[[nodiscard]] ConsoleStyle console_style(const Options& options, Stream stream, const Environment& environment);

}  // namespace gpubench
