// Products are judged as gemm's. Sums are judged by their summands as stored, so that their bound excludes the
// product's error: dy is read from memory, dz is judged itself. dz may be summed before or after rounding (StoredSum).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/definition.h"
#include "reference/ops/range_data.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

std::int64_t summed_rows(const Shape& x, const Shape& y) { return y.elements() == 0 ? 0 : x.elements() / y.elements(); }

class ColumnSumDefinition : public DefinitionOf<column_sum_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape,
                         4.0 * static_cast<double>(summed_rows(op.inputs[0].shape, op.outputs[0].shape)));
  }

  std::string bound(const CallSpecs& op, int) const override {
    return sum_error_bound_text(summed_rows(op.inputs[0].shape, op.outputs[0].shape), op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& x = operands.inputs[0];
    const std::int64_t n = x.shape()[-1];
    std::vector<ProductSum> sums(wanted.size());
    std::vector<double> row(wanted.size());
    const std::int64_t rows = summed_rows(x.shape(), operands.outputs[0].shape);
    std::vector<std::int64_t> first(wanted.begin(), wanted.end());  // first summand of each sum
    for (std::int64_t& element : first) element += element / n * (rows - 1) * n;
    // Rows outermost, so that neighbouring columns are read as one run.
    for (std::int64_t i = 0; i < rows; ++i) {
      gather(x, first, i * n, row);
      for (std::size_t j = 0; j < row.size(); ++j) sums[j].add(row[j]);
    }
    const double u = accumulator_roundoff(operands.call.math);
    for (std::size_t j = 0; j < sums.size(); ++j) judged[j] = {sums[j].value, sum_error_bound(sums[j], u)};
  }
};

constexpr std::int64_t rows_at_once = 64;  // of a product that is not stored

// Throws ProgramError if the attributes ask for operands that the call lacks.
OpCall gemm_of(const OpCall& call, const Gemm& gemm) {
  expect_operands(gemm_kind, gemm_kind.inputs, gemm, call.inputs.size(), "inputs", call.label);
  return {gemm_kind, gemm, call.math, call.inputs, {call.outputs[0]}, call.label, call.phase};
}

OpCall sum_of(const OpCall& call, ValueId summed) {
  return {column_sum_kind, {}, call.math, {summed}, {call.outputs[1]}, call.label, call.phase};
}

void judge_product(const OpCall& product, const Operands& operands, std::span<const std::int64_t> wanted,
                   std::span<Expected> judged) {
  definition(gemm_kind).evaluate({product, operands.inputs, operands.outputs.first(1), {}, operands.exact_sums}, 0,
                                 wanted, judged);
}

