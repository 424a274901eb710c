// Forward attention, judged by query row. The bound: the effect of the errors of scores and probability casts on the
// weighted mean of values, plus Rule G of the mean.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "harness/core/hash.h"
#include "reference/ops/attention_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

class AttentionWeights {
 public:
  /// `sink`: logit of the row's head, if any. `exact_sums`: rows with all scores 0 and a power of two of keys have
  /// exact probabilities.
  void compute(std::span<const double> q, const HeadMatrix& keys, KeyRange seen, const std::optional<double>& sink,
               const Attention& attention, double u, const ContractionRule& products, bool exact_sums) {
    p.resize(static_cast<std::size_t>(seen.end - seen.first));
    delta.resize(p.size());
    if (p.empty() && !sink) {
      sink_p = sink_delta = 0.0;
      lse = {-HUGE_VAL, 0.0};
      return;
    }
    double largest = sink.value_or(-HUGE_VAL);
    for (std::size_t j = 0; j < p.size(); ++j) {
      const Score score = score_of(q, keys.row(seen.first + static_cast<std::int64_t>(j)), attention, products, u);
      p[j] = score.value;
      delta[j] = score.bound;
      largest = std::max(largest, score.value);
    }
    double sum = 0.0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      const Exponential weight = exponential(p[j], largest, delta[j] + rounding(p[j], largest, u));
      p[j] = weight.value;
      delta[j] = weight.error;
      sum += p[j];
    }
    const Exponential of_sink = sink ? exponential(*sink, largest, rounding(*sink, largest, u)) : Exponential{};
    sum += of_sink.value;
    sink_p = of_sink.value / sum;
    sink_delta = of_sink.error;
    double shift = sink_p * sink_delta;
    for (std::size_t j = 0; j < p.size(); ++j) {
      p[j] /= sum;
      shift += p[j] * delta[j];
    }
    const double value = largest + std::log(sum);
    exact = exact_sums && !sink && std::has_single_bit(p.size()) &&
            std::ranges::all_of(p, [this](double one) { return one == p.front(); }) && largest == 0.0;
    if (exact) {
      lse = {value, u * (2.0 + 2.0 * std::fabs(value))};
      return;
    }
    const double terms = static_cast<double>(p.size()) + (sink ? 1.0 : 0.0);
    lse = {value, shift + u * (std::sqrt(terms) + 2.0 + 2.0 * std::fabs(value))};
  }

  std::vector<double> p, delta;
  double sink_p = 0.0, sink_delta = 0.0;
  bool exact = false;  ///< p is exact, as are sums of small whole values
  Expected lse;

 private:
  // One rounding each for scale, maximum and exponent.
  static double rounding(double score, double largest, double u) {
    return u * (3.0 * std::fabs(score) + 3.0 * std::fabs(largest) + 4.0);
  }
};

// o = p v and its bound, per element of the row, with e the effect of casting p:
//   W = sum p |v - o| delta + sum e |v|, the worst case;
//   sigma^2 = sum (p (v - o) delta)^2 / 3 + sum var(e) v^2, for independent errors.
// A sink is a key with v = 0.
class WeightedMean {
 public:
  explicit WeightedMean(std::int64_t d) : o_(static_cast<std::size_t>(d)), worst_(o_.size()), variance_(o_.size()) {}

  void judge(const AttentionWeights& row, const HeadMatrix& values, KeyRange seen, double u, const FactorCast& cast,
             const ContractionRule& products, std::span<Expected> judged) {
    if (row.p.empty()) return std::fill(judged.begin(), judged.end(), Expected{});
    std::fill(o_.begin(), o_.end(), ProductSum{});
    for (std::vector<double>* sum : {&worst_, &variance_}) std::fill(sum->begin(), sum->end(), 0.0);
    for (std::size_t j = 0; j < row.p.size(); ++j) {
      const std::span<const double> v = values.row(seen.first + static_cast<std::int64_t>(j));
      for (std::size_t e = 0; e < v.size(); ++e) o_[e].add(row.p[j] * v[e]);
    }
    for (std::size_t j = 0; j < row.p.size(); ++j)
      add_errors(row.p[j], row.delta[j], cast.of(row.p[j], row.p[j] * row.delta[j]),
                 values.row(seen.first + static_cast<std::int64_t>(j)));
    if (row.sink_p > 0.0) add_errors(row.sink_p, row.sink_delta, {}, std::vector<double>(o_.size()));
    const double root = std::sqrt(static_cast<double>(row.p.size()));
    for (std::size_t e = 0; e < o_.size(); ++e) {
      const double o = o_[e].value;
      if (row.exact) {
        judged[e] = {o, 2.0 * u * std::fabs(o)};  // a quotient, or a reciprocal and a product
        continue;
      }
      const double norm = std::sqrt(o_[e].squares);
      double bound = std::min(worst_[e], 6.0 * std::sqrt(variance_[e]));
      bound += products.bound(o_[e]);
      // Also covers probabilities as exp(x - lse), with lse rounded once for all keys.
      bound += u * std::fabs(o) * (2.0 + 2.0 * root + 2.0 * std::fabs(row.lse.value)) + 4.0 * u * norm;
      judged[e] = {o, bound};
    }
  }

