// Rule G over the rows. The bias gradient of a gemm is this op.
#include "reference/ops/bound_text.h"
#include "reference/ops/column_sum.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/textbooks.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

std::int64_t summed_rows(const Shape& x) { return x[-1] == 0 ? 0 : x.elements() / x[-1]; }

class ColumnSumDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return column_sum_kind; }

  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 4.0 * static_cast<double>(summed_rows(op.inputs[0].shape)));
  }

  std::string bound(const CallSpecs& op, int) const override {
    return sum_error_bound_text(summed_rows(op.inputs[0].shape), op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& x = operands.inputs[0];
    const std::int64_t n = x.shape()[-1];
    std::vector<ProductSum> sums(wanted.size());
    std::vector<double> row(wanted.size());
    // Rows outermost: neighbouring columns are read as one run.
    for (std::int64_t i = 0; i < summed_rows(x.shape()); ++i) {
      gather(x, wanted, i * n, row);
      for (std::size_t j = 0; j < row.size(); ++j) sums[j].add(row[j]);
    }
    const double u = accumulator_roundoff(operands.call.math);
    for (std::size_t j = 0; j < sums.size(); ++j) judged[j] = {sums[j].value, sum_error_bound(sums[j], u)};
  }
};

}  // namespace

std::span<const OpDefinition* const> column_sum_definitions() { return definitions_of<ColumnSumDefinition>(); }

}  // namespace gpubench
