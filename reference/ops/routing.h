// Top-k routing: each token's experts and their weights. Shazeer et al., arXiv 1701.06538; Switch, arXiv 2101.03961;
// Mixtral, arXiv 2401.04088; DeepSeek-V3, arXiv 2412.19437, 2.1.2.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

///                            scores   normalize  bias  scale
///   Switch (k = 1), OLMoE    softmax  no         no    1
///   Mixtral, Qwen3           softmax  yes        no    1
///   DeepSeek-V3              sigmoid  yes        yes   2.5
struct Routing {
  enum class Scores { softmax, sigmoid };
  std::int64_t k = 1;
  Scores scores = Scores::softmax;
  bool normalize = false;
  bool bias = false;  ///< affects the choice only; balances experts without a loss (arXiv 2408.15664)
  double scale = 1.0;
  static void visit(auto&& attribute) {
    attribute.always("k", &Routing::k);
    attribute("scores", &Routing::scores, AsWord{"softmax", "sigmoid"});
    attribute("normalize", &Routing::normalize);
    attribute("bias", &Routing::bias);
    attribute("scale", &Routing::scale);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return operand == "bias" && bias; }
};

inline constexpr OpKind routing_forward_kind{"routing_forward", "logits bias?", "indices weights", defaults_of<Routing>,
                                             R"(
Which experts of a mixture a token goes to, and with what weights: top-k routing.
logits: [t, e]
bias: f32 [e]
indices: i32 [t, k]
weights: f32 [t, k] (f64 for f64)

  s        by scores: softmax of the row, or sigmoid, 1 / (1 + exp(-logit)) of each
  indices  of the k largest s + bias, in descending order. Scores that are equal, or differ by less than their
           rounding errors, may be in any order.
  weights  scale s[index]; with `normalize`, s is first divided by the sum of the chosen ones, which for a softmax
           gives the softmax of the chosen logits (Mixtral)
bias affects the choice only; it balances the experts without a loss (arXiv 2408.15664). A row with a NaN is invalid.
                           scores   normalize  bias  scale
  Switch (k = 1), OLMoE    softmax  no         no    1
  Mixtral, Qwen3           softmax  yes        no    1
  DeepSeek-V3              sigmoid  yes        yes   2.5

Source: Shazeer et al., arXiv 1701.06538; Switch, arXiv 2101.03961; Mixtral, arXiv 2401.04088; DeepSeek-V3, arXiv
2412.19437, 2.1.2)"};

inline constexpr OpKind routing_backward_kind{"routing_backward", "logits indices dweights", "dlogits",
                                              defaults_of<Routing>, R"(
The gradient of routing_forward's logits, for the choice as given.
logits: [t, e]
indices: i32 [t, k]
dweights: f32 [t, k] (f64 for f64)
dlogits: as logits

dlogits = the gradient of sum(weights dweights), with k, scores, normalize and scale as in the forward. The choice,
and thus the bias, has no gradient. An index outside [0, e) contributes nothing.)"};

struct RoutingForward {
  ValueId indices, weights;
};
/// Throws ProgramError unless 1 <= k <= e, and `bias` is given exactly if the attributes ask for it.
RoutingForward routing_forward(Program& program, const Routing& attributes, const Math& math, std::string label,
                               ValueId logits, std::optional<ValueId> bias = {});
/// `attributes`: the forward's.
ValueId routing_backward(Program& program, const Routing& attributes, const Math& math, std::string label,
                         ValueId logits, ValueId indices, ValueId dweights);

}  // namespace gpubench
