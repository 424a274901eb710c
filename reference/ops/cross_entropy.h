// Softmax cross-entropy against integer labels, its gradient, and both at once. Goodfellow, Bengio, Courville, Deep
// Learning (2016), 6.2.2.3.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// logits [rows, classes], labels i32 [rows] -> loss f32 [1] (mean over rows, in nats), lse f32 [rows]
///   lse = log sum exp(logits), loss = mean(lse - logits[label])
/// A label outside [0, classes) has no right answer: the loss is NaN, and so is its row of dlogits; lse is not
/// affected.
inline constexpr OpKind cross_entropy_forward_kind{"cross_entropy_forward", "logits labels", "loss lse"};
/// dlogits (as logits) = (exp(logits - lse) - 1[label]) / rows; reads lse as given.
inline constexpr OpKind cross_entropy_backward_kind{"cross_entropy_backward", "logits labels lse", "dlogits"};
/// Both; the gradient's lse may be the stored one or not yet rounded.
inline constexpr OpKind cross_entropy_forward_backward_kind{"cross_entropy_forward_backward", "logits labels",
                                                            "loss lse dlogits"};

struct CrossEntropyForward {
  ValueId loss, lse;
};
CrossEntropyForward cross_entropy_forward(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels);
/// `in_place`: dlogits is an update of logits (the largest tensor of a language model is then stored once).
ValueId cross_entropy_backward(Program& program, const Math& math, std::string label, ValueId logits, ValueId labels,
                               ValueId lse, bool in_place = false);

struct CrossEntropyForwardBackward {
  ValueId loss, lse, dlogits;
};
/// What fuse() replaces the two by; `in_place` as above.
CrossEntropyForwardBackward cross_entropy_forward_backward(Program& program, const Math& math, std::string label,
                                                           ValueId logits, ValueId labels, bool in_place = false);

}  // namespace gpubench
