// What the textbooks of forward and backward attention share: data that reveal its faults, which rows are judged, one
// head's rows in fp64, and the error of a score.
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

// Data for attention that reveal its faults: one key, and scores far from 0.
//
// One key. Data on which each query of attention attends to one key that is known beforehand: its row of o is that
// key's row of v, and the gradients have few terms, so that every element of a large output is judged at the cost of
// making the data. A key that is left out, taken twice or not allowed to be seen, another head's, a tile in the wrong
// place: all show.
//
// Keys are named by signs: with n bits that tell t keys apart, element x of key j is k or -k as bit x mod n of j says,
// turned by signs of its head's own. A query has the signs of its key, so that scores of others are less by at least
// 2 |scale q k| floor(d / n). That is made 110 or more: exp(-110) is 0 in f32.

/// Keys [first, end).
struct KeyRange {
  std::int64_t first = 0, end = 0;
  [[nodiscard]] bool contains(std::int64_t key) const { return first <= key && key < end; }
};

/// The keys that a query sees by causal and window.
[[nodiscard]] KeyRange keys_before(const Attention& attention, const AttentionExtents& e, std::int64_t query);

/// The key that a query attends to on these data: any that it sees, -1 where it sees none; with documents, which begin
/// anywhere, its own.
[[nodiscard]] std::int64_t one_key(const Attention& attention, const AttentionExtents& e, std::int64_t batch,
                                   std::int64_t query);

/// The data, for a forward (q, k, v) or a backward (the saved o and lse, and do, too). None where scores can't be told
/// apart by so much: with softcap, scale 0, or heads too narrow for so many keys.
[[nodiscard]] std::vector<RevealingData> one_key_data(const CallSpecs& op);

/// Data for a forward or a backward on which scores are 140 to 280 above 0 for every other query and below it for the
/// rest, where softcap lets them: a key past the end, read as zeros, has a score of 0 and with it all the weight; a
/// running maximum that does not start at minus infinity, or is missing, leaves sums of 0 or infinity. In a backward,
/// which is given the log-sum-exp, the keys of a query have equal scores. None with documents in a backward.
[[nodiscard]] std::vector<RevealingData> scores_far_from_zero(const CallSpecs& op);

/// -3, -1, 1 or 3, as a hash says.
[[nodiscard]] inline double odd_number(std::uint64_t hash) { return 2.0 * static_cast<double>(hash % 4) - 3.0; }

/// Adds to bounds what the textbook, which then adds up the one key alone, leaves out: of each of `terms` terms at most
/// a product with the smallest normal number of f32, where exponentials may stop, and with numbers below 2^20.
void allow_for_what_is_left_out(std::span<Expected> judged, std::int64_t terms);

/// The extents of a call, of which `op` has q, k and v.
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

/// The row of lse, [b, heads, s], that an element of o, [b, s, heads, d], belongs to.
[[nodiscard]] inline std::int64_t lse_row(const Shape& o, std::int64_t element) {
  const std::int64_t row = element / o[3], head = row % o[2], query = row / o[2] % o[1];
  return (row / (o[2] * o[1]) * o[2] + head) * o[1] + query;
}

/// One wanted unit: its row, and its place among the wanted ones.
struct WantedRow {
  AttentionRow at;
  std::size_t place = 0;
};

/// Wanted units that share a head of k and v.
struct HeadRows {
  std::int64_t batch = 0, kv_head = 0;
  std::vector<WantedRow> rows;
};

/// How units are numbered.
enum class UnitOrder { row_then_head, head_then_row };

/// Splits the wanted units of a tensor with `heads` heads by the head of k and v that they need; `group` query heads
/// share one (1 for units that are rows of k or v). Keys and values are then decoded once per head, not once per row.
[[nodiscard]] std::vector<HeadRows> by_kv_head(std::span<const std::int64_t> wanted, std::int64_t s, std::int64_t heads,
                                               std::int64_t group, UnitOrder order);

/// For rows of queries on sparse data: each by itself, since it needs one row of keys and values, from anywhere.
[[nodiscard]] std::vector<HeadRows> each_by_itself(std::vector<HeadRows> heads);

/// Units where bugs tend to show: the first rows, both sides of tile edges, the last row; of the first and the last
/// head.
[[nodiscard]] std::vector<std::int64_t> attention_landmarks(std::int64_t b, std::int64_t s, std::int64_t heads,
                                                            std::span<const std::int64_t> rows, UnitOrder order);

/// The keys that each query of one batch entry sees, of a later query none before those of an earlier one. On sparse
/// data (one_key()): the key that it attends to.
class SeenKeys {
 public:
  SeenKeys(const Operands& operands, const AttentionExtents& e, std::int64_t batch);
  [[nodiscard]] KeyRange of(std::int64_t query) const;
  /// What these rows see, which are of one batch entry.
  [[nodiscard]] KeyRange of(std::span<const WantedRow> rows) const;

