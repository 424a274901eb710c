// Backward attention, given the saved o and log-sum-exp (Dao et al., arXiv 2205.14135, appendix B):
//   D_i = sum do_i o_i,  p_ij = exp(s_ij - lse_i),  ds_ij = p_ij (do_i v_j - D_i)
//   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i p_ij do_i
// Softcap multiplies ds_ij by 1 - (s_ij / cap)^2. A sink is a key with v = 0, already part of lse:
//   dsink = -sum_i exp(sink - lse_i) D_i over all query rows of its head
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ops/attention_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

enum Gradient { output_dq, output_dk, output_dv, output_dsinks };

constexpr std::array<std::int64_t, 5> key_landmarks{0, 1, 63, 64, -1};  // fewer: a key row needs every query row

struct QueryRow {
  const TensorView &q_view, &d_o_view, &o_view, &lse_view;
  std::vector<double> q, d_o, o;
  double lse = 0.0;
  double correction = 0.0;        // D
  double correction_bound = 0.0;  // shared by all keys of the row

  QueryRow(const Operands& operands, const AttentionExtents& e)
      : q_view(operands.input("q")),
        d_o_view(operands.input("do")),
        o_view(operands.input("o")),
        lse_view(operands.input("lse")),
        q(static_cast<std::size_t>(e.d)),
        d_o(static_cast<std::size_t>(e.d_v)),
        o(d_o.size()) {}

  void read(const AttentionRow& at, double u) {
    q_view.read({at.batch, at.row, at.head, 0}, 3, q);
    d_o_view.read({at.batch, at.row, at.head, 0}, 3, d_o);
    o_view.read({at.batch, at.row, at.head, 0}, 3, o);
    lse = lse_view.at({at.batch, at.head, at.row});
    const ProductSum sum = dot(d_o, o);
    correction = sum.value;
    correction_bound = sum_error_bound(sum, u) + 2.0 * u * std::fabs(sum.value);
  }
};

struct Weight {
  double value = 0.0;
  double error = 0.0;
  CastError cast;
};

struct Arithmetic {
  double u;
  FactorCast cast;
  ContractionRule products;
  ContractionRule of_operands;  // q k and do v; exact on one_key_data(), also in tf32

  explicit Arithmetic(const Operands& operands)
      : u(accumulator_roundoff(operands.call.math)),
        cast(operands.call.math, operands.input("v").dtype()),
        products(attention_products(operands.call.math, operands.input("v").dtype())),
        of_operands(products) {
    if (operands.sparse) of_operands.inputs = 0.0;
  }
};

struct Pair {
  double p = 0.0;
  double p_error = 0.0;  // relative
  double slope = 1.0;
  double slope_error = 0.0;
};

double rounding(double score, double lse, double u) {
  return u * (3.0 * std::fabs(score) + 4.0 * std::fabs(lse) + 10.0);
}

Pair probability(const QueryRow& row, std::span<const double> k, const Attention& attention,
                 const Arithmetic& arithmetic) {
  const Score score = score_of(row.q, k, attention, arithmetic.of_operands, arithmetic.u);
  const auto [p, error] = exponential(score.value, row.lse, score.bound + rounding(score.value, row.lse, arithmetic.u));
  return {p, error, score.slope, score.slope_bound};
}

Weight gradient_of_score(const QueryRow& row, const Pair& pair, std::span<const double> v,
                         const Arithmetic& arithmetic) {
  const double u = arithmetic.u;
  const ProductSum d_p = dot(row.d_o, v);
  const double difference = d_p.value - row.correction;
  const double value = pair.p * difference * pair.slope;
  const double error = pair.p * (pair.slope * (pair.p_error * std::fabs(difference) +
                                               arithmetic.of_operands.bound(d_p) + 2.0 * u * std::fabs(difference)) +
                                 pair.slope_error * std::fabs(difference));
  return {value, error, arithmetic.cast.of(value, error + pair.p * pair.slope * row.correction_bound)};
}

// Sum of weights times rows. Errors are independent, except that casts shift equal weights alike. The bound is Rule G,
// and the smaller of the worst case and six standard deviations plus the sum of exact casts.
class WeightedRows {
 public:
  explicit WeightedRows(std::int64_t d) : sums_(static_cast<std::size_t>(d)) {}

  void clear() { std::fill(sums_.begin(), sums_.end(), Sum{}); }

  void add(const Weight& weight, std::span<const double> row) {
    const double worst = weight.error + weight.cast.most;
    const double variance = weight.error * weight.error / 3.0 + weight.cast.variance;
    for (std::size_t e = 0; e < row.size(); ++e) {
      const double product = weight.value * row[e];
      sums_[e].products.add(product);
      sums_[e].worst += worst * std::fabs(row[e]);
      sums_[e].variance += variance * row[e] * row[e];
      sums_[e].shift += weight.cast.shift * row[e];
    }
  }

