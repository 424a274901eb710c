// Colors and widths of streams, and the progress of a run.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/core/text/text_table.h"
#include "harness/report/console.h"
#include "harness/run/estimate.h"
#include "harness/run/run.h"

namespace gpubench {

/// --color wins; then NO_COLOR (non-empty: off), CLICOLOR_FORCE or FORCE_COLOR (non-empty and not "0": on), else color
/// on a terminal whose TERM is not "dumb".
[[nodiscard]] bool use_color(ColorMode mode, bool is_terminal, const Environment& environment);

/// From the first of LC_ALL, LC_CTYPE and LANG that is set.
[[nodiscard]] bool use_utf8(const Environment& environment);

enum class Stream { out, err };

/// COLUMNS if it is a whole number above 0, else the terminal's width; 100 without one.
[[nodiscard]] int columns_of(Stream stream, const Environment& environment);

/// For lists and tables: limits lines only on a terminal; elsewhere each entry keeps to one line.
[[nodiscard]] ConsoleStyle console_style(const Options& options, Stream stream, const Environment& environment);

/// For a run's rows and summary: columns_of() wide on a terminal and elsewhere.
[[nodiscard]] ConsoleStyle run_style(const Options& options, Stream stream, const Environment& environment);

// Progress on standard error: a bar below the rows on a terminal, occasional lines elsewhere.

enum class ProgressStyle { bar, lines, none };

struct ResultRows {
  std::ostream* out = nullptr;  ///< null: none
  ConsoleStyle style;
  RowLayout layout;
  bool shares_bar_terminal = false;  ///< on the bar's terminal; else the bar also shows the rows of failures
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::lines;
  ConsoleStyle console;
  int columns = 100;  ///< the bar stays within it
  int cases = 0;
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  Remaining remaining{};  ///< without an estimate the remaining time is not shown
  ResultRows rows{};
};

/// Prints rows as `rows` says and all else on `err`. Lines hold no carriage return; after 30 seconds without a finished
/// case they report progress. The destructor erases the bar.
[[nodiscard]] std::unique_ptr<RunObserver> make_progress(std::ostream& err, const ProgressOptions& options);

}  // namespace gpubench
