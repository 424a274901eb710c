// Data tables as HTML.
#pragma once

#include "harness/page/html.h"
#include "harness/page/section.h"

namespace gpubench::page {

/// The table, in a box of its own that scrolls sideways where the screen is narrow and can be reached by keyboard.
/// `label` names the box for who cannot see it; untrusted, as the cells are.
void add_table(Html& html, const DataTable& table, std::string_view label);

/// The same folded away: a line that says how much there is, and opens it.
void add_folded_table(Html& html, const DataTable& table, std::string_view label);

}  // namespace gpubench::page