  /// `shared`: per element, an error that all terms have in common; may be empty.
  void judge(double scale, const Arithmetic& arithmetic, std::span<const double> shared,
             std::span<Expected> judged) const {
    for (std::size_t e = 0; e < sums_.size(); ++e) {
      const Sum& sum = sums_[e];
      double bound = std::min(sum.worst, std::fabs(sum.shift) + 6.0 * std::sqrt(sum.variance));
      bound += arithmetic.products.bound(sum.products);
      if (!shared.empty()) bound += shared[e];
      const double value = sum.products.value;
      judged[e] = {scale * value, std::fabs(scale) * (bound + 2.0 * arithmetic.u * std::fabs(value))};
    }
  }

 private:
  struct Sum {
    ProductSum products;
    double worst = 0.0, variance = 0.0, shift = 0.0;
  };
  std::vector<Sum> sums_;
};

void judge_queries(const Operands& operands, const AttentionExtents& e, const HeadRows& head,
                   std::span<Expected> judged) {
  const Attention& attention = operands.call.attributes.as<Attention>();
  const Arithmetic arithmetic(operands);
  const SeenKeys seen(operands, e, head.batch);
  const KeyRange keys = seen.of(head.rows);
  const HeadMatrix k(operands.input("k"), head.batch, head.kv_head, keys);
  const HeadMatrix v(operands.input("v"), head.batch, head.kv_head, keys);
  QueryRow row(operands, e);
  WeightedRows sum(e.d);
  const auto d = static_cast<std::size_t>(e.d);
  std::vector<double> mean_key(d);  // sum of p k (times slope), the factor of D's error
  for (const WantedRow& wanted : head.rows) {
    row.read(wanted.at, arithmetic.u);
    sum.clear();
    std::fill(mean_key.begin(), mean_key.end(), 0.0);
    const KeyRange of_row = seen.of(wanted.at.row);
    for (std::int64_t j = of_row.first; j < of_row.end; ++j) {
      const Pair pair = probability(row, k.row(j), attention, arithmetic);
      sum.add(gradient_of_score(row, pair, v.row(j), arithmetic), k.row(j));
      for (std::size_t i = 0; i < d; ++i) mean_key[i] += pair.p * pair.slope * k.row(j)[i];
    }
    for (double& value : mean_key) value = std::fabs(value) * row.correction_bound;
    sum.judge(attention.scale, arithmetic, mean_key, judged.subspan(wanted.place * d, d));
  }
}

void judge_keys(const Operands& operands, const AttentionExtents& e, const HeadRows& head, bool values,
                std::span<Expected> judged) {
  const Attention& attention = operands.call.attributes.as<Attention>();
  const Arithmetic arithmetic(operands);
  const auto d = static_cast<std::size_t>(e.d), d_v = static_cast<std::size_t>(e.d_v);
  const std::size_t count = head.rows.size(), width = values ? d_v : d;
  std::vector<std::vector<double>> k(count, std::vector<double>(d)), v(count, std::vector<double>(d_v));
  for (std::size_t i = 0; i < count; ++i) {
    operands.input("k").read({head.batch, head.rows[i].at.row, head.kv_head, 0}, 3, k[i]);
    operands.input("v").read({head.batch, head.rows[i].at.row, head.kv_head, 0}, 3, v[i]);
  }
  std::vector<WeightedRows> sums(count, WeightedRows(values ? e.d_v : e.d));
  QueryRow query(operands, e);
  const std::int64_t group = e.hq / e.hkv;
  const SeenKeys seen(operands, e, head.batch);
  for (std::int64_t h = head.kv_head * group; h < (head.kv_head + 1) * group; ++h) {
    for (std::int64_t i = 0; i < e.s; ++i) {
      const KeyRange keys = seen.of(i);
      if (keys.end <= head.rows.front().at.row || head.rows.back().at.row < keys.first) continue;  // wanted rows ascend
      query.read({head.batch, h, i}, arithmetic.u);
      for (std::size_t j = 0; j < count; ++j) {
        if (!keys.contains(head.rows[j].at.row)) continue;
        const Pair pair = probability(query, k[j], attention, arithmetic);
        if (values) {
          const double error = pair.p * pair.p_error;
          sums[j].add({pair.p, error, arithmetic.cast.of(pair.p, error)}, query.d_o);
        } else {
          Weight weight = gradient_of_score(query, pair, v[j], arithmetic);
          weight.error += pair.p * pair.slope * query.correction_bound;  // independent per query row
          sums[j].add(weight, query.q);
        }
      }
    }
  }
  for (std::size_t j = 0; j < count; ++j) {
    sums[j].judge(values ? 1.0 : attention.scale, arithmetic, {}, judged.subspan(head.rows[j].place * width, width));
  }
}

void judge_sinks(const Operands& operands, const AttentionExtents& e, std::span<const std::int64_t> wanted,
                 std::span<Expected> judged) {
  const double u = accumulator_roundoff(operands.call.math);
  QueryRow row(operands, e);
  for (std::size_t h = 0; h < wanted.size(); ++h) {
    const double sink = operands.input("sinks")[wanted[h]];
    ProductSum sum;
    double worst = 0.0, variance = 0.0;
    for (std::int64_t batch = 0; batch < e.b; ++batch) {
      for (std::int64_t i = 0; i < e.s; ++i) {
        row.read({batch, wanted[h], i}, u);
        const auto [p, p_error] = exponential(sink, row.lse, rounding(sink, row.lse, u));
        const double error = p * ((p_error + u) * std::fabs(row.correction) + row.correction_bound);
        sum.add(-p * row.correction);
        worst += error;
        variance += error * error / 3.0;
      }
    }
    judged[h] = {sum.value, std::min(worst, 6.0 * std::sqrt(variance)) + sum_error_bound(sum, u)};
  }
}

