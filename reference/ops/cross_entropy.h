// Softmax cross-entropy against integer labels, its gradient, and both at once. Goodfellow, Bengio, Courville, Deep
// Learning (2016), 6.2.2.3.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// What the loss is made of, alike in its forward and its backward. As torch.nn.functional.cross_entropy has it.
struct CrossEntropy {
  /// Rows whose label is ignore_index count for nothing: their dlogits are 0, and the mean is over the n others. Where
  /// there are none, the loss is 0 / 0, a NaN, and dlogits are 0, as in PyTorch. Else n = rows.
  bool ignores = false;
  int ignore_index = -100;
  double label_smoothing = 0.0;
  double z_loss = 0.0;
  bool scaled = false;  ///< of a backward: the gradient of the loss is an operand, dloss; the builders set it
  static void visit(auto&& attribute) {
    attribute("ignores", &CrossEntropy::ignores);
    attribute("ignore_index", &CrossEntropy::ignore_index);
    attribute("label_smoothing", &CrossEntropy::label_smoothing);
    attribute("z_loss", &CrossEntropy::z_loss);
    attribute("scaled", &CrossEntropy::scaled);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return scaled && operand == "dloss"; }
  [[nodiscard]] bool counts(std::int64_t label) const { return !ignores || label != ignore_index; }
};

inline constexpr OpKind cross_entropy_forward_kind{"cross_entropy_forward", "logits labels", "loss lse",
                                                   defaults_of<CrossEntropy>, R"(
Softmax cross-entropy against integer labels, averaged over the rows.
logits: [rows, classes]
labels: i32 [rows]
loss: f32 [1], in nats
lse: f32 [rows]

lse = log sum exp(logits)
loss = mean(lse - (1 - s) logits[label] - s mean(logits) + z lse^2), s = label_smoothing, z = z_loss
A label outside [0, classes) has no right answer: the loss is NaN; lse is not affected.
Where it `ignores`, rows whose label is ignore_index count for nothing, and the mean is over the n others. Where
there are none, the loss is 0 / 0, a NaN, as in PyTorch. Else n = rows. scaled is for the gradients.

Source: Goodfellow, Bengio, Courville, Deep Learning (2016), 6.2.2.3; label smoothing: Szegedy et al., arXiv
1512.00567, 7; z_loss: Chowdhery et al., PaLM, arXiv 2204.02311, 5 (1e-4))"};

inline constexpr OpKind cross_entropy_backward_kind{"cross_entropy_backward", "logits labels lse dloss?", "dlogits",
                                                    defaults_of<CrossEntropy>, R"(
The gradient of cross_entropy_forward's logits; reads lse as given.
logits: [rows, classes]
labels: i32 [rows]
lse: f32 [rows]
dloss: f32 [1], when scaled: the gradient of the loss; else 1
dlogits: as logits; may be an update of them

dlogits = (exp(logits - lse) (1 + 2 z lse) - (1 - s) 1[label] - s / classes) dloss / n, s = label_smoothing, z =
z_loss Rows whose label is not in [0, classes) are NaN; where it `ignores`, those of ignore_index are 0 and not
counted in n.)"};

inline constexpr OpKind cross_entropy_forward_backward_kind{"cross_entropy_forward_backward", "logits labels dloss?",
                                                            "loss lse dlogits", defaults_of<CrossEntropy>, R"(
cross_entropy_forward and cross_entropy_backward in one; the gradient's lse may be the stored one or not yet rounded.
logits: [rows, classes]
labels: i32 [rows]
dloss: f32 [1], when scaled: the gradient of the loss; else 1
loss: f32 [1], in nats
lse: f32 [rows]
dlogits: as logits; may be an update of them

As the two: ignores, ignore_index, label_smoothing and z_loss mean what they mean there.)"};

struct CrossEntropyForward {
  ValueId loss, lse;
};
CrossEntropyForward cross_entropy_forward(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels, const CrossEntropy& attributes = {});
/// `in_place`: dlogits is an update of logits (the largest tensor of a language model is then stored once).
ValueId cross_entropy_backward(Program& program, const Math& math, std::string label, ValueId logits, ValueId labels,
                               ValueId lse, bool in_place = false, CrossEntropy attributes = {},
                               std::optional<ValueId> dloss = {});

struct CrossEntropyForwardBackward {
  ValueId loss, lse, dlogits;
};
/// What fuse() replaces the two by; `in_place` as above.
CrossEntropyForwardBackward cross_entropy_forward_backward(Program& program, const Math& math, std::string label,
                                                           ValueId logits, ValueId labels, bool in_place = false,
                                                           CrossEntropy attributes = {},
                                                           std::optional<ValueId> dloss = {});

}  // namespace gpubench
