#include "reference/ops/gemm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

Shape matrix(bool batched, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  return batched ? Shape{batch, rows, columns} : Shape{rows, columns};
}

bool has_8_bits(const TensorSpec& tensor) { return bits_of(tensor.dtype) == 8; }

void expect_operand_types(const TensorSpec& a, const TensorSpec& b) {
  expect_float(gemm_kind, a);
  expect_float(gemm_kind, b);
  const bool both_f8 = has_8_bits(a) && has_8_bits(b);  // e4m3 activations with e5m2 gradients
  if (a.dtype != b.dtype && !both_f8) expect_dtype(gemm_kind, b, a.dtype);
}

void expect_given(bool wanted, bool given, const char* operand, const char* attribute) {
  if (wanted == given) return;
  throw ProgramError(std::string("gemm: operand '") + operand + "' is " + (given ? "given" : "missing") + " but " +
                     attribute + (wanted ? " asks for it" : " does not use it") + "; expected both or neither");
}

void expect_operands(const Program& program, const Gemm& attributes, const GemmOperands& operands, const Shape& c) {
  expect_given(attributes.beta != 0.0, operands.c_in.has_value(), "c_in", "beta");
  expect_given(attributes.bias, operands.bias.has_value(), "bias", "bias");
  expect_given(attributes.epilogue == Gemm::Epilogue::gelu_gradient, operands.pre.has_value(), "pre", "epilogue");
  expect_given(attributes.scaled, operands.scale_a.has_value(), "scale_a", "scaled");
  expect_given(attributes.scaled, operands.scale_b.has_value(), "scale_b", "scaled");
  expect_given(attributes.blocks, operands.blocks_a.has_value(), "blocks_a", "blocks");
  expect_given(attributes.blocks, operands.blocks_b.has_value(), "blocks_b", "blocks");
  if (operands.pre && (operands.bias || operands.c_in)) {
    throw ProgramError("gemm: epilogue gelu_gradient is (alpha a b) gelu'(pre); expected neither bias nor beta");
  }
  const auto expect = [&program](const std::optional<ValueId>& operand, const Shape& shape) {
    if (!operand) return;
    expect_float_tensor(program, gemm_kind, *operand, shape);
  };
  expect(operands.c_in, c);
  expect(operands.bias, Shape{c[-1]});
  expect(operands.pre, c);
  for (const auto& scale : {operands.scale_a, operands.scale_b}) {
    expect(scale, Shape{1});
    if (scale) expect_dtype(gemm_kind, program.spec(*scale), DType::f32);
  }
}

void expect_blocks(const TensorSpec& operand, const TensorSpec& scales) {
  const std::int64_t block = block_of_scale(scales.dtype);
  const bool narrow = is_float(operand.dtype) && bits_of(operand.dtype) <= 8;
  if (block == 0 || !narrow || (block == 16 && operand.dtype != DType::f4_e2m1)) {
    throw ProgramError("gemm: blocks of tensor " + operand.to_string() + " with scales " + scales.to_string() +
                       "; expected f8 or f4 with u8, or f4 with f8_e4m3");
  }
  if (operand.shape.rank() != 2 || operand.shape[1] % block != 0) {
    refuse_shape(gemm_kind, operand.name, operand.shape, "", "[rows, k], k in blocks of " + std::to_string(block));
  }
  expect_shape(gemm_kind, scales, Shape{operand.shape[0], operand.shape[1] / block});
}

ValueId output_of(Program& program, const GemmOperands& operands, const std::optional<ValueId>& into,
                  const std::string& label, const Shape& shape, ValueId a, ValueId b) {
  if (!operands.c_in) {
    const Role role = operands.pre ? Role::gradient : role_of_result(program, {a, b});
    return output_or_reserve(program, gemm_kind, into, a, label, gradient_type(program.spec(a).dtype), shape, role);
  }
  if (into && program.value(*into).updates != operands.c_in) {
    throw ProgramError("gemm: with beta, c updates '" + program.spec(*operands.c_in).name + "' but the output is '" +
                       program.spec(*into).name + "'; expected no separate output");
  }
  return into ? *into : program.update(*operands.c_in, program.unique_name(label));
}

}  // namespace

bool Gemm::has(std::string_view operand) const {
  if (operand == "c_in") return beta != 0.0;
  if (operand == "bias") return bias;
  if (operand == "pre") return epilogue == Epilogue::gelu_gradient;
  if (operand == "z") return epilogue == Epilogue::gelu;
  if (operand == "blocks_a" || operand == "blocks_b") return blocks;
  return scaled;
}