 private:
  void add_errors(double p, double delta, const CastError& cast, std::span<const double> v) {
    for (std::size_t e = 0; e < v.size(); ++e) {
      const double shift = p * std::fabs(v[e] - o_[e].value) * delta;
      worst_[e] += shift + cast.most * std::fabs(v[e]);
      variance_[e] += shift * shift / 3.0 + cast.variance * v[e] * v[e];
    }
  }

  std::vector<ProductSum> o_;
  std::vector<double> worst_, variance_;
};

class AttentionForwardDefinition : public DefinitionOf<attention_forward_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const AttentionExtents e = attention_extents(op);
    const double rows = static_cast<double>(e.b * e.hq) * static_cast<double>(e.s);
    return {2.0 * rows * mean_keys(op) * static_cast<double>(e.d + e.d_v), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const AttentionExtents e = attention_extents(op);
    const double keys = mean_keys(op), d = static_cast<double>(e.d), d_v = static_cast<double>(e.d_v);
    const std::int64_t rows = e.b * e.s * e.hq;
    const std::vector<std::int64_t> landmarks = query_landmarks(op);
    if (output == 0) {
      return {rows, e.d_v, keys * (4.0 * d + 10.0 * d_v),
              attention_landmarks(e.b, e.s, e.hq, landmarks, UnitOrder::row_then_head)};
    }
    return {rows, 1, 4.0 * keys * d, attention_landmarks(e.b, e.s, e.hq, landmarks, UnitOrder::head_then_row)};
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const AttentionExtents e = attention_extents(op);
    const Attention& attention = op.call.attributes.as<Attention>();
    // s: a score; m: the largest of its row; K: keys of the row, including a sink, whose v is 0.
    const ContractionRule products = attention_products(op.call.math, op.input("v").dtype);
    const std::string delta = score_bound_text(attention, e.d, products) + " + u (3|s| + 3|m| + 4)";
    const std::string keys = key_count_text(attention, e);
    if (output == 1) {
      return bound_text("sum p delta + u (sqrt(K) + 2 + 2|lse|), " + keys + ", delta = " + delta, op.call.math);
    }
    const std::string cast = power_text(probability_roundoff(op.call.math, op.input("v").dtype));
    const std::string least = power_text(smallest_normal(op.input("v").dtype));
    const std::string worst = "sum p |v - o| delta + " + cast + " max(p, " + least + ") |v|";
    const std::string mean =
        " + Rule G: " + products.formula("K") + " + u (2 + 2 sqrt(K) + 2|lse|) |C| + 4 u Q, C = o, ";
    return bound_text("min(" + worst + ", 6 sigma of it)" + mean + keys + ", delta = " + delta, op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const AttentionExtents e = attention_extents(operands);
    const UnitOrder order = output == 0 ? UnitOrder::row_then_head : UnitOrder::head_then_row;
    std::vector<HeadRows> heads = by_kv_head(wanted, e.s, e.hq, e.hq / e.hkv, order);
    if (operands.sparse) heads = each_by_itself(std::move(heads));
    for (const HeadRows& head : heads) evaluate_head(operands, e, head, output == 0, judged);
    if (operands.sparse) allow_for_omitted_terms(judged, e.t);
  }

  // "Equal": all scores are 0, values are odd numbers, and o is 1/n of a whole number for n keys.
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    const auto input = [&](std::string_view name) {
      return *position_of(op.call.kind.inputs, op.call.attributes, name);
    };
    std::vector<RevealingData> all{
        {"equal scores",
         {{input("q"), [](std::int64_t) { return 0.0; }},
          {input("v"), [](std::int64_t e) { return odd_number(mix(static_cast<std::uint64_t>(e))); }}},
         true}};
    std::ranges::move(one_key_data(op), std::back_inserter(all));
    std::ranges::move(scores_far_from_zero(op), std::back_inserter(all));
    return all;
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override;

 private:
  static void evaluate_head(const Operands& operands, const AttentionExtents& e, const HeadRows& head, bool means,
                            std::span<Expected> judged) {
    const Attention& attention = operands.call.attributes.as<Attention>();
    const Math& math = operands.call.math;
    const double u = accumulator_roundoff(math);
    const DType data = operands.input("v").dtype();
    const ContractionRule products = attention_products(math, data);
    const SeenKeys seen(operands, e, head.batch);
    const KeyRange keys = seen.of(head.rows);
    const HeadMatrix k(operands.input("k"), head.batch, head.kv_head, keys);
    const HeadMatrix v(operands.input("v"), head.batch, head.kv_head, means ? keys : KeyRange{});
    const TensorView& queries = operands.input("q");
    std::vector<double> q(static_cast<std::size_t>(e.d));
    const auto d_v = static_cast<std::size_t>(e.d_v);
    AttentionWeights softmax;
    WeightedMean mean(e.d_v);
    for (const WantedRow& wanted : head.rows) {
      queries.read({wanted.at.batch, wanted.at.row, wanted.at.head, 0}, 3, q);
      std::optional<double> sink;
      if (attention.sinks) sink = operands.input("sinks")[wanted.at.head];
      const KeyRange of_row = seen.of(wanted.at.row);
      softmax.compute(q, k, of_row, sink, attention, u, products, operands.exact_sums);
      if (means) {
        mean.judge(softmax, v, of_row, u, FactorCast(math, data), products, judged.subspan(wanted.place * d_v, d_v));
      } else {
        judged[wanted.place] = softmax.lse;
      }
    }
  }
};