class AttentionBackwardDefinition : public DefinitionOf<attention_backward_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const AttentionExtents e = attention_extents(op);
    const double rows = static_cast<double>(e.b * e.hq) * static_cast<double>(e.s);
    return {rows * mean_keys(op) * static_cast<double>(6 * e.d + 4 * e.d_v), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const AttentionExtents e = attention_extents(op);
    const double keys = mean_keys(op), d = static_cast<double>(e.d), d_v = static_cast<double>(e.d_v);
    const auto queries = static_cast<double>(e.s);
    if (output == output_dq) {
      return {e.b * e.s * e.hq, e.d, keys * (16.0 * d + 4.0 * d_v),
              attention_landmarks(e.b, e.s, e.hq, query_landmarks(op), UnitOrder::row_then_head)};
    }
    if (output == output_dsinks) {
      return {e.hq, 1, 4.0 * static_cast<double>(e.b * e.d_v) * queries,
              e.hq > 1 ? std::vector<std::int64_t>{0, e.hq - 1} : std::vector<std::int64_t>{0}};
    }
    const bool of_k = output == output_dk;
    const double per_query = of_k ? 14.0 * d + 4.0 * d_v : 4.0 * d + 10.0 * d_v;
    return {e.b * e.t * e.hkv, of_k ? e.d : e.d_v,
            per_query * (queries / static_cast<double>(e.t)) * keys * static_cast<double>(e.hq / e.hkv),
            attention_landmarks(e.b, e.t, e.hkv, key_landmarks, UnitOrder::row_then_head)};
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const AttentionExtents e = attention_extents(op);
    const Attention& attention = op.call.attributes.as<Attention>();
    const std::string scale = number_text(std::fabs(attention.scale));
    // W: effect of the errors of p and ds on the sum C of K weighted rows, worst case or six sigma. D's error is common
    // to the keys of a query row, and independent between rows.
    const DType data = op.input("v").dtype;
    const std::string products = attention_products(op.call.math, data).formula("K");
    const std::string shift = bits_of(data) < 32 ? "|sum of casts| + " : "";
    const std::string sum = "min(W, " + shift + "6 sigma) + Rule G: " + products + " + 2 u |C|";
    const std::string cast = ", W = errors of ";
    const std::string rounding = " and its cast (" + power_text(probability_roundoff(op.call.math, data)) + ", as of " +
                                 power_text(smallest_normal(data)) + " at least)";
    if (output == output_dq) {
      return bound_text(
          scale + " (" + sum + " + T_D |sum p k|), " + key_count_text(attention, e) + cast + "ds" + rounding,
          op.call.math);
    }
    const std::string queries = "K <= " + std::to_string(e.hq / e.hkv * e.s);
    if (output == output_dsinks) {
      const std::string rows = std::to_string(e.b * e.s);
      return bound_text("min(W, 6 sigma) + Rule G: " + sum_error_text(e.b * e.s) + ", W = sum over " + rows +
                            " rows of p ((3 |sink| + 4 |lse| + 11) u |D| + T_D)",
                        op.call.math);
    }
    if (output == output_dv) return bound_text(sum + ", " + queries + cast + "p" + rounding, op.call.math);
    return bound_text(scale + " (" + sum + "), " + queries + cast + "ds" + rounding, op.call.math);
  }

  std::string unseen(const CallSpecs& op) const override {
    if (bits_of(op.input("v").dtype) == 32) return {};
    return "a log-sum-exp off by " + power_text(probability_roundoff(op.call.math, op.input("v").dtype) / 4.0) +
           ": casting probabilities causes larger errors";
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const AttentionExtents e = attention_extents(operands);
    if (output == output_dsinks) return judge_sinks(operands, e, wanted, judged);
    const bool queries = output == output_dq;
    std::vector<HeadRows> heads = by_kv_head(wanted, queries ? e.s : e.t, queries ? e.hq : e.hkv,
                                             queries ? e.hq / e.hkv : 1, UnitOrder::row_then_head);
    if (operands.sparse && queries) heads = each_by_itself(std::move(heads));
    for (const HeadRows& head : heads) {
      if (queries) {
        judge_queries(operands, e, head, judged);
      } else {
        judge_keys(operands, e, head, output == output_dv, judged);
      }
    }
    if (operands.sparse) allow_for_omitted_terms(judged, queries ? e.t : e.s * (e.hq / e.hkv));
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    std::vector<RevealingData> all = one_key_data(op);
    std::ranges::move(scores_far_from_zero(op), std::back_inserter(all));
    return all;
  }
};

}  // namespace

Definitions attention_backward_definitions() { return definitions_of<AttentionBackwardDefinition>(); }

}  // namespace gpubench
