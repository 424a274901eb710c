// Softmax cross-entropy against integer labels, its gradient, and both fused. Goodfellow, Bengio, Courville, Deep
// Learning (2016), 6.2.2.3. For ranks with a part of the classes each (Shoeybi et al., arXiv 1909.08053, 3): a part's
// contribution, and the loss combined from all parts.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// Attributes shared by forward and backward, as in torch.nn.functional.cross_entropy.
struct CrossEntropy {
  /// Rows with label ignore_index are ignored: their dlogits are 0, and n, the divisor of the mean, is the number of
  /// other rows. If all are ignored, the loss is 0 / 0, NaN, and dlogits are 0, as in PyTorch. Default: n = rows.
  bool ignores = false;
  int ignore_index = -100;
  double label_smoothing = 0.0;
  double z_loss = 0.0;
  bool scaled = false;       ///< backward: the loss's gradient is an operand, dloss; set by the builders
  std::int64_t first = 0;    ///< first class of the logits
  std::int64_t classes = 0;  ///< number of classes on all ranks; 0: the logits have all
  /// For ignoring parts of a batch: n is an operand, count; set by the builders. The loss of a part whose rows are all
  /// ignored is then 0.
  bool given_count = false;
  static void visit(auto&& attribute) {
    attribute("ignores", &CrossEntropy::ignores);
    attribute("ignore_index", &CrossEntropy::ignore_index);
    attribute("label_smoothing", &CrossEntropy::label_smoothing);
    attribute("z_loss", &CrossEntropy::z_loss);
    attribute("scaled", &CrossEntropy::scaled);
    attribute("first", &CrossEntropy::first);
    attribute("classes", &CrossEntropy::classes);
    attribute("given_count", &CrossEntropy::given_count);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return (scaled && operand == "dloss") || (given_count && operand == "count");
  }
  [[nodiscard]] bool counts(std::int64_t label) const { return !ignores || label != ignore_index; }
  /// `here`: classes of the logits.
  [[nodiscard]] std::int64_t all_classes(std::int64_t here) const { return classes == 0 ? here : classes; }
  [[nodiscard]] bool is_class(std::int64_t label, std::int64_t here) const {
    return label >= 0 && label < all_classes(here);
  }
};

inline constexpr OpKind cross_entropy_forward_kind{"cross_entropy_forward", "logits labels count?", "loss lse",
                                                   defaults_of<CrossEntropy>, R"(
Softmax cross-entropy against integer labels, averaged over the rows.
logits: [rows, classes]
labels: i32 [rows]
count: f32 [1], when given_count: n
loss: f32 [1], in nats
lse: f32 [rows]

lse = log sum exp(logits)
loss = mean(lse - (1 - s) logits[label] - s mean(logits) + z lse^2), s = label_smoothing, z = z_loss
A label outside [0, classes) is invalid: the loss is NaN; lse is unaffected. The mean is over n rows: all, or with
`ignores` those whose label is not ignore_index. If n is 0, the loss is 0 / 0, NaN, as in PyTorch. For a part of a
batch, n may be given, so that the mean of the parts' losses is the batch's (count_labels). Not used here: scaled
(backward), first and classes (parts of the classes).

Source: Goodfellow, Bengio, Courville, Deep Learning (2016), 6.2.2.3; label smoothing: Szegedy et al., arXiv
1512.00567, 7; z_loss: Chowdhery et al., PaLM, arXiv 2204.02311, 5 (1e-4))"};

inline constexpr OpKind cross_entropy_backward_kind{"cross_entropy_backward", "logits labels lse dloss? count?",
                                                    "dlogits", defaults_of<CrossEntropy>, R"(
The gradient of cross_entropy_forward's logits; reads lse as given.
logits: [rows, classes]
labels: i32 [rows]
lse: f32 [rows]
dloss: f32 [1], when scaled: the gradient of the loss; else 1
count: f32 [1], when given_count: n
dlogits: as logits; may be an update of them

dlogits = (exp(logits - lse) (1 + 2 z lse) - (1 - s) 1[label] - s / classes) dloss / n, s = label_smoothing,
z = z_loss. Rows with a label outside [0, classes) are NaN. With `ignores`, rows with label ignore_index are 0 and do
not count in n. For a part of the classes: its first class is `first`, `classes` is the number of all classes, and lse
covers all of them.)"};

