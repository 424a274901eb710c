// What the words in the table of all cases mean, told where they stand.
#pragma once

#include <span>

#include "harness/page/html.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// The parts of an id, then the verdicts other than pass and the flags that occur in these reports, a sentence each.
void add_words(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
