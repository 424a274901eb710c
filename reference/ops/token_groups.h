// Token permutation for experts: sorting by expert, moving, and summing up again. A pair is a token and one of its k
// experts; pair token k + j is the token's j-th.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct TokenGrouping {
  std::int64_t experts = 1;
  std::int64_t first = 0;
  static void visit(auto&& attribute) {
    attribute.always("experts", &TokenGrouping::experts);
    attribute("first", &TokenGrouping::first);
  }
};

inline constexpr OpKind group_tokens_kind{"group_tokens", "indices", "sizes order places", defaults_of<TokenGrouping>,
                                          R"(
Sorts the pairs of a token and one of its k experts by expert. Pair token k + j is the token's j-th.
indices: i32 [t, k]
sizes: i32 [experts], how many pairs name expert first + g
order: i32 [t k], the pairs, grouped by expert
places: i32 [t, k], each pair's place in `order`

Pairs of one expert stay in order. Pairs of experts outside first ... first + experts - 1 (on other ranks) are left
out: their places are -1, as is the rest of `order`.)"};

inline constexpr OpKind unpermute_backward_weights_kind{"unpermute_backward_weights", "x places dy", "dweights", {}, R"(
The gradient of the weights of unpermute_tokens, and of permute_tokens with its x for dy, and dy for x.
x: [n, h]
places: i32 [t, k]
dy: [t, h]
dweights: f32 [t, k] (f64 for f64)

dweights[i, j] = dy[i] . x[places[i, j]], or 0)"};

struct TokenMove {
  bool weighted = false;
  static void visit(auto&& attribute) { attribute("weighted", &TokenMove::weighted); }
  [[nodiscard]] bool has(std::string_view operand) const { return operand == "weights" && weighted; }
};

inline constexpr OpKind permute_tokens_kind{"permute_tokens", "x order weights?", "y", defaults_of<TokenMove>, R"(
Brings tokens to their experts: a row for each pair, in group_tokens' order.
x: [t, h]
order: i32 [n]
weights: f32 [t, k] (f64 for f64), when weighted
y: [n, h], x's type; k = n / t

y[r] = x[order[r] / k], times weights[order[r]]; 0 if order[r] is not a pair)"};

inline constexpr OpKind unpermute_tokens_kind{"unpermute_tokens", "x places weights?", "y", defaults_of<TokenMove>, R"(
Brings the experts' rows back to their tokens and sums them up.
x: [n, h]
places: i32 [t, k]
weights: f32 [t, k] (f64 for f64), when weighted
y: [t, h], x's type

y[i] = the sum over j of x[places[i, j]], times weights[i, j]; places outside [0, n) contribute nothing)"};

struct TokenGroups {
  ValueId sizes, order, places;
};
TokenGroups group_tokens(Program& program, const TokenGrouping& attributes, std::string label, ValueId indices);
/// `order`, `places`: the gradient needs both; the other is found if group_tokens made this one.
ValueId permute_tokens(Program& program, const Math& math, std::string label, ValueId x, ValueId order,
                       std::optional<ValueId> weights = {});
ValueId unpermute_tokens(Program& program, const Math& math, std::string label, ValueId x, ValueId places,
                         std::optional<ValueId> weights = {});
ValueId unpermute_backward_weights(Program& program, const Math& math, std::string label, ValueId x, ValueId places,
                                   ValueId dy);

}  // namespace gpubench
