// Softmax cross-entropy against integer labels, its gradient, and both at once. Goodfellow, Bengio, Courville, Deep
// Learning (2016), 6.2.2.3.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind cross_entropy_forward_kind{"cross_entropy_forward"};
inline constexpr OpKind cross_entropy_backward_kind{"cross_entropy_backward"};
inline constexpr OpKind cross_entropy_forward_backward_kind{"cross_entropy_forward_backward"};

/// forward: logits [rows, classes], labels i32 [rows] -> loss f32 [1] (mean over rows, in nats), lse f32 [rows]
///   lse = log sum exp(logits), loss = mean(lse - logits[label])
/// backward: logits, labels, lse -> dlogits (as logits) = (exp(logits - lse) - 1[label]) / rows; reads lse as given.
/// forward_backward: logits, labels -> loss, lse, dlogits; the gradient's lse may be the stored one or not yet rounded.
/// A label outside [0, classes) has no right answer: its row of dlogits is NaN, and so is the loss; lse is as for any
/// other.
struct CrossEntropy {
  friend bool operator==(const CrossEntropy&, const CrossEntropy&) = default;
};
[[nodiscard]] std::string describe(const CrossEntropy& attributes);

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
/// What fuse() puts in for the two; `in_place` as above.
CrossEntropyForwardBackward cross_entropy_forward_backward(Program& program, const Math& math, std::string label,
                                                           ValueId logits, ValueId labels, bool in_place = false);

}  // namespace gpubench
