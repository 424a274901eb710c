#include "reference/ops/quantize.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {

Quantized quantize(Program& program, const Quantize& attributes, const Math& math, std::string label, ValueId x,
                   ValueId scale, std::optional<Layout> layout) {
  if (attributes.to != DType::f8_e4m3 && attributes.to != DType::f8_e5m2) {
    throw ProgramError("quantize: to " + std::string(name(attributes.to)) + "; expected f8_e4m3 or f8_e5m2");
  }
  const TensorSpec from = program.spec(x);
  expect_float(quantize_kind, from);
  expect_shape(quantize_kind, program.spec(scale), Shape{1});
  expect_dtype(quantize_kind, program.spec(scale), DType::f32);
  TensorSpec values = tensor("", attributes.to, from.shape, from.role);
  place_like(program, x, label, values);
  if (layout) values.layout = std::move(*layout);
  Quantized result;
  result.values = program.reserve(std::move(values));
  result.inverse = reserve_output(program, x, label + ".inverse", DType::f32, Shape{1}, Role::scalar);
  result.amax = reserve_output(program, x, label + ".amax", DType::f32, Shape{1}, Role::statistic);
  program.append(
      {quantize_kind, attributes, math, {x, scale}, {result.values, result.inverse, result.amax}, std::move(label)});
  return result;
}

}  // namespace gpubench
