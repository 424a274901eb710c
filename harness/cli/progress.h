// What standard error shows while cases run: a bar that redraws on a terminal, one line per finished case elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>

#include "harness/cli/remaining.h"
#include "harness/report/console.h"
#include "harness/run/run.h"

namespace gpubench {

enum class ProgressStyle { bar, lines, none };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::lines;
  ConsoleStyle console;
  int columns = 100;  ///< of the terminal; the bar stays within it
  int cases = 0;      ///< planned
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  Remaining remaining{};  ///< of the run; without an estimate nothing is said of what is left
};

/// Shows each call on `err`. Lines without a terminal never hold a carriage return; they say that the run is alive
/// every 30 seconds. The bar is erased when the object goes.
[[nodiscard]] std::unique_ptr<RunObserver> make_progress(std::ostream& err, const ProgressOptions& options);

}  // namespace gpubench
