// Exact data: operands on which every sum of products is a whole number that no order of adding up rounds.
//
// Then there is one right answer, bit for bit, and any fault that moves a sum at all shows: a product left out or taken
// twice among half a million, a scale off by 2^-18, an element in the wrong place. Realistic data hide these in
// rounding. (What exact data hide is a lower precision, in which whole numbers are exact too: the bounds on realistic
// data and the probes are for that.)
//
// a and b hold 1 and 3 with random signs, so that each product is odd and none can be missed. Sums of n such products
// grow with sqrt(n), and would soon be no numbers of a 16-bit type any more. So places along the summed axis go in
// pairs, k and k': a[k'] = s a[k] and b[k'] = s (d - b[k]), with a random sign s for each pair, whose two products add
// up to a[k] d. d is 2 or -2 in some pairs of each column of b, as many as keep |sum| representable, and 0 in the
// others. Pairs lie mirrored, (0, n-1), (1, n-2), ..., so that parts of a sum, which a backend may keep or store on
// their way, are large numbers; sums over runs of unknown lengths have neighbours for pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/parity/textbook_outputs.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct ExactData {
  std::vector<HostTensor> inputs;
  /// What each sum is a whole multiple of, where each is a number of the type that it is stored in; 0 where it may have
  /// to be rounded.
  double multiple_of = 0.0;
};

/// Whether there is exact data for the op, and whether its results are stored exactly too.
enum class Exactness { none, sums, results };
[[nodiscard]] Exactness exactness(const CallSpecs& op);

/// For an op that has a Contraction; nothing where sums may be rounded on the way whatever the data are: parts of them
/// stored in the output's type, or an accumulator too narrow for so many products. Other operands are whole numbers,
/// and factors powers of two; what a GELU epilogue reads covers [-4, 4]. `seed`: other data of the same kind.
[[nodiscard]] std::optional<ExactData> exact_data(const CallSpecs& op, std::uint64_t seed);

}  // namespace gpubench
