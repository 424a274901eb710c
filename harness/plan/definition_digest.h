// The meaning of a case id in 64 bits, so that a report can show that it measured the same work as another.
#pragma once

#include <cstdint>

#include "harness/core/workload.h"

namespace gpubench {

/// Digests everything that defines a case, as its suite declares it: the id, caches and cadence, items; each tensor's
/// name, type, shape, layout, place and fill; each op's kind, attributes, arithmetic, FLOP and bytes, and what it reads
/// and writes. Nothing that a device or a backend decides: launches, fusing, implementations. Counts are rounded to 12
/// digits, since sums may round differently elsewhere, so that every machine and compiler gets the same digest.
[[nodiscard]] std::uint64_t definition_digest(const Case& c, const Workload& workload, const Program& program);

}  // namespace gpubench
