// Bounds: terms are positive, so relative errors do not grow; exp is within three ulps (OpenCL's table); the exponent
// x - m is rounded relative to |x - m|. Smoothing and z-loss add their operations to first order. A label outside the
// classes has no correct result: its loss is NaN.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/definition.h"
#include "reference/ops/range_data.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::int64_t label_of(const Operands& operands, std::int64_t row) {
  return static_cast<std::int64_t>(operands.inputs[1][row]);
}

const CrossEntropy& attributes_of(const OpCall& call) { return call.attributes.as<CrossEntropy>(); }

// n, the divisor of the mean.
double counted_rows(const Operands& operands) {
  const CrossEntropy& attributes = attributes_of(operands.call);
  if (attributes.given_count) return operands.input("count")[0];
  const TensorView& labels = Named<TensorView>(operands.call, operands.inputs)["labels"];
  if (!attributes.ignores) return static_cast<double>(labels.shape()[0]);
  std::int64_t count = 0;
  for_each_chunk(labels, [&](std::int64_t, std::span<const double> chunk) {
    for (const double label : chunk) count += attributes.counts(static_cast<std::int64_t>(label)) ? 1 : 0;
  });
  return static_cast<double>(count);
}

bool is_mean_of_no_rows(const Operands& operands) {
  return !attributes_of(operands.call).given_count && counted_rows(operands) == 0.0;
}

bool is_plain(const CrossEntropy& attributes) {
  return attributes.label_smoothing == 0.0 && attributes.z_loss == 0.0 && !attributes.scaled;
}

// m: the largest logit of the row; p: its probabilities.
std::string log_sum_exp_rule(std::int64_t classes) {
  return "u (2 sum p (m - x) + 2 sqrt(" + std::to_string(classes) + ") + 6 + 2|lse - m| + 3|lse|)";
}

// Output 1, the log-sum-exp of a row. With D = m - x >= 0 and w = sum p 2uD,
// T = w + u (2 sqrt(N) + 6 + 2|ln sum| + 3|lse|), whose last term allows for maximum and sum in base 2.
Expected judge_log_sum_exp(std::span<const double> x, double u) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0.0;
  double weighted = 0.0;
  for (const double logit : x) {
    const double e = std::exp(logit - largest);
    sum += e;
    if (e > 0.0) weighted += e * (largest - logit);
  }
  const double log_sum = std::log(sum);
  const double lse = largest + log_sum;
  const double terms = static_cast<double>(x.size());
  const double bound =
      2.0 * u * weighted / sum + u * (2.0 * std::sqrt(terms) + 6.0 + 2.0 * std::fabs(log_sum) + 3.0 * std::fabs(lse));
  return {lse, bound};
}

Expected judge_z_loss(double z, const Expected& lse, double u) {
  if (z == 0.0) return {0.0, 0.0};
  const double square = z * lse.value * lse.value;
  return {square, 2.0 * std::fabs(z * lse.value) * lse.bound + u * (4.0 * std::fabs(square) + std::fabs(lse.value))};
}

// Loss of a row that is not ignored: T(lse) + 2u|x_target| without further terms.
Expected judge_row_loss(const CrossEntropy& attributes, std::span<const double> x, std::int64_t label, double u) {
  const double s = attributes.label_smoothing, z = attributes.z_loss;
  const Expected lse = judge_log_sum_exp(x, u);
  const bool valid = label >= 0 && label < static_cast<std::int64_t>(x.size());
  const double target = (1.0 - s) * (valid ? x[static_cast<std::size_t>(label)] : nan);
  const Expected square = judge_z_loss(z, lse, u);
  Expected loss{lse.value - target + square.value, lse.bound + 2.0 * u * std::fabs(target) + square.bound};
  if (s != 0.0) {
    ProductSum logits;
    for (const double logit : x) logits.add(logit);
    const double share = s / static_cast<double>(x.size());
    loss.value -= share * logits.value;
    loss.bound += share * sum_error_bound(logits, u) +
                  u * (4.0 * share * std::fabs(logits.value) + std::fabs(target) + std::fabs(lse.value));
  }
  return loss;
}

