// On what, with what and how a report was measured.
#pragma once

#include <span>

#include "harness/page/html.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Tables of facts, a column per report: what was set for this run and is no default first, then device, libraries,
/// host and build. With several reports, rows that differ are marked.
void add_environment(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
