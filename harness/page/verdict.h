// The top of the page: what came out, what went wrong and how to see it again, and every case.
#pragma once

#include <span>

#include "harness/page/html.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Per report: the verdict in a word with the counts behind it, how many timings to trust, and what makes them no
/// results.
void add_verdict(Html& html, std::span<const Side> sides);

/// Per report: how much was judged, and what the run cost.
void add_facts(Html& html, std::span<const Side> sides);

/// Every case that went wrong with what is known of it and the line that reruns it; nothing where none did. Of very
/// many the first ones are told whole.
void add_failures(Html& html, std::span<const Side> sides);
[[nodiscard]] bool any_went_wrong(std::span<const Side> sides);

/// What the words mean, why the cases that did not run did not (folded), and every case in the order of the plan.
void add_all_cases(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
