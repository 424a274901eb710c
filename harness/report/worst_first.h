// The order in which readers with little room are told about cases.
#pragma once

#include <span>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// By verdict, worst first (record.h); of one verdict that went wrong, the largest error over its bound first; else in
/// the order given. Points into `records`.
[[nodiscard]] std::vector<const CaseRecord*> worst_first(std::span<const CaseRecord> records);

}  // namespace gpubench