void AttentionForwardDefinition::derivative(Program& program, const OpCall& call, GradientTape& tape) const {
  const ValueId q = call.input("q"), k = call.input("k"), v = call.input("v");
  const ValueId o = call.output("o"), lse = call.output("lse");
  if (tape.of(lse) || tape.is_loss(lse)) {
    throw ProgramError("attention_forward: a gradient flows into the log-sum-exp of op '" + call.label +
                       "'; expected it to be read by its backward only");
  }
  const auto d_o = incoming_gradient(call, tape, o);
  if (!d_o) return;
  AttentionOptions options;
  AttentionGradients into;
  std::vector<std::pair<ValueId, std::optional<ValueId> AttentionGradients::*>> places{
      {q, &AttentionGradients::dq}, {k, &AttentionGradients::dk}, {v, &AttentionGradients::dv}};
  if (call.attributes.has("sinks")) {
    options.sinks = call.input("sinks");
    places.emplace_back(*options.sinks, &AttentionGradients::dsinks);
  }
  if (call.attributes.has("documents")) options.documents = call.input("documents");
  for (const auto& [input, place] : places) {
    if (tape.wanted(input)) into.*place = tape.destination(input);
  }
  attention_backward(program, call.attributes.as<Attention>(), call.math, tape.label(call, "backward"), *d_o, q, k, v,
                     o, lse, options, into);
  for (const auto& [input, place] : places) {
    if (tape.wanted(input)) tape.contribute(input, *(into.*place));
  }
}

}  // namespace

Definitions attention_definitions() { return definitions_of<AttentionForwardDefinition>(); }

namespace {

AttentionRow locate(std::int64_t unit, std::int64_t s, std::int64_t heads, UnitOrder order) {
  const std::int64_t batch = unit / (s * heads);
  if (order == UnitOrder::row_then_head) return {batch, unit % heads, unit / heads % s};
  return {batch, unit / s % heads, unit % s};
}

}  // namespace

std::vector<HeadRows> by_kv_head(std::span<const std::int64_t> wanted, std::int64_t s, std::int64_t heads,
                                 std::int64_t group, UnitOrder order) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<WantedRow>> rows;
  for (std::size_t place = 0; place < wanted.size(); ++place) {
    const AttentionRow at = locate(wanted[place], s, heads, order);
    rows[{at.batch, at.head / group}].push_back({at, place});
  }
  std::vector<HeadRows> result;
  result.reserve(rows.size());
  for (auto& [head, of_head] : rows) result.push_back({head.first, head.second, std::move(of_head)});
  return result;
}