inline constexpr OpKind cross_entropy_forward_backward_kind{
    "cross_entropy_forward_backward", "logits labels dloss? count?", "loss lse dlogits", defaults_of<CrossEntropy>, R"(
cross_entropy_forward and cross_entropy_backward in one; the gradient's lse may be the stored one or not yet rounded.
logits: [rows, classes]
labels: i32 [rows]
dloss: f32 [1], when scaled: the gradient of the loss; else 1
count: f32 [1], when given_count: n
loss: f32 [1], in nats
lse: f32 [rows]
dlogits: as logits; may be an update of them

As the two ops, for all classes, with their ignores, ignore_index, label_smoothing, z_loss and given_count. first and
classes are not used.)"};

inline constexpr OpKind cross_entropy_partial_kind{"cross_entropy_partial", "logits labels", "lse score",
                                                   defaults_of<CrossEntropy>, R"(
What the classes of one rank, from `first` on and of `classes` in all, tell about the loss.
logits: [rows, part of the classes]
labels: i32 [rows], of all classes
lse: f32 [rows], of these logits
score: f32 [rows]; a row's loss is the lse of all classes less the sum of the parts' scores

score = (1 - s) logits[label - first] (0 if the label is in another part) + s / classes sum(logits),
s = label_smoothing. A label outside [0, classes) is invalid: NaN. With `ignores`, label ignore_index has score 0.
Not used here: z_loss (combine), scaled (backward), given_count (means).

Source: Shoeybi et al., Megatron-LM, arXiv 1909.08053, 3)"};

inline constexpr OpKind cross_entropy_combine_kind{"cross_entropy_combine", "lses scores labels count?", "loss lse",
                                                   defaults_of<CrossEntropy>, R"(
The loss of cross_entropy_forward, made of what each part of the classes tells (cross_entropy_partial).
lses: f32 [parts, rows]
scores: f32 [parts, rows]
labels: i32 [rows]
count: f32 [1], when given_count: n
loss: f32 [1], in nats
lse: f32 [rows], of all classes

lse = log sum exp(lses)
loss = mean(lse - sum(scores) + z lse^2) over n rows as in the forward (ignores, ignore_index), z = z_loss
Not used here: label_smoothing (in the scores), first and classes (the parts'), scaled (backward).)"};

[[nodiscard]] inline bool makes_cross_entropy(const OpKind& kind) {
  return kind == cross_entropy_forward_kind || kind == cross_entropy_combine_kind;
}

struct CrossEntropyForward {
  ValueId loss, lse;
};
CrossEntropyForward cross_entropy_forward(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels, const CrossEntropy& attributes = {},
                                          std::optional<ValueId> count = {});
/// `in_place`: dlogits updates logits, so that a language model's largest tensor is stored once.
ValueId cross_entropy_backward(Program& program, const Math& math, std::string label, ValueId logits, ValueId labels,
                               ValueId lse, bool in_place = false, CrossEntropy attributes = {},
                               std::optional<ValueId> dloss = {}, std::optional<ValueId> count = {});

struct CrossEntropyPartial {
  ValueId lse, score;
};
CrossEntropyPartial cross_entropy_partial(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels, const CrossEntropy& attributes);
CrossEntropyForward cross_entropy_combine(Program& program, const Math& math, std::string label, ValueId lses,
                                          ValueId scores, ValueId labels, const CrossEntropy& attributes,
                                          std::optional<ValueId> count = {});

struct CrossEntropyForwardBackward {
  ValueId loss, lse, dlogits;
};
/// fuse() replaces forward and backward by it. `in_place`: as above.
CrossEntropyForwardBackward cross_entropy_forward_backward(Program& program, const Math& math, std::string label,
                                                           ValueId logits, ValueId labels, bool in_place = false,
                                                           CrossEntropy attributes = {},
                                                           std::optional<ValueId> dloss = {},
                                                           std::optional<ValueId> count = {});

// The number of labels that are not ignored: the divisor of means over rows of several ranks or micro-batches.

struct CountLabels {
  int ignore_index = -100;
  int parts = 1;  ///< equal parts of the labels
  static void visit(auto&& attribute) {
    attribute("ignore_index", &CountLabels::ignore_index);
    attribute("parts", &CountLabels::parts);
  }
};

inline constexpr OpKind count_labels_kind{"count_labels", "labels", "y", defaults_of<CountLabels>, R"(
How many labels are not ignore_index, on average in `parts` of them.
labels: i32, any shape
y: f32 [1]

y = the number of labels that are not ignore_index / parts)"};

/// `wide`: the type of y. Throws ProgramError for fewer than one part, and naming a tensor that does not fit.
ValueId count_labels(Program& program, const CountLabels& attributes, const Math& math, std::string label,
                     ValueId labels, DType wide = DType::f32);

}  // namespace gpubench
