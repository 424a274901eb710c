#include "reference/ops/quantize.h"

#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_eight_bits(OpKind op, DType to) {
  if (to == DType::f8_e4m3 || to == DType::f8_e5m2) return;
  throw ProgramError(std::string(op.name) + ": to " + std::string(name(to)) + "; expected f8_e4m3 or f8_e5m2");
}

void expect_scale(OpKind op, const TensorSpec& scale) {
  expect_shape(op, scale, Shape{1});
  expect_dtype(op, scale, DType::f32);
}

}  // namespace

Quantized quantize(Program& program, const Quantize& attributes, const Math& math, std::string label, ValueId x,
                   ValueId scale, std::optional<Layout> layout) {
  expect_eight_bits(quantize_kind, attributes.to);
  const TensorSpec from = program.spec(x);
  expect_float(quantize_kind, from);
  expect_scale(quantize_kind, program.spec(scale));
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

ValueId amax(Program& program, const Math& math, std::string label, ValueId x) {
  expect_float(amax_kind, program.spec(x));
  const ValueId largest = reserve_output(program, x, label, DType::f32, Shape{1}, Role::statistic);
  program.append({amax_kind, {}, math, {x}, {largest}, std::move(label)});
  return largest;
}

ValueId scale_from_amax(Program& program, const ScaleFromAmax& attributes, const Math& math, std::string label,
                        ValueId history) {
  expect_eight_bits(scale_from_amax_kind, attributes.to);
  const TensorSpec spec = program.spec(history);
  expect_dtype(scale_from_amax_kind, spec, DType::f32);
  if (spec.shape.rank() != 1) {
    throw ProgramError("scale_from_amax: history " + spec.to_string() + "; expected f32 of one axis");
  }
  if (attributes.margin < 0 || attributes.margin > 100) {
    throw ProgramError("scale_from_amax: margin is " + std::to_string(attributes.margin) + "; expected 0 to 100");
  }
  const ValueId scale = reserve_output(program, history, label, DType::f32, Shape{1}, Role::scalar);
  program.append({scale_from_amax_kind, attributes, math, {history}, {scale}, std::move(label)});
  return scale;
}

Quantized quantize_by_amax(Program& program, DType to, const Math& math, const std::string& label, ValueId x) {
  const ValueId largest = amax(program, math, label + ".largest", x);
  const ValueId scale = scale_from_amax(program, {.to = to}, math, label + ".scale", largest);
  return quantize(program, {.to = to}, math, label, x, scale);
}

std::int64_t block_of(BlockFormat format) { return format == BlockFormat::nvfp4 ? 16 : 32; }

DType element_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::mxfp8_e4m3: return DType::f8_e4m3;
    case BlockFormat::mxfp8_e5m2: return DType::f8_e5m2;
    default: return DType::f4_e2m1;
  }
}

QuantizedBlocks quantize_blocks(Program& program, const QuantizeBlocks& attributes, const Math& math, std::string label,
                                ValueId x, std::optional<ValueId> scale) {
  const TensorSpec from = program.spec(x);
  if (from.dtype != DType::f32 && from.dtype != DType::f16 && from.dtype != DType::bf16) {
    throw ProgramError("quantize_blocks: x " + from.to_string() + "; expected f32, f16 or bf16");
  }
  const std::string format(name(attributes.format));
  const std::int64_t block = block_of(attributes.format);
  if (from.shape[-1] % block != 0) {
    throw ProgramError("quantize_blocks: x " + from.to_string() + "; expected a last axis of whole blocks of " +
                       std::to_string(block) + " for " + format);
  }
  const bool wants_scale = attributes.format == BlockFormat::nvfp4;
  if (scale.has_value() != wants_scale) {
    throw ProgramError("quantize_blocks: " + format + (wants_scale ? " needs a scale" : " takes no scale") +
                       " of the tensor");
  }
  if (scale) expect_scale(quantize_blocks_kind, program.spec(*scale));
  std::vector<std::int64_t> extents(from.shape.extents().begin(), from.shape.extents().end());
  extents.back() /= block;
  const DType scale_type = wants_scale ? DType::f8_e4m3 : DType::u8;
  QuantizedBlocks result;
  result.values = reserve_output(program, x, label, element_of(attributes.format), from.shape, from.role);
  result.scales = reserve_output(program, x, label + ".scales", scale_type, Shape(extents), Role::scalar);
  std::vector<ValueId> inputs{x};
  if (scale) inputs.push_back(*scale);
  program.append(
      {quantize_blocks_kind, attributes, math, std::move(inputs), {result.values, result.scales}, std::move(label)});
  return result;
}

Builders quantize_builders() {
  return {{amax_kind, in_turn<amax>},
          {quantize_kind, in_turn<quantize>},
          {quantize_blocks_kind, in_turn<quantize_blocks>},
          {scale_from_amax_kind, in_turn<scale_from_amax>}};
}

}  // namespace gpubench
