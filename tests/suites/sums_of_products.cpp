#include "tests/suites/sums_of_products.h"

#include "reference/ops/bias_gradient.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"

namespace gpubench::testing {
namespace {

void read_line(const TensorView& matrix, std::int64_t batch, std::int64_t index, bool along_last,
               std::vector<double>& line) {
  const std::int64_t row = along_last ? index : 0;
  const std::int64_t column = along_last ? 0 : index;
  if (matrix.shape().rank() == 3) {
    matrix.read({batch, row, column}, along_last ? 2 : 1, line);
  } else {
    matrix.read({row, column}, along_last ? 1 : 0, line);
  }
}

SumsOfProducts of_gemm(const Gemm& gemm, const TensorView& a, const TensorView& b) {
  const GemmExtents e = extents_of(gemm, a.shape(), b.shape());
  return {0, e.batch * e.m * e.n, true, 1.0,
          [=](std::int64_t unit, std::vector<double>& left, std::vector<double>& right) {
            left.resize(static_cast<std::size_t>(e.k));
            right.resize(left.size());
            const std::int64_t batch = unit / (e.m * e.n);
            read_line(a, batch, unit / e.n % e.m, !gemm.transpose_a, left);
            read_line(b, batch, unit % e.n, gemm.transpose_b, right);
          }};
}

// Column sums of dy, or of `parts` equal parts of its rows, each element multiplied by factor(row, column).
SumsOfProducts of_columns(int output, const TensorView& dy,
                          std::function<double(std::int64_t row, std::int64_t column)> factor, std::int64_t parts = 1) {
  const std::int64_t width = dy.shape()[-1];
  const std::int64_t rows = dy.shape().elements() / width / parts;
  return {output, width * parts, false, 1.0, [=](std::int64_t unit, std::vector<double>& a, std::vector<double>& b) {
            a.resize(static_cast<std::size_t>(rows));
            b.resize(a.size());
            for (std::int64_t i = 0; i < rows; ++i) {
              const std::int64_t row = unit / width * rows + i, column = unit % width;
              a[static_cast<std::size_t>(i)] = dy[row * width + column];
              b[static_cast<std::size_t>(i)] = factor(row, column);
            }
          }};
}

double one(std::int64_t, std::int64_t) { return 1.0; }

}  // namespace

std::vector<SumsOfProducts> sums_of_products(const OpCall& call, std::span<const TensorView> inputs,
                                             std::span<const TensorView> outputs) {
  if (call.kind == column_sum_kind)
    return {of_columns(0, inputs[0], one, outputs[0].shape().elements() / inputs[0].shape()[-1])};
  if (call.kind == gemm_kind) {
    const Gemm& gemm = call.attributes.as<Gemm>();
    if (gemm.epilogue != Gemm::Epilogue::none || gemm.bias || gemm.beta != 0.0 || gemm.alpha != 1.0 || gemm.blocks)
      return {};
    SumsOfProducts sums = of_gemm(gemm, inputs[0], inputs[1]);
    if (gemm.scaled) {
      const GemmRoles roles = roles_of(gemm);
      sums.scale =
          inputs[static_cast<std::size_t>(roles.scale_a)][0] * inputs[static_cast<std::size_t>(roles.scale_b)][0];
    }
    return {sums};
  }
  if (call.kind == gemm_weight_bias_gradient_kind) {
    const auto& attributes = call.attributes.as<GemmWeightBiasGradient>();
    const bool of_a = attributes.gradient == GemmWeightBiasGradient::Operand::a;
    return {of_gemm(attributes.gemm, inputs[0], inputs[1]), of_columns(1, inputs[of_a ? 0 : 1], one)};
  }
  if (call.kind == layer_norm_backward_kind) {
    const TensorView x = inputs[1], mean = inputs[3], rstd = inputs[4];
    const std::int64_t width = x.shape()[-1];
    const auto xhat = [=](std::int64_t row, std::int64_t column) {
      const auto deviation = static_cast<float>(x[row * width + column] - mean[row]);
      return static_cast<double>(static_cast<float>(static_cast<double>(deviation) * rstd[row]));
    };
    return {of_columns(1, inputs[0], xhat), of_columns(2, inputs[0], one)};
  }
  return {};
}

}  // namespace gpubench::testing
