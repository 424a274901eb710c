// What is told while cases run: each case's row as it finishes, once, and on standard error that the run is alive: a
// bar below the rows on a terminal, a line now and then elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>

#include "harness/cli/estimate.h"
#include "harness/report/console.h"
#include "harness/run/run.h"

namespace gpubench {

enum class ProgressStyle { bar, lines, none };

/// Where rows go, and how they look.
struct ResultRows {
  std::ostream* out = nullptr;  ///< null: nowhere
  ConsoleStyle style;
  RowLayout layout;
  bool beside_bar = false;  ///< both are seen on one terminal; else the bar's has rows of what went wrong as well
};

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::lines;
  ConsoleStyle console;  ///< of `err`
  int columns = 100;     ///< of the terminal; the bar stays within it
  int cases = 0;         ///< planned
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  Remaining remaining{};  ///< of the run; without an estimate nothing is said of what is left
  ResultRows rows{};
};

/// Shows rows where `rows` says, whatever the style, and what else there is on `err`. Lines without a terminal never
/// hold a carriage return; where nothing has finished for 30 seconds they say that the run is alive. The bar is erased
/// when the object goes.
[[nodiscard]] std::unique_ptr<RunObserver> make_progress(std::ostream& err, const ProgressOptions& options);

}  // namespace gpubench