// Mean of judge(row) over the rows that are not ignored, with Rule G for the sum.
template <class Judge>
Expected judge_mean_of(const Operands& operands, const Judge& judge) {
  const TensorView& labels = Named<TensorView>(operands.call, operands.inputs)["labels"];
  const double u = accumulator_roundoff(operands.call.math);
  ProductSum losses;
  double bounds = 0.0;
  for (std::int64_t row = 0; row < labels.shape()[0]; ++row) {
    if (!attributes_of(operands.call).counts(static_cast<std::int64_t>(labels[row]))) continue;
    const Expected loss = judge(row);
    losses.add(loss.value);
    bounds += loss.bound;
  }
  const double count = counted_rows(operands);
  const double mean = losses.value / count;
  const double of_sum = operands.exact_sums ? 0.0 : sum_error_bound(losses, u);
  return {mean, (bounds + of_sum) / count + u * std::fabs(mean)};
}

Expected judge_mean_loss(const Operands& operands) {
  std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
  return judge_mean_of(operands, [&](std::int64_t row) {
    operands.inputs[0].read(row * static_cast<std::int64_t>(x.size()), x);
    return judge_row_loss(attributes_of(operands.call), x, label_of(operands, row),
                          accumulator_roundoff(operands.call.math));
  });
}

// "n", or the number of rows if none are ignored.
std::string counted_text(const OpCall& call, const Shape& logits) {
  return attributes_of(call).ignores ? "n" : std::to_string(logits[0]);
}

std::string mean_loss_bound(const Shape& logits, const OpCall& call) {
  const CrossEntropy& attributes = attributes_of(call);
  const std::string s = number_text(attributes.label_smoothing), z = number_text(attributes.z_loss);
  std::string row = "T = 2 u |x_label| + " + log_sum_exp_rule(logits[1]);
  if (attributes.label_smoothing != 0.0 || attributes.z_loss != 0.0) {
    row = "T = 2 u |(1 - " + s + ") x_label| + T(lse)";
    if (attributes.z_loss != 0.0) row += " (1 + 2|" + z + " lse|) + u (4|" + z + " lse^2| + |lse|)";
    if (attributes.label_smoothing != 0.0) {
      row += " + " + s + "/" + std::to_string(logits[1]) + " (" + sum_error_text(logits[1]) +
             " + 4 u |sum x|) + u (|x_label| + |lse|)";
    }
    row += ", T(lse) = " + log_sum_exp_rule(logits[1]);
  }
  const std::string count = counted_text(call, logits);
  return bound_text("(sum T + " + sum_error_text(logits[0]) + ") / " + count + " + u |loss|, " + row, call.math);
}

std::string log_sum_exp_bound(const Shape& logits, const Math& math) {
  return bound_text(log_sum_exp_rule(logits[1]), math);
}

CheckUnits loss_units(const Shape& logits, const Shape& output, int index) {
  const double row = 20.0 * static_cast<double>(logits[1]);  // an exp counts as sixteen
  return element_units(output, index == 0 ? row * static_cast<double>(logits[0]) : row);
}

struct SoftmaxRow {
  CrossEntropy attributes;
  double lse = 0.0;        ///< NaN if the label is outside the classes
  double lse_error = 0.0;  ///< error of the lse that the op used; 0 if it is an input
  std::int64_t label = -1;
  double classes = 1.0;
  double rows = 1.0;  ///< not ignored
  double dloss = 1.0;
  double u = 0.0;
  double tiny = 0.0;  ///< smallest normal number of the arithmetic; smaller exps may be flushed
};

SoftmaxRow softmax_rows(const Operands& operands) {
  const Named<TensorView> in(operands.call, operands.inputs);
  return {.attributes = attributes_of(operands.call),
          .classes = static_cast<double>(attributes_of(operands.call).all_classes(operands.inputs[0].shape()[1])),
          .rows = counted_rows(operands),
          .dloss = in.find("dloss") == nullptr ? 1.0 : in["dloss"][0],
          .u = accumulator_roundoff(operands.call.math),
          .tiny = smallest_normal(operands.call.math.accumulate)};
}

