// Shared by the textbooks of forward and backward attention: revealing data, the choice of judged rows, one head's rows
// in fp64, and the error of a score.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {

// Revealing data.
//
// One key: each query attends to one known key, so a row of o is that key's row of v, and gradients have few terms. The
// textbook can judge every element of a large output. The data reveal keys that are left out, doubled, masked, of
// another head or tile. n bits distinguish t keys. Element x of key j is k or -k by bit x mod n of j, times a sign per
// head and x. A query has its key's signs; other scores are lower by at least 2 |scale q k| floor(d / n) >= 110, and
// exp(-110) is 0 in f32.

struct KeyRange {
  std::int64_t first = 0, end = 0;
  [[nodiscard]] bool contains(std::int64_t key) const { return first <= key && key < end; }
};

/// The keys that a query sees through causal mask and window.
[[nodiscard]] KeyRange keys_before(const Attention& attention, const AttentionExtents& e, std::int64_t query);

/// The key that a query attends to in the data: some visible one, -1 if there is none; with documents, which begin
/// anywhere, the key at the query's position.
[[nodiscard]] std::int64_t one_key(const Attention& attention, const AttentionExtents& e, std::int64_t batch,
                                   std::int64_t query);

/// Data for a forward (q, k, v) or a backward (also o, lse and do). Empty if scores cannot differ enough: with softcap,
/// scale 0, or heads too narrow for the number of keys.
[[nodiscard]] std::vector<RevealingData> one_key_data(const CallSpecs& op);

/// Scores 140 to 280 above 0 for every other query and below it for the rest, unless softcap limits them. They reveal
/// keys past the end that are read as zeros (score 0 then dominates), and a running maximum that is missing or does not
/// start at minus infinity (sums of 0 or infinity). In a backward all keys of a query have equal scores, which gives
/// its log-sum-exp. Empty for a backward with documents.
[[nodiscard]] std::vector<RevealingData> scores_far_from_zero(const CallSpecs& op);

[[nodiscard]] inline double odd_number(std::uint64_t hash) { return 2.0 * static_cast<double>(hash % 4) - 3.0; }

/// Widens bounds by the `terms` terms that the sparse textbook omits: each at most f32's smallest normal number, where
/// exponentials may stop, times numbers below 2^20.
void allow_for_omitted_terms(std::span<Expected> judged, std::int64_t terms);

[[nodiscard]] inline AttentionExtents attention_extents(const CallSpecs& op) {
  return extents_of(op.input("q").shape, op.input("k").shape, op.input("v").shape);
}
[[nodiscard]] inline AttentionExtents attention_extents(const Operands& op) {
  return extents_of(op.input("q").shape(), op.input("k").shape(), op.input("v").shape());
}

/// A row of a [b, s, heads, d] tensor, or an element of a [b, heads, s] one.
struct AttentionRow {
  std::int64_t batch = 0, head = 0, row = 0;
};

/// The row of lse [b, heads, s] for an element of o [b, s, heads, d].
[[nodiscard]] inline std::int64_t lse_row(const Shape& o, std::int64_t element) {
  const std::int64_t row = element / o[3], head = row % o[2], query = row / o[2] % o[1];
  return (row / (o[2] * o[1]) * o[2] + head) * o[1] + query;
}

struct WantedRow {
  AttentionRow at;
  std::size_t place = 0;
};

struct HeadRows {
  std::int64_t batch = 0, kv_head = 0;
  std::vector<WantedRow> rows;
};

enum class UnitOrder { row_then_head, head_then_row };

/// Groups the wanted units of a tensor with `heads` heads by head of k and v, so that keys and values are decoded once
/// per head. `group`: query heads per head of k and v; 1 for units that are rows of k or v.
[[nodiscard]] std::vector<HeadRows> by_kv_head(std::span<const std::int64_t> wanted, std::int64_t s, std::int64_t heads,
                                               std::int64_t group, UnitOrder order);

/// One group per row: on sparse data a row needs a single row of keys and values.
[[nodiscard]] std::vector<HeadRows> each_by_itself(std::vector<HeadRows> heads);

/// Units where bugs tend to show: the given rows, of the first and the last head.
[[nodiscard]] std::vector<std::int64_t> attention_landmarks(std::int64_t b, std::int64_t s, std::int64_t heads,
                                                            std::span<const std::int64_t> rows, UnitOrder order);

/// The keys that each query of one batch entry sees; ranges ascend with the query. On sparse data (one_key()): the key
/// that the query attends to.
class SeenKeys {
 public:
  SeenKeys(const Operands& operands, const AttentionExtents& e, std::int64_t batch);
  [[nodiscard]] KeyRange of(std::int64_t query) const;
  /// The range that covers all of these rows, which are of one batch entry.
  [[nodiscard]] KeyRange of(std::span<const WantedRow> rows) const;

 private:
  Attention attention_;
  AttentionExtents extents_;
  std::int64_t batch_;
  bool sparse_;
  std::vector<double> boundaries_{};  // of documents, ascending
};

