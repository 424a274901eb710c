// Exact data: operands whose sums of products are whole numbers that round in no order of addition.
//
// There is one right answer, bit for bit, so any fault that moves a sum shows: a product of half a million left out or
// counted twice, a scale off by 2^-18. Exact data hide a lower precision; the bounds on realistic data and the probes
// reveal that.
//
// a and b hold 1 and 3 with random signs, so that each product is odd. Sums of n such products grow with sqrt(n) and
// would leave the range of 16-bit types. So places along the summed axis form pairs k, k' with a[k'] = s a[k] and b[k']
// = s (d - b[k]), s a random sign: the two products add up to a[k] d. d is 2 or -2 in as many pairs of each column of b
// as keep |sum| representable, and 0 in the others. Pairs are mirrored, (0, n-1), (1, n-2), ..., so that partial sums
// are large. Sums over runs of unknown length pair neighbours.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/parity/textbook_outputs.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct ExactData {
  std::vector<HostTensor> inputs;
  /// Each sum is a whole multiple of this and exact in its storage type; 0 where sums may have to be rounded.
  double multiple_of = 0.0;
};

/// Whether exact data exist for the op, and whether its results are stored exactly too.
enum class Exactness { none, sums, results };
[[nodiscard]] Exactness exactness(const CallSpecs& op);

/// Exact data for an op with a Contraction. Nothing where sums may round on any data: partial sums stored in the
/// output's type, or an accumulator too narrow for the number of products. Other operands are whole numbers, and
/// factors powers of two; the input of a GELU epilogue covers [-4, 4].
[[nodiscard]] std::optional<ExactData> exact_data(const CallSpecs& op, std::uint64_t seed);

}  // namespace gpubench
