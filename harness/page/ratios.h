// The first thing a page of several reports tells: how much faster or slower the others are than the first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/compare/comparison.h"
#include "harness/page/html.h"
#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// One side against the first.
struct SideComparison {
  const Side* a = nullptr;
  const Side* b = nullptr;
  Comparison comparison;
};

/// All sides against the first one, or why that cannot be done.
struct Comparisons {
  std::vector<SideComparison> pairs;
  std::string refusal;
};

/// Of fewer than two sides: nothing. The sides must outlive it.
[[nodiscard]] Comparisons comparisons_of(std::span<const Side> sides);

/// A row per suite: the geometric mean of B's speed as a multiple of A's, its interval, how many cases gained, lost,
/// stayed or tell nothing, and which have no ratio and why.
[[nodiscard]] DataTable ratio_table(const SideComparison& pair);

/// The largest gains and losses that are sure, gains first; at most `most` of each.
[[nodiscard]] DataTable changes_table(const SideComparison& pair, std::size_t most = 5);

/// Both tables of each pair; nothing where there is no comparison.
void add_ratios(Html& html, const Comparisons& comparisons);

}  // namespace gpubench::page