class GemmGeluBiasGradient : public DefinitionOf<gemm_gelu_bias_gradient_kind> {
 public:
  // FLOP of gemm, gelu_backward and column_sum; bytes without the intermediate tensors.
  Cost cost(const CallSpecs& op) const override {
    OpCall slope = op.call;
    slope.attributes = Gelu{op.call.attributes.as<Gemm>().gelu_form};
    const double flop = definition(gemm_kind).cost({product_of(op.call), op.inputs, op.outputs.first(1)}).flop +
                        definition(gelu_backward_kind).cost({slope, op.inputs.last(1), op.outputs.first(1)}).flop +
                        definition(column_sum_kind).cost({op.call, op.outputs.first(1), op.outputs.last(1)}).flop;
    return {flop, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    if (output == 1) return definition(column_sum_kind).units({op.call, op.outputs.first(1), op.outputs.last(1)}, 0);
    return definition(gemm_kind).units({product_of(op.call), op.inputs, op.outputs.first(1)}, 0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == 0) return definition(gemm_kind).bound({product_of(op.call), op.inputs, op.outputs.first(1)}, 0);
    const std::string sum = "Rule G: " + sum_error_text(op.outputs[0].shape[0]);
    const double u = unit_roundoff(op.outputs[0].dtype);
    if (!(u > accumulator_roundoff(op.call.math))) return bound_text(sum, op.call.math);
    return bound_text("of dz as stored: " + sum + " + min(sum e, 6 sigma), e = " + power_text(u) + " |dz|",
                      op.call.math);
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    return definition(gemm_kind).contraction({product_of(op.call), op.inputs, op.outputs.first(1)});
  }

  bool reads_written(const OpCall& /*call*/) const override { return true; }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) return judge_product(product_of(operands.call), operands, wanted, judged);
    const TensorSpec& dz = operands.outputs[0];
    std::vector<StoredSum> sums(wanted.size(), StoredSum(dz.dtype, operands.call.math.accumulate));
    if (operands.written.empty()) {
      add_made_up(operands, wanted, sums);
    } else {
      add_stored(operands.written[0], wanted, sums);
    }
    const double u = accumulator_roundoff(operands.call.math);
    std::transform(sums.begin(), sums.end(), judged.begin(), [u](const StoredSum& of) {
      return Expected{of.sum().value, sum_error_bound(of.sum(), u) + of.moved()};
    });
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    const std::size_t pre = *position_of(op.call.kind.inputs, op.call.attributes, "pre");
    return {{"GELU of a wide range", {up_to_100(pre)}}};
  }

 private:
  static OpCall product_of(const OpCall& call) { return gemm_of(call, call.attributes.as<Gemm>()); }

  static void add_stored(const TensorView& dz, std::span<const std::int64_t> columns, std::vector<StoredSum>& sums) {
    std::vector<double> row(columns.size());
    for (std::int64_t i = 0; i < dz.shape()[0]; ++i) {
      gather(dz, columns, i * dz.shape()[1], row);
      for (std::size_t j = 0; j < row.size(); ++j) sums[j].add(row[j]);
    }
  }

  static void add_made_up(const Operands& operands, std::span<const std::int64_t> columns,
                          std::vector<StoredSum>& sums) {
    const Shape& dz = operands.outputs[0].shape;
    std::vector<std::int64_t> elements;
    for (std::int64_t first = 0; first < dz[0]; first += rows_at_once) {
      const std::int64_t last = std::min<std::int64_t>(dz[0], first + rows_at_once);
      elements.clear();
      for (std::int64_t i = first; i < last; ++i) {
        for (const std::int64_t column : columns) elements.push_back(i * dz[1] + column);
      }
      std::vector<Expected> products(elements.size());
      judge_product(product_of(operands.call), operands, elements, products);
      for (std::size_t e = 0; e < products.size(); ++e) sums[e % columns.size()].add(products[e].value);
    }
  }
};

class GemmWeightBiasGradientDefinition : public DefinitionOf<gemm_weight_bias_gradient_kind> {
 public:
  // FLOP of gemm and column_sum; their bytes, reading the gradient once.
  Cost cost(const CallSpecs& op) const override {
    const double flop = definition(gemm_kind).cost({product_of(op.call), op.inputs, op.outputs.first(1)}).flop +
                        definition(column_sum_kind).cost(summing(op)).flop;
    return {flop, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    if (output == 0) return definition(gemm_kind).units({product_of(op.call), op.inputs, op.outputs.first(1)}, 0);
    return definition(column_sum_kind).units(summing(op), 0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == 0) return definition(gemm_kind).bound({product_of(op.call), op.inputs, op.outputs.first(1)}, 0);
    return definition(column_sum_kind).bound(summing(op), 0);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) return judge_product(product_of(operands.call), operands, wanted, judged);
    const std::size_t index = summed(operands.call);
    const OpCall sum = sum_of(operands.call, operands.call.inputs[index]);
    definition(column_sum_kind)
        .evaluate({sum, operands.inputs.subspan(index, 1), operands.outputs.last(1)}, 0, wanted, judged);
  }

  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int output) const override {
    if (output != 0) return {};
    return definition(gemm_kind).linear_axes({product_of(op.call), op.inputs, op.outputs.first(1)}, 0);
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    return definition(gemm_kind).contraction({product_of(op.call), op.inputs, op.outputs.first(1)});
  }

  std::optional<OpProduct> product(const CallSpecs& op) const override {
    return definition(gemm_kind).product({product_of(op.call), op.inputs, op.outputs.first(1)});
  }

 private:
  static const GemmWeightBiasGradient& attributes_of(const OpCall& call) {
    return call.attributes.as<GemmWeightBiasGradient>();
  }
  static OpCall product_of(const OpCall& call) { return gemm_of(call, attributes_of(call).gemm); }
  static std::size_t summed(const OpCall& call) {
    return attributes_of(call).gradient == GemmWeightBiasGradient::Operand::a ? 0 : 1;
  }
  static CallSpecs summing(const CallSpecs& op) {
    return {op.call, op.inputs.subspan(summed(op.call), 1), op.outputs.last(1)};
  }
};

}  // namespace

Definitions bias_gradient_definitions() {
  return definitions_of<ColumnSumDefinition, GemmGeluBiasGradient, GemmWeightBiasGradientDefinition>();
}

}  // namespace gpubench
