// What an id stands for, in 64 bits: so that a report can show that it measured the same work as another.
#pragma once

#include <cstdint>

#include "harness/core/workload.h"

namespace gpubench {

/// Digests all that the meaning of a case consists of, as its suite declares it: the id, caches and cadence, items;
/// each tensor's name, type, shape, layout, place and fill; each op's kind, attributes, arithmetic, FLOP and bytes, and
/// what it reads and writes. Nothing that a device or a backend decides: launches, fusing, implementations. Counts are
/// taken to 12 digits, since sums may be rounded otherwise elsewhere; so every machine and compiler comes to the same.
[[nodiscard]] std::uint64_t definition_digest(const Case& c, const Workload& workload, const Program& program);

}  // namespace gpubench
