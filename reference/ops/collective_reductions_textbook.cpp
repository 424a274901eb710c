// all_reduce and reduce_scatter. If inputs are whole multiples of a unit so small that no order of addition rounds, the
// result is judged bitwise. Otherwise by the bound of a ring that rounds to the storage type at each of n - 1 hops:
//     T = 2 u sqrt(n - 1) M,   u of the storage type, M of the ranks' numbers in order (sum_error_bound.h)
// A tree stays within it (errors of independent hops grow as a square root). An average adds one rounding: of the
// inputs if the backend scales these, possibly to subnormal numbers, or of the sum.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reference/ops/collective.h"
#include "reference/ops/collective_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

/// The largest power of two that divides a finite number; infinity for 0.
double unit_of(double value) {
  if (value == 0.0) return HUGE_VAL;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const auto whole = static_cast<std::int64_t>(std::ldexp(fraction, 53));
  return std::ldexp(static_cast<double>(whole & -whole), exponent - 53);
}

class Reducer {
 public:
  Reducer(Reduction reduction, int ranks, DType type)
      : reduction_(reduction), ranks_(ranks), u_(unit_roundoff(type)), min_(smallest_normal(type)) {}

  [[nodiscard]] Expected of(std::span<const double> values) const {
    ProductSum sum;
    double sizes = 0.0;
    double unit = HUGE_VAL;
    double largest = values[0];
    for (const double value : values) {
      sum.add(value);
      sizes += std::fabs(value);
      if (std::isfinite(value)) unit = std::min(unit, unit_of(value));
      if (value > largest || std::isnan(value)) largest = value;  // NaN stays
    }
    if (reduction_ == Reduction::maximum) return {largest, 0.0};
    const bool exact = sizes <= unit / u_;  // false for NaN and infinities
    const double size = partial_sum_size(sum);
    const double hops = exact ? 0.0 : 2.0 * u_ * std::sqrt(ranks_ - 1.0) * size;
    if (reduction_ == Reduction::sum) return {sum.value, hops};
    const double scaling = exact && std::has_single_bit(static_cast<unsigned>(ranks_)) ? 0.0 : 2.0 * u_ * size;
    return {sum.value / ranks_, (hops + scaling) / ranks_ + subnormal(values)};
  }

  [[nodiscard]] double value(std::span<const double> values) const { return of(values).value; }

 private:
  /// Error of inputs that become subnormal by scaling.
  [[nodiscard]] double subnormal(std::span<const double> values) const {
    double squares = 0.0;
    for (const double value : values) {
      const double scaled = std::fabs(value) / ranks_;
      if (scaled < min_) squares += std::min(scaled, u_ * min_) * std::min(scaled, u_ * min_);
    }
    return 2.0 * std::sqrt(squares);
  }

  Reduction reduction_;
  int ranks_;
  double u_, min_;
};

std::string bound_text(Reduction reduction, int ranks, DType type) {
  if (reduction == Reduction::maximum) return "exact";
  const std::string size(partial_sum_text);
  const std::string hops = "2 u sqrt(" + std::to_string(ranks - 1) + ") " + size;
  const std::string rule =
      reduction == Reduction::sum ? hops : "(" + hops + " + 2 u " + size + ") / " + std::to_string(ranks);
  return "exact where whole numbers allow, else " + rule + ", u = " + power_text(unit_roundoff(type));
}

struct Contributions {
  std::vector<const TensorView*> of_rank;
  std::int64_t offset = 0;

  void at(std::int64_t linear, std::vector<double>& values) const {
    values.resize(of_rank.size());
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) values[rank] = (*of_rank[rank])[offset + linear];
  }
};

