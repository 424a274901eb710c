// How much of its allowed error each kind of op used.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// A heat map per report: op kinds by precision, the largest error over its bound among all judged elements of all
/// checks, failing ones too, which are marked: 1 is the whole of the bound. Ops of which nothing was judged are left
/// out.
[[nodiscard]] Section error_budget(std::span<const Side> sides);

}  // namespace gpubench::page