// (exp(x - lse) - 1[label]) / rows for one class, without further terms. Errors of p: one difference and one exp,
// 2|x - lse| + 6 ulps, and the factor exp(error of lse). Then the difference with the label, and the product with
// 1 / rows.
Expected judge_gradient(const SoftmaxRow& row, double x, std::int64_t column) {
  const CrossEntropy& attributes = row.attributes;
  if (!attributes.counts(row.label)) return {0.0, 0.0};
  const bool plain = is_plain(attributes);
  const double exponent = x - row.lse;
  const double p = std::exp(exponent);
  const double slope = 1.0 + 2.0 * attributes.z_loss * row.lse;
  const double own = attributes.first + column == row.label ? 1.0 - attributes.label_smoothing : 0.0;
  const double target = own + attributes.label_smoothing / row.classes;
  const double value = (p * slope - target) * row.dloss / row.rows;
  const double of_lse = std::expm1(row.lse_error);
  const double relative = of_lse + std::exp(row.lse_error) * row.u * (2.0 * std::fabs(exponent) + 6.0);
  const double p_bound =
      p > 0.0
          ? p * (relative * std::fabs(slope) + 2.0 * std::fabs(attributes.z_loss) * row.lse_error * (1.0 + relative))
          : 0.0;
  const double further = plain ? 0.0 : 4.0 * row.u * (std::fabs(p * slope) + target);
  const double scale = std::fabs(row.dloss) / row.rows;
  const double bound =
      (p_bound + 2.0 * row.u * std::max(std::fabs(p * slope), target) + further) * scale + row.u * std::fabs(value);
  return {value, bound + row.tiny * std::max(1.0, scale * std::fabs(slope))};
}

void refuse_gradients(const OpCall& call, const GradientTape& tape, std::span<const ValueId> outputs,
                      std::string_view expected) {
  if (std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) { return tape.of(output); })) {
    throw ProgramError(std::string(call.kind.name) + ": op '" + call.label +
                       "' has a gradient flowing into its outputs; expected " + std::string(expected));
  }
}

void judge_loss(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) {
  if (output == 0) {
    std::fill(judged.begin(), judged.end(), judge_mean_loss(operands));
    return;
  }
  std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    operands.inputs[0].read(wanted[i] * static_cast<std::int64_t>(x.size()), x);
    judged[i] = judge_log_sum_exp(x, accumulator_roundoff(operands.call.math));
  }
}

// One logit per row (in the first row the last) exceeds all others so far that these add nothing to the sum of
// exponentials: lse is that logit, and losses are whole numbers. Their sum is exact, and so is the mean of a power of
// two of rows. Every other row is far below 0 and the rest far above, so that exponentials need the maximum.
constexpr double far = 112.0, less_by = 136.0;  // exp(112) overflows in f32; exp(-112) and exp(-136) are 0
constexpr std::int64_t kinds_of_others = 8;
double largest_of_row(std::int64_t row) { return row % 2 == 0 ? far : -far; }
double other_logit(std::int64_t row, std::int64_t which) {
  return largest_of_row(row) - less_by - static_cast<double>(which % kinds_of_others);
}

std::vector<RevealingData> widely_spaced_logits(const CallSpecs& op) {
  const std::int64_t rows = op.inputs[0].shape[0], classes = op.inputs[0].shape[1];
  const auto logit = [classes](std::int64_t element) {
    const std::int64_t row = element / classes, from_the_end = row % classes;
    const std::int64_t column = element % classes;
    return column == classes - 1 - from_the_end ? largest_of_row(row) : other_logit(row, column);
  };
  const bool exact = attributes_of(op.call) == CrossEntropy{} &&
                     std::has_single_bit(static_cast<std::uint64_t>(rows)) &&
                     static_cast<double>(rows) * (less_by + kinds_of_others) < 1.0 / accumulator_roundoff(op.call.math);
  return {{"one class far above the others", {{0, logit}}, exact}};
}

std::string unseen_mean_of(std::int64_t count, const Math& math) {
  const auto rows = static_cast<double>(count);
  return "a mean loss off by " + number_text(2.0 * accumulator_roundoff(math) * std::sqrt(rows)) +
         " of its value, as a sum of " + number_text(rows) + " in " + std::string(name(math.accumulate)) + " may be";
}