void judge_sums(const Contributions& from, const Reducer& reducer, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) {
  constexpr std::size_t chunk = 512;
  const std::size_t ranks = from.of_rank.size();
  std::vector<double> read(chunk * ranks);
  std::vector<double> values(ranks);
  for (std::size_t first = 0; first < wanted.size(); first += chunk) {
    const std::size_t size = std::min(chunk, wanted.size() - first);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      gather(*from.of_rank[rank], wanted.subspan(first, size), from.offset,
             std::span(read).subspan(rank * chunk, size));
    }
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t rank = 0; rank < ranks; ++rank) values[rank] = read[rank * chunk + i];
      judged[first + i] = reducer.of(values);
    }
  }
}

/// Possible faults of a sum. "Old" data are the recheck's previous inputs: the same, reversed.
std::vector<FaultHypothesis> hypotheses_of(const Contributions& from, Reduction reduction, int chunks) {
  const auto ranks = static_cast<int>(from.of_rank.size());
  const double divisor = reduction == Reduction::average ? ranks : 1.0;
  const auto with = [=](double factor, int rank, std::function<double(std::int64_t)> instead) {
    return [=](std::int64_t linear) {
      std::vector<double> values;
      from.at(linear, values);
      double sum = 0.0;
      for (const double value : values) sum += value;
      const double own = values[static_cast<std::size_t>(rank)];
      return own == 0.0 && factor != 1.0 ? std::nan("")
                                         : (sum + (factor - 1.0) * own + (instead ? instead(linear) : 0.0)) / divisor;
    };
  };
  std::vector<FaultHypothesis> found;
  if (reduction == Reduction::average) {
    found.push_back({"the sum was not divided by the number of ranks", [=](std::int64_t linear) {
                       std::vector<double> values;
                       from.at(linear, values);
                       double sum = 0.0;
                       for (const double value : values) sum += value;
                       return sum;
                     }});
  }
  if (reduction == Reduction::maximum) return found;
  for (int rank = 0; rank < ranks; ++rank) {
    const TensorView& x = *from.of_rank[static_cast<std::size_t>(rank)];
    const std::string whose = "rank " + std::to_string(x.spec().placement.rank) + "'s contribution is ";
    const std::int64_t elements = x.shape().elements();
    const std::int64_t offset = from.offset;
    const auto elsewhere = [&x, elements, offset](std::int64_t distance) {
      return [&x, elements, offset, distance](std::int64_t linear) {
        const std::int64_t at = offset + linear + distance;
        return at < 0 || at >= elements ? std::nan("") : x[at];
      };
    };
    found.push_back({whose + "missing", with(0.0, rank, {})});
    found.push_back({whose + "doubled", with(2.0, rank, {})});
    found.push_back({whose + "stale", with(0.0, rank, [&x, elements, offset](std::int64_t linear) {
                       return x[elements - 1 - offset - linear];
                     })});
    const std::int64_t chunk = elements / std::max(chunks, 1);
    for (const std::int64_t distance : {std::int64_t{1}, std::int64_t{-1}, chunk, -chunk}) {
      if (distance == 0) continue;
      found.push_back(
          {whose + "misplaced by " + std::to_string(distance) + (std::abs(distance) == 1 ? " element" : " elements"),
           with(0.0, rank, elsewhere(distance))});
    }
  }
  return found;
}

template <const OpKind& op_kind, class Attributes>
class ReductionDefinition : public DefinitionOf<op_kind> {
 public:
  CheckUnits units(const CallSpecs& op, int output) const override {
    const auto& shape = op.output(output).shape;
    return element_units(shape, 4.0 * op.call.attributes.as<Attributes>().ranks);
  }
  std::string bound(const CallSpecs& op, int output) const override {
    const auto& attributes = op.call.attributes.as<Attributes>();
    return bound_text(attributes.reduction, attributes.ranks, op.output(output).dtype);
  }
  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const auto& attributes = operands.call.attributes.as<Attributes>();
    const DType type = operands.outputs[static_cast<std::size_t>(output)].dtype;
    judge_sums(contributions(operands, output), {attributes.reduction, attributes.ranks, type}, wanted, judged);
  }
  std::string explain(const Operands& operands, int output, std::span<const Mismatch> wrong) const override {
    const auto& attributes = operands.call.attributes.as<Attributes>();
    const TensorSpec& y = operands.outputs[static_cast<std::size_t>(output)];
    return name_fault(hypotheses_of(contributions(operands, output), attributes.reduction, attributes.ranks), wrong,
                      y.dtype, y.shape.elements(), chunks(attributes.ranks));
  }

 private:
  [[nodiscard]] virtual Contributions contributions(const Operands& operands, int output) const = 0;
  /// Parts of an output that ranks reduce one by one.
  [[nodiscard]] virtual int chunks(int ranks) const = 0;
};

