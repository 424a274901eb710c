// Moves are exact; arithmetic has one u per operation. Factors are doubles that a backend rounds once to the type it
// computes in: what they lose there belongs to the bound.
#include "reference/ops/elementwise_textbook.h"

#include <cmath>
#include <utility>

#include "reference/ops/bound_text.h"
#include "reference/ops/bytes_moved.h"
#include "reference/ops/elementwise.h"
#include "reference/ops/incoming_gradient.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

// What all of them share: one element is one unit, everything read and written once.
class Elementwise : public OpDefinition {
 public:
  Elementwise(OpKind kind, double flop_per_element) : kind_(kind), flop_(flop_per_element) {}
  OpKind kind() const override { return kind_; }
  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    const double elements = static_cast<double>(outputs[0].shape.elements());
    return {flop_ * elements, bytes_moved(inputs) + bytes_moved(outputs)};
  }
  Units units(const OpCall&, std::span<const TensorSpec>, std::span<const TensorSpec> outputs, int) const override {
    return element_units(outputs[0].shape, 4.0);
  }

 private:
  OpKind kind_;
  double flop_;
};

// copy, cast and reorder: the same logical element, bit for bit or rounded once.
class SameElement : public Elementwise {
 public:
  explicit SameElement(OpKind kind) : Elementwise(kind, 0.0) {}
  std::string bound(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                    int) const override {
    const DType type = outputs[0].dtype;
    if (type == inputs[0].dtype) return std::string(exact_bound);
    return "exact, rounded once to " + std::string(name(type));
  }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [](std::int64_t, const auto& in) { return moved(in[0]); });
  }
};

class CopyDefinition : public SameElement {
 public:
  CopyDefinition() : SameElement(copy_kind) {}
  void derivative(Program&, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (dy && tape.wanted(call.inputs[0])) tape.contribute(call.inputs[0], *dy);
  }
};

class CastDefinition : public SameElement {
 public:
  CastDefinition() : SameElement(cast_kind) {}
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    tape.contribute(x, cast(program, program.spec(x).dtype, tape.label(call, "backward"), *dy));
  }
};

class ReorderDefinition : public SameElement {
 public:
  ReorderDefinition() : SameElement(reorder_kind) {}
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    tape.contribute(x, reorder(program, program.spec(x).layout, tape.label(call, "backward"), *dy));
  }
};

class TransposeDefinition : public Elementwise {
 public:
  TransposeDefinition() : Elementwise(transpose_kind, 0.0) {}

  std::string bound(const OpCall&, std::span<const TensorSpec>, std::span<const TensorSpec>, int) const override {
    return std::string(exact_bound);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const std::vector<int>& permutation = operands.call.attributes.as<Transpose>().permutation;
    const Shape& y = operands.outputs[0].shape;
    std::vector<std::int64_t> index(permutation.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::int64_t rest = wanted[i];
      for (int axis = y.rank() - 1; axis >= 0; --axis) {
        index[static_cast<std::size_t>(permutation[static_cast<std::size_t>(axis)])] = rest % y[axis];
        rest /= y[axis];
      }
      judged[i] = moved(operands.inputs[0].at(index));
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    const std::vector<int>& permutation = call.attributes.as<Transpose>().permutation;
    std::vector<int> inverse(permutation.size());
    for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
      inverse[static_cast<std::size_t>(permutation[axis])] = static_cast<int>(axis);
    }
    tape.contribute(x, transpose(program, std::move(inverse), tape.label(call, "backward"), *dy));
  }
};

double representation_error(double constant, const Math& math) {
  return std::fabs(constant - round_to(math.accumulate, constant));
}

class TriadDefinition : public Elementwise {
 public:
  TriadDefinition() : Elementwise(triad_kind, 2.0) {}
  std::string bound(const OpCall& call, std::span<const TensorSpec>, std::span<const TensorSpec>, int) const override {
    const double factor = call.attributes.as<Triad>().factor;
    const std::string lost = lost_factor_text(representation_error(factor, call.math), "c");
    return bound_text("u (|" + number_text(factor) + " c| + |y|)" + lost, call.math);
  }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const double factor = operands.call.attributes.as<Triad>().factor;
    const double u = accumulator_roundoff(operands.call.math);
    const double lost = representation_error(factor, operands.call.math);
    judge_elements<2>({operands.inputs[0], operands.inputs[1]}, wanted, judged, [&](std::int64_t, const auto& in) {
      const double y = in[0] + factor * in[1];
      return Judged{y, u * (std::fabs(factor * in[1]) + std::fabs(y)) + lost * std::fabs(in[1])};
    });
  }
};

class ScaleDefinition : public Elementwise {
 public:
  ScaleDefinition() : Elementwise(scale_kind, 1.0) {}
  std::string bound(const OpCall& call, std::span<const TensorSpec>, std::span<const TensorSpec>, int) const override {
    const double factor = call.attributes.as<Scale>().factor;
    return bound_text("u |y|" + lost_factor_text(representation_error(factor, call.math), "x"), call.math);
  }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const double factor = operands.call.attributes.as<Scale>().factor;
    const double u = accumulator_roundoff(operands.call.math);
    const double lost = representation_error(factor, operands.call.math);
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t, const auto& in) {
      const double y = factor * in[0];
      return Judged{y, u * std::fabs(y) + lost * std::fabs(in[0])};
    });
  }
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    const double factor = call.attributes.as<Scale>().factor;
    tape.contribute(x, scale(program, factor, call.math, tape.label(call, "backward"), *dy));
  }
};

class AddDefinition : public Elementwise {
 public:
  AddDefinition() : Elementwise(add_kind, 1.0) {}
  std::string bound(const OpCall& call, std::span<const TensorSpec>, std::span<const TensorSpec>, int) const override {
    return bound_text("u |y|", call.math);
  }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    judge_elements<2>({operands.inputs[0], operands.inputs[1]}, wanted, judged, [&](std::int64_t, const auto& in) {
      const double y = in[0] + in[1];
      return Judged{y, u * std::fabs(y)};
    });
  }
  void derivative(Program&, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy) return;
    for (const ValueId operand : call.inputs) {
      if (tape.wanted(operand)) tape.contribute(operand, *dy);
    }
  }
};

}  // namespace

const OpDefinition& add_definition() {
  static const AddDefinition definition;
  return definition;
}

const OpDefinition& cast_definition() {
  static const CastDefinition definition;
  return definition;
}

const OpDefinition& copy_definition() {
  static const CopyDefinition definition;
  return definition;
}

const OpDefinition& reorder_definition() {
  static const ReorderDefinition definition;
  return definition;
}

const OpDefinition& scale_definition() {
  static const ScaleDefinition definition;
  return definition;
}

const OpDefinition& transpose_definition() {
  static const TransposeDefinition definition;
  return definition;
}

const OpDefinition& triad_definition() {
  static const TriadDefinition definition;
  return definition;
}

}  // namespace gpubench
