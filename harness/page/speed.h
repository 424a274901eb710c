// The first thing a page tells: how fast, in which precision, how sure.
#pragma once

#include <span>

#include "harness/page/html.h"
#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// A row per suite and precision, whole training steps first: the geometric mean of the rates with an interval that
/// would hold if all of its cases erred together (the mean of their half-widths on the log scale, an upper bound), the
/// best, its share of a ceiling, and what is left out and why. Rates of items (tokens) are of one workload each: a
/// token of a block is not one of a model. A precision in which nothing could run has no row.
[[nodiscard]] DataTable speed_table(std::span<const Side> sides);

/// The table with its heading and what it leaves out, told once; nothing where no case has a rate.
void add_speed(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