// Smaller errors of the mean stay unseen, unless widely_spaced_logits() makes the sum exact.
std::string unseen_mean(const CallSpecs& op) {
  return widely_spaced_logits(op).front().exact_sums ? std::string()
                                                     : unseen_mean_of(op.inputs[0].shape[0], op.call.math);
}

double smoothing_flop(const OpCall& call) { return attributes_of(call).label_smoothing == 0.0 ? 0.0 : 1.0; }

template <const OpKind& op_kind>
class LossDefinition : public DefinitionOf<op_kind> {
 public:
  bool nan_is_correct(const Operands& operands, int output) const override {
    return output == 0 && is_mean_of_no_rows(operands);
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override { return widely_spaced_logits(op); }
  std::string unseen(const CallSpecs& op) const override { return unseen_mean(op); }
};

class CrossEntropyForwardDefinition : public LossDefinition<cross_entropy_forward_kind> {
 public:
  // Per logit: maximum, difference, exp, sum; label smoothing: a sum of logits.
  Cost cost(const CallSpecs& op) const override {
    return {(4.0 + smoothing_flop(op.call)) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return loss_units(op.inputs[0].shape, op.output(output).shape, output);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    return output == 0 ? mean_loss_bound(op.inputs[0].shape, op.call)
                       : log_sum_exp_bound(op.inputs[0].shape, op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    judge_loss(operands, output, wanted, judged);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const ValueId logits = call.inputs[0];
    refuse_gradients(call, tape, std::span(call.outputs).subspan(1), "one into its loss only");
    const std::optional<ValueId> dloss = tape.of(call.outputs[0]);
    if ((!dloss && !tape.is_loss(call.outputs[0])) || !tape.wanted(logits)) return;
    const std::optional<ValueId> count =
        attributes_of(call).given_count ? std::optional(call.input("count")) : std::nullopt;
    tape.contribute(logits,
                    cross_entropy_backward(program, call.math, tape.label(call, "backward"), logits, call.inputs[1],
                                           call.outputs[1], false, attributes_of(call), dloss, count));
  }
};

std::string gradient_rule(const OpCall& call, const Shape& logits, const std::string& of_p) {
  const CrossEntropy& attributes = attributes_of(call);
  const std::string s = number_text(attributes.label_smoothing), z = number_text(attributes.z_loss);
  const std::string tiny = flushed_text(call.math);
  const std::string count = counted_text(call, logits);
  if (is_plain(attributes)) {
    return bound_text("(p " + of_p + " + 2 u max(p, 1 if label)) / " + count + " + u |dx| + " + tiny, call.math);
  }
  return bound_text("(|k| p " + of_p + " + |" + z + "| p T(lse) + u (2 max(|k| p, t) + 4|k| p + 4 t)) |dloss| / " +
                        count + " + u |dx| + " + tiny + " max(1, |k dloss| / " + count + "), k = 1 + 2 " + z +
                        " lse, t = " + s + "/" + std::to_string(attributes.all_classes(logits[1])) + " and 1 - " + s +
                        " more if label",
                    call.math);
}

class CrossEntropyBackwardDefinition : public DefinitionOf<cross_entropy_backward_kind> {
 public:
  // Per logit: difference, exp, product with 1 / rows; label smoothing: a difference.
  Cost cost(const CallSpecs& op) const override {
    return {(3.0 + smoothing_flop(op.call)) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 20.0); }

  std::string bound(const CallSpecs& op, int) const override {
    return gradient_rule(op.call, op.inputs[0].shape, "u (2|x - lse| + 6)");
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& lse = operands.inputs[2];
    const std::int64_t classes = operands.inputs[0].shape()[1];
    std::int64_t index = -1;
    SoftmaxRow row = softmax_rows(operands);
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t element, const auto& in) {
      if (element / classes != index) {
        index = element / classes;
        row.label = label_of(operands, index);
        row.lse = row.attributes.is_class(row.label, classes) ? lse[index] : nan;
      }
      return judge_gradient(row, in[0], element % classes);
    });
  }
};

// The lse inside the gradient may differ from the stored one: it is within T(lse) and one rounding of the exact one.
// Gradients are judged by row.
class CrossEntropyForwardBackwardDefinition : public LossDefinition<cross_entropy_forward_backward_kind> {
 public:
  // FLOP of both ops; their bytes, reading logits, labels and lse once.
  Cost cost(const CallSpecs& op) const override {
    return {(7.0 + 2.0 * smoothing_flop(op.call)) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const Shape& logits = op.inputs[0].shape;
    if (output < 2) return loss_units(logits, op.output(output).shape, output);
    return {logits[0], logits[1], 40.0 * static_cast<double>(logits[1]), {0, logits[0] - 1}};
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Shape& logits = op.inputs[0].shape;
    if (output == 0) return mean_loss_bound(logits, op.call);
    if (output == 1) return log_sum_exp_bound(logits, op.call.math);
    const std::string rounding = power_text(unit_roundoff(op.outputs[1].dtype)) + " |lse|";
    return gradient_rule(op.call, logits, "(e^(T(lse) + " + rounding + ") (1 + u (2|x - lse| + 6)) - 1)");
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output < 2) {
      judge_loss(operands, output, wanted, judged);
      return;
    }
    const std::int64_t classes = operands.inputs[0].shape()[1];
    std::vector<double> x(static_cast<std::size_t>(classes));
    SoftmaxRow row = softmax_rows(operands);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * classes, x);
      row.label = label_of(operands, wanted[i]);
      const Expected lse = judge_log_sum_exp(x, row.u);
      row.lse = row.attributes.is_class(row.label, classes) ? lse.value : nan;
      row.lse_error = lse.bound + unit_roundoff(operands.outputs[1].dtype) * std::fabs(lse.value);
      for (std::size_t j = 0; j < x.size(); ++j) {
        judged[i * x.size() + j] = judge_gradient(row, x[j], static_cast<std::int64_t>(j));
      }
    }
  }

  // The forward computed the gradient.
  void derivative(Program&, const OpCall& call, GradientTape& tape) const override {
    refuse_gradients(call, tape, call.outputs, "its loss to be the seed");
    if (!tape.is_loss(call.outputs[0]) || !tape.wanted(call.inputs[0])) return;
    tape.contribute(call.inputs[0], call.outputs[2]);
  }
};

