// Each element is judged by the rule of matrix products. A weight gradient has as many products as its group has rows.
#include <limits>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

/// First row of each group, and the end of the last; empty for invalid sizes.
std::vector<std::int64_t> begins_of(const Operands& operands) {
  const TensorView& sizes = operands.input("sizes");
  std::vector<std::int64_t> begins{0};
  for (std::int64_t g = 0; g < sizes.shape()[0]; ++g) {
    const auto size = static_cast<std::int64_t>(sizes[g]);
    if (size < 0) return {};
    begins.push_back(begins.back() + size);
  }
  if (begins.back() > operands.input("a").shape()[0]) return {};
  return begins;
}

constexpr Expected no_right_answer{std::numeric_limits<double>::quiet_NaN(), 0.0};

class GroupedGemmDefinition final : public DefinitionOf<grouped_gemm_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {2.0 * elements_of(op.inputs[0]) * static_cast<double>(op.outputs[0].shape[1]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    const double strided = op.call.attributes.as<GroupedGemm>().transpose_b ? 0.0 : 1.0;
    return element_units(op.outputs[0].shape,
                         (4.0 + strided_read_flop * strided) * static_cast<double>(op.inputs[0].shape[1]));
  }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("Rule G: " + contraction_rule(op).formula(op.inputs[0].shape[1]), op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const bool transpose_b = operands.call.attributes.as<GroupedGemm>().transpose_b;
    const std::vector<std::int64_t> begins = begins_of(operands);
    const std::int64_t n = operands.outputs[0].shape[1], k = operands.input("a").shape()[1];
    const ContractionRule rule = contraction_rule(operands);
    Lines rows(operands.input("a"), true, k, 1);
    Lines columns(operands.input("b"), transpose_b, k, n);
    std::size_t group = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t row = wanted[i] / n;
      while (group + 1 < begins.size() && begins[group + 1] <= row) ++group;
      if (begins.empty()) {
        judged[i] = no_right_answer;
      } else if (group + 1 == begins.size()) {
        judged[i] = {0.0, 0.0};
      } else {
        const ProductSum sum = product_sum(operands.call.math, rows.line(0, row),
                                           columns.line(static_cast<std::int64_t>(group), wanted[i] % n));
        judged[i] = {sum.value, rule.bound(sum)};
      }
    }
  }

  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int) const override {
    return {{1, {{1, op.call.attributes.as<GroupedGemm>().transpose_b ? 1 : 2}}}};
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    const bool transpose_b = op.call.attributes.as<GroupedGemm>().transpose_b;
    return Contraction{.a_axis = 1, .b_axis = transpose_b ? 2 : 1, .extent = op.inputs[0].shape[1]};
  }

  // All rows are in the first group.
  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const bool transpose_b = op.call.attributes.as<GroupedGemm>().transpose_b;
    const std::int64_t m = op.inputs[0].shape[0], k = op.inputs[0].shape[1], n = op.outputs[0].shape[1];
    OpProduct product = OpProduct::of_matrices(m, n, k, false, transpose_b);
    product.others = {{2, static_cast<double>(m), 0.0}};
    return product;
  }

  void derivative(Program& program, const OpCall& forward, GradientTape& tape) const override {
    const OpCall call = forward;  // appending to the program may move the original
    const auto dc = incoming_gradient(call, tape, call.outputs[0]);
    if (!dc) return;
    const ValueId a = call.input("a"), b = call.input("b"), sizes = call.input("sizes");
    const bool transpose_b = call.attributes.as<GroupedGemm>().transpose_b;
    if (tape.wanted(a)) {
      tape.contribute(a, grouped_gemm(program, {!transpose_b}, call.math, tape.label(call, "da"), *dc, b, sizes,
                                      tape.destination(a)));
    }
    if (tape.wanted(b)) {
      tape.contribute(b, grouped_gemm_backward_weight(program, call.math, tape.label(call, "db"), transpose_b ? *dc : a,
                                                      transpose_b ? a : *dc, sizes, tape.destination(b)));
    }
  }
};

class GroupedGemmBackwardWeight final : public DefinitionOf<grouped_gemm_backward_weight_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {2.0 * elements_of(op.inputs[0]) * static_cast<double>(op.inputs[1].shape[1]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    const double rows = static_cast<double>(op.inputs[0].shape[0]) / static_cast<double>(op.outputs[0].shape[0]);
    CheckUnits units = element_units(op.outputs[0].shape, (4.0 + 2.0 * strided_read_flop) * (rows + 1.0));
    const std::int64_t groups = op.outputs[0].shape[0], matrix = units.count / groups;
    units.landmarks.clear();
    for (std::int64_t g = 0; g < groups; ++g) {
      for (const std::int64_t element : {g * matrix, (g + 1) * matrix - 1}) {
        if (units.landmarks.empty() || units.landmarks.back() < element) units.landmarks.push_back(element);
      }
    }
    return units;
  }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("Rule G: " + contraction_rule(op).formula("K") + ", K = rows of the group", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const std::vector<std::int64_t> begins = begins_of(operands);
    const std::int64_t m = operands.outputs[0].shape[1], n = operands.outputs[0].shape[2];
    const ContractionRule rule = contraction_rule(operands);
    for (std::size_t i = 0; i < wanted.size();) {
      const std::int64_t group = wanted[i] / (m * n);
      const auto at = static_cast<std::size_t>(group);
      const std::int64_t begin = begins.empty() ? 0 : begins[at];
      const std::int64_t size = begins.empty() ? 0 : begins[at + 1] - begin;
      Lines left(operands.input("a"), false, size, 1, begin), right(operands.input("b"), false, size, n, begin);
      for (; i < wanted.size() && wanted[i] / (m * n) == group; ++i) {
        if (begins.empty()) {
          judged[i] = no_right_answer;
        } else if (size == 0) {
          judged[i] = {0.0, 0.0};
        } else {
          const ProductSum sum =
              product_sum(operands.call.math, left.line(0, wanted[i] / n % m), right.line(0, wanted[i] % n));
          judged[i] = {sum.value, rule.bound(sum)};
        }
      }
    }
  }

  std::vector<LinearAxis> linear_axes(const CallSpecs&, int) const override { return {{2, {{1, 1}}}, {1, {{0, 1}}}}; }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    return Contraction{.extent = op.inputs[0].shape[0], .ragged = true};
  }

  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const std::int64_t rows = op.inputs[0].shape[0], m = op.inputs[0].shape[1], n = op.inputs[1].shape[1];
    OpProduct product = OpProduct::of_matrices(m, n, rows, true, false);
    product.others = {{2, static_cast<double>(rows), 0.0}};
    return product;
  }
};

}  // namespace

Definitions grouped_gemm_definitions() { return definitions_of<GroupedGemmDefinition, GroupedGemmBackwardWeight>(); }

}  // namespace gpubench