class AllReduceDefinition : public ReductionDefinition<all_reduce_kind, AllReduce> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const double ranks = op.call.attributes.as<AllReduce>().ranks;
    const double message = bytes_moved(op.inputs) / op.call.held.size();
    return {elements_of(op.inputs) * (ranks - 1.0) / ranks, 2.0 * message * (ranks - 1.0) / ranks, message};
  }
  std::vector<std::vector<int>> identical_outputs(const OpCall& call) const override {
    const auto tensors = call.outputs.size() / static_cast<std::size_t>(call.held.size());
    std::vector<std::vector<int>> groups(tensors);
    for (std::size_t i = 0; i < call.outputs.size(); ++i) groups[i % tensors].push_back(static_cast<int>(i));
    return groups;
  }
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto& attributes = call.attributes.as<AllReduce>();
    if (attributes.reduction == Reduction::maximum) return OpDefinition::derivative(program, call, tape);
    if (std::none_of(call.inputs.begin(), call.inputs.end(), [&](ValueId x) { return tape.wanted(x); })) return;
    const std::vector<ValueId> incoming = incoming_gradients(program, call, tape);
    const std::vector<ValueId> gradients =
        all_reduce(program, attributes, call.math, tape.label(call, "backward"), incoming, false, call.group);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) tape.contribute(call.inputs[i], gradients[i]);
  }

 private:
  [[nodiscard]] Contributions contributions(const Operands& operands, int output) const override {
    expect_all_held(operands.call);
    const auto ranks = static_cast<std::size_t>(operands.call.attributes.as<AllReduce>().ranks);
    const std::size_t tensors = operands.inputs.size() / ranks;
    Contributions from;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      from.of_rank.push_back(&operands.inputs[rank * tensors + static_cast<std::size_t>(output) % tensors]);
    return from;
  }
  [[nodiscard]] int chunks(int ranks) const override { return ranks; }
};

class ReduceScatterDefinition : public ReductionDefinition<reduce_scatter_kind, ReduceScatter> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const double ranks = op.call.attributes.as<ReduceScatter>().ranks;
    const double message = bytes_moved(op.inputs[0]);
    return {elements_of(op.inputs[0]) * (ranks - 1.0), message * (ranks - 1.0) / ranks, message};
  }
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto& attributes = call.attributes.as<ReduceScatter>();
    if (attributes.reduction != Reduction::sum) return OpDefinition::derivative(program, call, tape);
    const std::vector<ValueId> incoming = incoming_gradients(program, call, tape);
    const std::vector<ValueId> gradients =
        all_gather(program, {attributes.ranks}, tape.label(call, "backward"), incoming, call.group);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) tape.contribute(call.inputs[i], gradients[i]);
  }

 private:
  [[nodiscard]] Contributions contributions(const Operands& operands, int output) const override {
    expect_all_held(operands.call);
    Contributions from;
    for (const TensorView& x : operands.inputs) from.of_rank.push_back(&x);
    from.offset = output * operands.outputs[static_cast<std::size_t>(output)].shape.elements();
    return from;
  }
  [[nodiscard]] int chunks(int /*ranks*/) const override { return 1; }
};

}  // namespace

Definitions collective_reductions_definitions() {
  return definitions_of<AllReduceDefinition, ReduceScatterDefinition>();
}

}  // namespace gpubench