// The lse of a part of the classes, and its score, which combine subtracts: a logit; with smoothed labels two products
// and a sum.
class CrossEntropyPartialDefinition : public DefinitionOf<cross_entropy_partial_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {(4.0 + smoothing_flop(op.call)) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return loss_units(op.inputs[0].shape, op.output(output).shape, 1);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == 0) return log_sum_exp_bound(op.inputs[0].shape, op.call.math);
    const CrossEntropy& attributes = attributes_of(op.call);
    if (attributes.label_smoothing == 0.0) return std::string(exact_bound);
    const std::int64_t here = op.inputs[0].shape[1];
    return bound_text(number_text(attributes.label_smoothing) + "/" + std::to_string(attributes.all_classes(here)) +
                          " (" + sum_error_text(here) + " + 4 u |sum x|) + 4 u |x_label|",
                      op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * static_cast<std::int64_t>(x.size()), x);
      judged[i] = output == 0 ? judge_log_sum_exp(x, u)
                              : judge_score(attributes_of(operands.call), x, label_of(operands, wanted[i]), u);
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return rows_far_from_zero(op.inputs[0]);
  }

 private:
  static Expected judge_score(const CrossEntropy& attributes, std::span<const double> x, std::int64_t label, double u) {
    const auto here = static_cast<std::int64_t>(x.size());
    if (!attributes.counts(label)) return {0.0, 0.0};
    if (!attributes.is_class(label, here)) return {nan, 0.0};
    const double s = attributes.label_smoothing;
    const std::int64_t column = label - attributes.first;
    const double target = column >= 0 && column < here ? (1.0 - s) * x[static_cast<std::size_t>(column)] : 0.0;
    if (s == 0.0) return {target, 0.0};
    ProductSum logits;
    for (const double logit : x) logits.add(logit);
    const double share = s / static_cast<double>(attributes.all_classes(here));
    return {target + share * logits.value,
            share * sum_error_bound(logits, u) + 4.0 * u * (share * std::fabs(logits.value) + std::fabs(target))};
  }
};