 private:
  Attention attention_;
  AttentionExtents extents_;
  std::int64_t batch_;
  bool sparse_;
  std::vector<double> boundaries_{};  // of documents, ascending
};

/// The query rows for attention_landmarks(): tile edges, the first rows that a window cuts, and those where keys begin.
[[nodiscard]] std::vector<std::int64_t> query_landmarks(const CallSpecs& op);

/// Rows of one head of a [b, s, heads, d] tensor, widened.
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
  /// One of the rows that were read.
  [[nodiscard]] std::span<const double> row(std::int64_t index) const {
    return std::span(values_).subspan(place_of(index), d_);
  }

 private:
  [[nodiscard]] std::size_t place_of(std::int64_t row) const { return static_cast<std::size_t>(row - first_) * d_; }

  std::int64_t first_;
  std::size_t d_;
  std::vector<double> values_;
};

/// A score, how far it may be off, and its derivative by the scaled product, which softcap makes less than 1.
struct Score {
  double value = 0.0;
  double bound = 0.0;  ///< Rule G on its products, and the roundings of softcap; not those of scale and exponential
  double slope = 1.0;
  double slope_bound = 0.0;
};
/// Softcap: x = cap t, t = tanh(y), y = scale q k / cap. Three roundings on the way to y move t by 3 u y (1 - t^2),
/// which is at most 3 u t; tanh itself is within 4 ulp (8 u t), and the product with cap within u: 12 u |x|. The slope
/// 1 - t^2 moves by 2 t times the error of t, and by three roundings: t^2, the difference, and its product with p.
[[nodiscard]] inline Score score_of(std::span<const double> q, std::span<const double> k, const Attention& attention,
                                    const ContractionRule& products, double u) {
  const ProductSum sum = dot(q, k);
  Score score{attention.scale * sum.value, std::fabs(attention.scale) * products.bound(sum)};
  if (std::isinf(score.value)) score.bound = 0.0;  // in any arithmetic; softcap makes it finite
  if (attention.softcap == 0.0) return score;
  const double t = std::tanh(score.value / attention.softcap);
  score.value = attention.softcap * t;
  score.bound += 12.0 * u * std::fabs(score.value);
  score.slope = 1.0 - t * t;
  score.slope_bound = 2.0 * std::fabs(t) * score.bound / attention.softcap + 3.0 * u;
  return score;
}

/// exp(score - shift), and its relative error. One of 0 has none: a score of minus infinity, or a shift of infinity,
/// would make it infinite.
struct Exponential {
  double value = 0.0, error = 0.0;
};
[[nodiscard]] inline Exponential exponential(double score, double shift, double error) {
  const double value = std::exp(score - shift);
  return {value, value == 0.0 ? 0.0 : error};
}

/// The rule of all matrix products of an attention op on tensors of type `data`: scores, weighted means, gradients.
[[nodiscard]] inline ContractionRule attention_products(const Math& math, DType data) {
  return contraction_rule(math, data, data, data);
}

/// Unit roundoff of the type that probabilities are cast to before they are multiplied with values: that of the
/// tensors, or of tf32 where products read that (cut, not rounded: its whole spacing).
[[nodiscard]] inline double probability_roundoff(const Math& math, DType data) {
  const double cut = attention_products(math, data).inputs;
  return cut > 0.0 ? cut : unit_roundoff(data);
}

/// How far casting a factor to the type that products read may move it, and the variance of that. Below the smallest
/// normal number the spacing stays the same, and nothing moves by more than its own size. Above, the spacing follows
/// the powers of two: the variance is 0.2 of the most squared, on average over mantissas, for a third below. Factors
/// that are alike (attention to all keys equally) are all moved the same way: by `shift`, what casting does to the
/// exact value. 0 for f32, which sums are too.
struct CastError {
  double most = 0.0, variance = 0.0, shift = 0.0;
};
class FactorCast {
 public:
  FactorCast(const Math& math, DType data)
      : data_(data), u_(probability_roundoff(math, data)), least_(smallest_normal(data)) {}
  /// `error`: how far the value before the cast may be off.
  [[nodiscard]] CastError of(double value, double error) const {
    const double size = std::fabs(value);
    const double most = std::min(size + error, u_ * std::max(size, least_));
    const double shift = bits_of(data_) < 32 ? round_to(data_, value) - value : 0.0;
    return {most, (size > least_ ? 0.2 : 1.0 / 3.0) * most * most, shift};
  }

 private:
  DType data_;
  double u_, least_;
};

/// The K keys of a query row, in words: "K = 1024", "K <= 1024" where not all see as many.
[[nodiscard]] std::string key_count_text(const Attention& attention, const AttentionExtents& e);
/// Score::bound in words: "0.125 (2 u sqrt(64) max(|C| + Q, 2 S))".
[[nodiscard]] std::string score_bound_text(const Attention& attention, std::int64_t d, const ContractionRule& products);

/// How many keys a query sees on average. Documents count as of equal length: others see more, never fewer.
[[nodiscard]] double mean_keys(const CallSpecs& op);

}  // namespace gpubench
