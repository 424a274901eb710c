// What is printed where: the colour and width of a stream, by flags and the usual variables; and the progress of a run.
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

/// --color wins; then NO_COLOR (non-empty: off), CLICOLOR_FORCE or FORCE_COLOR (non-empty and not "0": on), else colour
/// on a terminal whose TERM is not "dumb".
[[nodiscard]] bool use_color(ColorMode mode, bool is_terminal, const Environment& environment);

/// LC_ALL, LC_CTYPE, LANG: the first that is set says whether the terminal takes UTF-8.
[[nodiscard]] bool use_utf8(const Environment& environment);

enum class Stream { out, err };

/// How wide a stream's lines may be: COLUMNS where it is a whole number above 0, else as the terminal; 100 without one.
[[nodiscard]] int columns_of(Stream stream, const Environment& environment);

/// The style of lists and tables: their lines have a width only on a terminal; elsewhere each entry keeps to one line.
[[nodiscard]] ConsoleStyle console_style(const Options& options, Stream stream, const Environment& environment);

/// The style of a run's rows and summary: columns_of() is their width on a terminal and elsewhere.
[[nodiscard]] ConsoleStyle run_style(const Options& options, Stream stream, const Environment& environment);

// While cases run each case's row is printed as it finishes, and standard error shows that the run is alive: a bar
// below the rows on a terminal, a line now and then elsewhere.

enum class ProgressStyle { bar, lines, none };

/// Where rows go, and how they look.
struct ResultRows {
  std::ostream* out = nullptr;  ///< null: nowhere
  ConsoleStyle style;
  RowLayout layout;
  bool beside_bar = false;  ///< on the bar's terminal; otherwise that shows the rows of what went wrong as well
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::lines;
  ConsoleStyle console;  ///< of `err`
  int columns = 100;     ///< of the terminal; the bar stays within it
  int cases = 0;         ///< planned
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  Remaining remaining{};  ///< of the run; without an estimate the time left is not shown
  ResultRows rows{};
};

/// Prints rows where `rows` says, whatever the style, and all else on `err`. Lines never hold a carriage return; where
/// nothing has finished for 30 seconds they say that the run is alive. The destructor erases the bar.
[[nodiscard]] std::unique_ptr<RunObserver> make_progress(std::ostream& err, const ProgressOptions& options);

}  // namespace gpubench