class CrossEntropyCombineDefinition : public LossDefinition<cross_entropy_combine_kind> {
 public:
  // Per part of a row: maximum, difference, exp, two sums.
  Cost cost(const CallSpecs& op) const override { return {5.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return loss_units(turned(op.inputs[0].shape), op.output(output).shape, output);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Shape rows = turned(op.inputs[0].shape);
    if (output == 1) return log_sum_exp_bound(rows, op.call.math);
    const double z_loss = attributes_of(op.call).z_loss;
    const std::string z = number_text(z_loss);
    const std::string of_z = z_loss == 0.0 ? "" : " + 2|" + z + " lse| T(lse) + u (4|" + z + " lse^2| + |lse|)";
    return bound_text("(sum T + " + sum_error_text(rows[0]) + ") / " + counted_text(op.call, rows) +
                          " + u |loss|, T = T(lse) + " + sum_error_text(rows[1]) +
                          " of scores + 2 u (|lse| + |sum of scores|)" + of_z +
                          ", T(lse) = " + log_sum_exp_rule(rows[1]),
                      op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) return std::fill(judged.begin(), judged.end(), judge_mean(operands));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      judged[i] = judge_log_sum_exp(of_row(operands, 0, wanted[i]), accumulator_roundoff(operands.call.math));
  }

  // As widely_spaced_logits(): one part dominates each row, and its score is a whole number.
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    const std::int64_t parts = op.inputs[0].shape[0], rows = op.inputs[0].shape[1];
    const auto lse = [parts, rows](std::int64_t element) {
      const std::int64_t part = element / rows, row = element % rows;
      return part == parts - 1 - row % parts ? largest_of_row(row) : other_logit(row, part);
    };
    const auto score = [](std::int64_t element) { return -static_cast<double>(element % kinds_of_others); };
    const bool exact = attributes_of(op.call).z_loss == 0.0 && !attributes_of(op.call).ignores &&
                       std::has_single_bit(static_cast<std::uint64_t>(rows)) &&
                       static_cast<double>(rows) * (far + static_cast<double>(kinds_of_others * parts)) <
                           1.0 / accumulator_roundoff(op.call.math);
    return {{"one part far above the others", {{0, lse}, {1, score}}, exact}};
  }
  std::string unseen(const CallSpecs& op) const override {
    return revealing_data(op).front().exact_sums ? std::string() : unseen_mean_of(op.inputs[0].shape[1], op.call.math);
  }

 private:
  static Shape turned(const Shape& parts) { return {parts[1], parts[0]}; }

  static std::vector<double> of_row(const Operands& operands, std::size_t input, std::int64_t row) {
    const TensorView& parts = operands.inputs[input];
    std::vector<double> values;
    for (std::int64_t part = 0; part < parts.shape()[0]; ++part) values.push_back(parts[part * parts.shape()[1] + row]);
    return values;
  }

  static Expected judge_mean(const Operands& operands) {
    const CrossEntropy& attributes = attributes_of(operands.call);
    const double u = accumulator_roundoff(operands.call.math), z = attributes.z_loss;
    return judge_mean_of(operands, [&](std::int64_t row) {
      const Expected lse = judge_log_sum_exp(of_row(operands, 0, row), u);
      ProductSum scores;
      for (const double score : of_row(operands, 1, row)) scores.add(score);
      const Expected square = judge_z_loss(z, lse, u);
      return Expected{lse.value - scores.value + square.value,
                      lse.bound + sum_error_bound(scores, u) + square.bound +
                          2.0 * u * (std::fabs(lse.value) + std::fabs(scores.value))};
    });
  }
};

}  // namespace

Definitions cross_entropy_definitions() {
  return definitions_of<CrossEntropyForwardDefinition, CrossEntropyBackwardDefinition,
                        CrossEntropyForwardBackwardDefinition, CrossEntropyPartialDefinition,
                        CrossEntropyCombineDefinition>();
}

}  // namespace gpubench