GemmRoles roles_of(const Gemm& attributes) {
  const Attributes of(attributes);
  const auto input = [&of](std::string_view name) {
    const auto at = position_of(gemm_kind.inputs, of, name);
    return at ? static_cast<int>(*at) : -1;
  };
  GemmRoles roles{0,
                  1,
                  input("c_in"),
                  input("bias"),
                  input("pre"),
                  input("scale_a"),
                  input("scale_b"),
                  input("blocks_a"),
                  input("blocks_b")};
  roles.c = 1 + std::max({roles.b, roles.c_in, roles.bias, roles.pre, roles.scale_b, roles.blocks_b});
  if (attributes.has("z")) roles.pre = roles.c + 1;
  return roles;
}

std::int64_t block_of_scale(DType type) { return type == DType::u8 ? 32 : type == DType::f8_e4m3 ? 16 : 0; }

GemmExtents extents_of(const Gemm& attributes, const Shape& a, const Shape& b) {
  const bool batched = a.rank() == 3;
  if (a.rank() != 2 && a.rank() != 3) refuse_shape(gemm_kind, "a", a, "", "[m, k] or [batch, m, k]");
  GemmExtents e;
  e.batch = batched ? a[0] : 1;
  e.m = attributes.transpose_a ? a[-1] : a[-2];
  e.k = attributes.transpose_a ? a[-2] : a[-1];
  const std::string k = std::to_string(e.k);
  std::string expected = "[";
  if (batched) expected += std::to_string(e.batch) + ", ";
  expected += attributes.transpose_b ? "n, " : k;
  expected += attributes.transpose_b ? k : ", n";
  expected += "]";
  if (b.rank() != a.rank()) refuse_shape(gemm_kind, "b", b, " but a has shape " + a.to_string(), expected);
  if (batched && b[0] != e.batch) refuse_shape(gemm_kind, "b", b, " but batch = " + std::to_string(e.batch), expected);
  if ((attributes.transpose_b ? b[-1] : b[-2]) != e.k) refuse_shape(gemm_kind, "b", b, " but k = " + k, expected);
  e.n = attributes.transpose_b ? b[-2] : b[-1];
  return e;
}

GemmResult gemm(Program& program, const Gemm& attributes, const Math& math, std::string label, ValueId a, ValueId b,
                const GemmOperands& operands, std::optional<ValueId> into) {
  const GemmExtents e = extents_of(attributes, program.spec(a).shape, program.spec(b).shape);
  const Shape shape = matrix(program.spec(a).shape.rank() == 3, e.batch, e.m, e.n);
  expect_operand_types(program.spec(a), program.spec(b));
  expect_operands(program, attributes, operands, shape);
  if (attributes.blocks) {
    if (attributes.transpose_a || !attributes.transpose_b) {
      throw ProgramError("gemm: blocks along k, but a and b are " + describe(attributes) +
                         "; expected a [m, k] and b [n, k], transposed");
    }
    expect_blocks(program.spec(a), program.spec(*operands.blocks_a));
    expect_blocks(program.spec(b), program.spec(*operands.blocks_b));
    expect_dtype(gemm_kind, program.spec(*operands.blocks_b), program.spec(*operands.blocks_a).dtype);
  } else if (attributes.scaled && !has_8_bits(program.spec(a))) {
    throw ProgramError("gemm: scaled, but tensor '" + program.spec(a).name + "' has type " +
                       std::string(name(program.spec(a).dtype)) + "; expected an 8-bit type");
  }

  GemmResult result{output_of(program, operands, into, label, shape, a, b), std::nullopt};
  std::vector<ValueId> outputs{result.c};
  if (attributes.epilogue == Gemm::Epilogue::gelu) {
    result.pre = reserve_output(program, a, label + ".pre", program.spec(result.c).dtype, shape, Role::activation);
    outputs.push_back(*result.pre);
  }
  std::vector<ValueId> inputs{a, b};
  for (const auto& operand : {operands.c_in, operands.bias, operands.pre, operands.scale_a, operands.scale_b,
                              operands.blocks_a, operands.blocks_b}) {
    if (operand) inputs.push_back(*operand);
  }
  program.append({gemm_kind, attributes, math, std::move(inputs), std::move(outputs), std::move(label)});
  return result;
}

namespace {

void build_gemm(const BuilderArguments& a) {
  const GemmOperands operands{a.optional("c_in"),    a.optional("bias"),    a.optional("pre"),
                              a.optional("scale_a"), a.optional("scale_b"), a.optional("blocks_a"),
                              a.optional("blocks_b")};
  const std::optional<ValueId> into = operands.c_in ? std::nullopt : std::optional(a.into(0));
  gemm(a.program, a.attributes<Gemm>(), a.call.math, a.call.label, a.in("a"), a.in("b"), operands, into);
}

}  // namespace

Builders gemm_builders() { return {{gemm_kind, build_gemm}}; }

}  // namespace gpubench
