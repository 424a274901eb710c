// What the textbooks of collectives share: finding, from a wrong result, which rank and which part of the message went
// wrong.
//
// Each kind of fault (a contribution that is missing, doubled, old, from elsewhere) predicts every wrong element from
// the inputs. Where one kind predicts nearly all of them, it is named; chance explains a few elements, never all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "reference/ops/definition.h"

namespace gpubench {

/// One kind of fault: what it would have left in element `linear`; NaN where it predicts nothing.
struct FaultHypothesis {
  std::string words;  ///< "rank 1's contribution is missing"
  std::function<double(std::int64_t linear)> predict;
};

/// The words of the first hypothesis that predicts at least nine in ten of the wrong elements, and which part of the
/// output they are in: "rank 1's contribution is missing, in chunk 2 of 4 (elements 512 to 767)". Without such a
/// hypothesis only the part; empty for no wrong elements. `chunks`: how many equal parts the output falls into.
[[nodiscard]] std::string name_fault(std::span<const FaultHypothesis> hypotheses, std::span<const Mismatch> wrong,
                                     DType type, std::int64_t elements, int chunks);

}  // namespace gpubench