std::vector<HeadRows> each_by_itself(std::vector<HeadRows> heads) {
  std::vector<HeadRows> all;
  for (const HeadRows& head : heads) {
    for (const WantedRow& row : head.rows) all.push_back({head.batch, head.kv_head, {row}});
  }
  return all;
}

SeenKeys::SeenKeys(const Operands& operands, const AttentionExtents& e, std::int64_t batch)
    : attention_(operands.call.attributes.as<Attention>()), extents_(e), batch_(batch), sparse_(operands.sparse) {
  if (!attention_.documents) return;
  const TensorView& documents = operands.input("documents");
  boundaries_.resize(static_cast<std::size_t>(documents.shape()[1]));
  documents.read({batch, 0}, 1, boundaries_);
  std::sort(boundaries_.begin(), boundaries_.end());
}

KeyRange SeenKeys::of(std::int64_t query) const {
  if (sparse_) {
    const std::int64_t key = one_key(attention_, extents_, batch_, query);
    return key < 0 ? KeyRange{} : KeyRange{key, key + 1};
  }
  KeyRange seen = keys_before(attention_, extents_, query);
  const auto next = std::upper_bound(boundaries_.begin(), boundaries_.end(), static_cast<double>(query));
  if (next != boundaries_.begin()) seen.first = std::max(seen.first, static_cast<std::int64_t>(*(next - 1)));
  if (next != boundaries_.end()) seen.end = std::min(seen.end, static_cast<std::int64_t>(*next));
  return seen;
}

KeyRange SeenKeys::of(std::span<const WantedRow> rows) const {
  KeyRange all{extents_.t, 0};
  for (const WantedRow& wanted : rows) {
    const KeyRange seen = of(wanted.at.row);
    all = {std::min(all.first, seen.first), std::max(all.end, seen.end)};
  }
  return all;
}

std::string key_count_text(const Attention& attention, const AttentionExtents& e) {
  const std::int64_t most = attention.window > 0 ? std::min(attention.window, e.t) : e.t;
  return (attention.causal || attention.documents ? "K <= " : "K = ") + std::to_string(most);
}

std::string score_bound_text(const Attention& attention, std::int64_t d, const ContractionRule& products) {
  return number_text(std::fabs(attention.scale)) + " (" + products.formula(d) + ")" +
         (attention.softcap > 0.0 ? " + 12 u |s|" : "");
}

double mean_keys(const CallSpecs& op) {
  const AttentionExtents e = attention_extents(op);
  const Attention& attention = op.call.attributes.as<Attention>();
  double queries = static_cast<double>(e.s), keys = static_cast<double>(e.t);
  if (attention.documents) {
    const std::int64_t documents = std::max<std::int64_t>(1, op.input("documents").shape[1] - 1);
    queries = keys = queries / static_cast<double>(documents);
  }
  if (!attention.causal) return keys;
  const double seeing = std::min(queries, keys);  // queries that see a key: before + 1, before + 2, ... of them
  const double before = keys - seeing;
  const double window = attention.window == 0 ? keys : static_cast<double>(attention.window);
  const double growing = std::clamp(window - before, 0.0, seeing);  // those that see fewer than the window
  return (growing * (before + (growing + 1.0) / 2.0) + (seeing - growing) * window) / queries;
}

std::vector<std::int64_t> query_landmarks(const CallSpecs& op) {
  const Attention& attention = op.call.attributes.as<Attention>();
  const AttentionExtents e = attention_extents(op);
  std::vector<std::int64_t> rows{0, 1, 2, 3, 63, 64, 127, 128, -1};
  if (attention.causal && e.s > e.t) rows.insert(rows.end(), {e.s - e.t - 1, e.s - e.t});
  if (attention.window > 0) rows.insert(rows.end(), {attention.window - 1, attention.window});
  return rows;
}

std::vector<std::int64_t> attention_landmarks(std::int64_t b, std::int64_t s, std::int64_t heads,
                                              std::span<const std::int64_t> rows, UnitOrder order) {
  std::set<std::int64_t> units;
  const auto insert = [&](std::int64_t batch, std::int64_t head, std::int64_t row) {
    const bool rows_first = order == UnitOrder::row_then_head;
    units.insert(rows_first ? (batch * s + row) * heads + head : (batch * heads + head) * s + row);
  };
  for (const std::int64_t wanted : rows) {
    const std::int64_t row = wanted < 0 ? s + wanted : wanted;
    if (row < 0 || row >= s) continue;
    insert(0, 0, row);
    insert(b - 1, heads - 1, row);
  }
  return {units.begin(), units.end()};
}

}  // namespace gpubench