/// The rows for attention_landmarks(): tile edges, the first rows that a window cuts, and document starts.
[[nodiscard]] std::vector<std::int64_t> query_landmarks(const CallSpecs& op);

class HeadMatrix {
 public:
  HeadMatrix(const TensorView& view, std::int64_t batch, std::int64_t head, KeyRange rows)
      : first_(rows.first),
        d_(static_cast<std::size_t>(view.shape()[3])),
        values_(static_cast<std::size_t>(rows.end - rows.first) * d_) {
    for (std::int64_t row = rows.first; row < rows.end; ++row) {
      view.read({batch, row, head, 0}, 3, std::span(values_).subspan(place_of(row), d_));
    }
  }
  [[nodiscard]] std::span<const double> row(std::int64_t index) const {
    return std::span(values_).subspan(place_of(index), d_);
  }

 private:
  [[nodiscard]] std::size_t place_of(std::int64_t row) const { return static_cast<std::size_t>(row - first_) * d_; }

  std::int64_t first_;
  std::size_t d_;
  std::vector<double> values_;
};

/// A score, its error bound, and its derivative by the scaled product, which is below 1 with softcap.
struct Score {
  double value = 0.0;
  double bound = 0.0;  ///< Rule G of the products, and softcap's roundings; excludes scaling and exponential
  double slope = 1.0;
  double slope_bound = 0.0;
};
/// Softcap: x = cap t, t = tanh(y), y = scale q k / cap. Three roundings of y move t by 3 u y (1 - t^2) <= 3 u t; tanh
/// is within 4 ulp (8 u t), the product with cap within u: together 12 u |x|. The slope 1 - t^2 moves by 2 t times the
/// error of t, and by three roundings: of t^2, of the difference, and of its product with p.
[[nodiscard]] inline Score score_of(std::span<const double> q, std::span<const double> k, const Attention& attention,
                                    const ContractionRule& products, double u) {
  const ProductSum sum = dot(q, k);
  Score score{attention.scale * sum.value, std::fabs(attention.scale) * products.bound(sum)};
  if (std::isinf(score.value)) score.bound = 0.0;  // in any arithmetic; softcap makes the score finite
  if (attention.softcap == 0.0) return score;
  const double t = std::tanh(score.value / attention.softcap);
  score.value = attention.softcap * t;
  score.bound += 12.0 * u * std::fabs(score.value);
  score.slope = 1.0 - t * t;
  score.slope_bound = 2.0 * std::fabs(t) * score.bound / attention.softcap + 3.0 * u;
  return score;
}

/// exp(score - shift), and its relative error. Zeros have no error: an infinite score or shift would make it infinite.
struct Exponential {
  double value = 0.0, error = 0.0;
};
[[nodiscard]] inline Exponential exponential(double score, double shift, double error) {
  const double value = std::exp(score - shift);
  return {value, value == 0.0 ? 0.0 : error};
}

/// The rule of all products (scores, weighted means, gradients) of an attention op on tensors of type `data`.
[[nodiscard]] inline ContractionRule attention_products(const Math& math, DType data) {
  return contraction_rule(math, data, data, data);
}

/// Unit roundoff of the type that probabilities are cast to before products: the tensors' type, or the whole spacing of
/// tf32, which products truncate to.
[[nodiscard]] inline double probability_roundoff(const Math& math, DType data) {
  const double cut = attention_products(math, data).inputs;
  return cut > 0.0 ? cut : unit_roundoff(data);
}

/// The error of casting a factor to the type that products read: its maximum, variance, and exact shift. Below the
/// smallest normal number, spacing is constant and the error at most the number itself; the variance is 1/3 of the
/// squared maximum. Above, averaged over mantissas, it is 0.2 of it. Equal factors (attention to all keys equally)
/// shift alike: `shift` is the effect on the exact value. 0 for f32, in which sums are computed.
struct CastError {
  double most = 0.0, variance = 0.0, shift = 0.0;
};
class FactorCast {
 public:
  FactorCast(const Math& math, DType data)
      : data_(data), u_(probability_roundoff(math, data)), min_(smallest_normal(data)) {}
  /// `error`: bound of the value's error before the cast.
  [[nodiscard]] CastError of(double value, double error) const {
    const double size = std::fabs(value);
    const double most = std::min(size + error, u_ * std::max(size, min_));
    const double shift = bits_of(data_) < 32 ? round_to(data_, value) - value : 0.0;
    return {most, (size > min_ ? 0.2 : 1.0 / 3.0) * most * most, shift};
  }

 private:
  DType data_;
  double u_, min_;
};

/// K, the keys of a query row: "K = 1024", or "K <= 1024" if rows differ.
[[nodiscard]] std::string key_count_text(const Attention& attention, const AttentionExtents& e);
/// Score::bound in words: "0.125 (2 u sqrt(64) max(|C| + Q, 2 S))".
[[nodiscard]] std::string score_bound_text(const Attention& attention, std::int64_t d, const ContractionRule& products);

/// Average keys per query. Documents count as equally long; other lengths give more keys, never fewer.
[[nodiscard]] double mean_keys(const CallSpecs& op);

}  // namespace gpubench
