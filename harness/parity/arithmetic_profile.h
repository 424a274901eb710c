// Units that add up products, by what probes read of them, and what a reading means for what an op declares.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/parity/probe_sums.h"
#include "harness/parity/probe_values.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// What is known about a unit, and from where.
struct KnownAccumulator {
  std::string_view name;
  int bits;  ///< of a running sum
  SumRounding rounding;
  int at_once;   ///< products added at once
  int fraction;  ///< bits kept behind the leading one of the largest of them; 0 where one is added at a time
  std::string_view source;
};
/// In the order of their age. Units that no reading tells apart share a line.
[[nodiscard]] std::vector<KnownAccumulator> known_accumulators();

/// "Hopper or Blackwell, 16-bit", ", emptied every 128 products" with it where a narrow sum is added to a wider one,
/// and
/// ", partial sums in bf16"; "unknown" where nothing known fits; empty where too little was read to tell.
[[nodiscard]] std::string accumulator_name(const SumReading& sums);

/// An arithmetic below the declared one, as it was read.
struct Shortfall {
  std::string_view name;  ///< of LowerArithmetic: what `--arithmetic` takes
  std::string seen;       ///< "running sums of 11 bits"
  std::string declared;   ///< "24 (f32)"
};
/// Everything in which the readings are below what `math` declares for operands of types `a` and `b`. `blocks`: with a
/// scale for each block. What was not read is no shortfall, and neither is a product of 8-bit types whose sums of 14
/// bits are emptied every 128 products or sooner, or may be: that is what they declare without fast accumulation.
[[nodiscard]] std::vector<Shortfall> shortfalls(const SumReading& sums, const ValueReading& values, const Math& math,
                                                DType a, DType b, bool blocks);

}  // namespace gpubench
