// Ops that treat every element alike, and moves.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/builders.h"
#include "reference/ops/dropout.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

Shape shape_of(const VariantBuild& call) { return {13, call.n}; }

void build_gelu(VariantBuild& call) {
  const ValueId x = call.in("x", shape_of(call), Fill::pointwise());
  call.y = {gelu_forward(call.p, call.attributes<Gelu>(), call.r.math, call.label, x)};
  call.wanted = {x};
}

/// Every op without attributes that has a gradient, of whole operands; then the operands that may be rows.
void build_pointwise(VariantBuild& call) {
  Program& p = call.p;
  const Math& math = call.r.math;
  const ValueId x = call.in("x", shape_of(call), Fill::pointwise()),
                z = call.in("z", shape_of(call), Fill::pointwise());
  const ValueId row = call.in("row", {1, call.n}), shift = call.in("shift", {1, call.n});
  call.wanted = {x, z, row, shift};
  for (const OpKind& kind : pointwise_kinds) {
    if (kind == cast_kind || kind.attributes != nullptr || kind.name.ends_with("_backward")) continue;
    std::vector<ValueId> inputs{x, z, x};
    inputs.resize(declared_operands(kind.inputs).size());
    const std::array outputs{p.spec(x)};
    call.y.push_back(append_call(p, {kind, {}, math, inputs, {}, std::string(kind.name)}, outputs).outputs.front());
  }
  call.y.push_back(multiply(p, math, "multiply[by rows]", x, row));
  call.y.push_back(modulate_forward(p, math, "modulate[by rows]", x, row, shift));
}

void build_scale(VariantBuild& call) {
  const ValueId x = call.in("x", shape_of(call));
  call.y = {scale(call.p, call.attributes<Scale>(), call.r.math, call.label, x)};
  call.wanted = {x};
}

void build_triad(VariantBuild& call) {
  const ValueId b = call.in("b", shape_of(call)), c = call.in("c", shape_of(call));
  (void)triad(call.p, call.attributes<Triad>(), call.r.math, call.label, b, c);
}

void build_dropout(VariantBuild& call) {
  const ValueId x = call.in("x", shape_of(call)), seed = call.integers("seed", {2}, -1000000, 1000000);
  const ValueId offset = call.integers("offset", {2}, -9, 1000000);
  call.y = {dropout(call.p, call.attributes<Dropout>(), call.r.math, call.label, x, {seed, offset})};
  call.wanted = {x};
}

void build_transpose(VariantBuild& call) {
  const std::vector<int>& permutation = call.attributes<Transpose>().permutation;
  const ValueId x = call.in("x", permutation.size() == 2 ? shape_of(call) : Shape{3, 5, call.n});
  call.y = {transpose(call.p, {permutation}, call.label, x)};
  call.wanted = {x};
}

void build_moves(VariantBuild& call) {
  Program& p = call.p;
  const Shape image{3, 6, 5, call.n};
  const ValueId x = call.in("x", image), rows = call.in("rows", {3, call.n});
  const ValueId repeated = p.reserve(tensor("repeated", call.r.tensor, {3, 5, call.n}, Role::activation));
  repeat_rows_into(p, call.r.math, "repeat_rows", rows, repeated);
  const std::array<int, 4> nhwc{0, 2, 3, 1};
  call.y = {copy(p, "copy", x), reorder(p, Layout::ordered(image, nhwc), "reorder", x), repeated};
  call.wanted = {x, rows};
  for (const DType to : {DType::bf16, DType::f16, DType::f32}) {
    if (to != call.r.tensor) (void)cast(p, to, "cast to " + std::string(name(to)), x);
  }
}

void build_amax(VariantBuild& call) {
  const ValueId x = call.in("x", shape_of(call), Fill::normal(3.0));
  (void)amax(call.p, call.r.math, call.label, x);
}

void build_scale_from_amax(VariantBuild& call) {
  const ValueId history = call.wide("history", {call.n}, Fill::positive(4.0));
  (void)scale_from_amax(call.p, call.attributes<ScaleFromAmax>(), call.r.math, call.label, history);
}

void build_quantize(VariantBuild& call) {
  const ValueId x = call.in("x", shape_of(call));
  const ValueId scale = call.wide("scale", {1}, Fill::constant(64.0));
  (void)quantize(call.p, call.attributes<Quantize>(), call.r.math, call.label, x, scale);
}

void build_quantize_blocks(VariantBuild& call) {
  const auto& attributes = call.attributes<QuantizeBlocks>();
  const ValueId x = call.in("x", {call.n, 96});
  std::optional<ValueId> scale;
  if (attributes.format == BlockFormat::nvfp4) scale = call.wide("scale", {1}, Fill::constant(8.0));
  (void)quantize_blocks(call.p, attributes, call.r.math, call.label, x, scale);
}

}  // namespace

std::vector<Variants> element_variants() {
  return {
      {"gelu", gelu_forward_kind, {{"form"}}, build_gelu},
      {"pointwise", relu_forward_kind, {}, build_pointwise},
      {"scale", scale_kind, {{"factor", {-2.0, 0.1, 1.0}}}, build_scale},
      {"triad", triad_kind, {{"factor", {-3.5, 3.0, 1.0}}}, build_triad},
      {"dropout", dropout_kind, {{"p", {0.1, 0.6, 0.0}}}, build_dropout},
      {"transpose",
       transpose_kind,
       {{"permutation",
         {std::vector<std::int64_t>{1, 0}, std::vector<std::int64_t>{0, 2, 1}, std::vector<std::int64_t>{2, 0, 1}}}},
       build_transpose},
      {"moves", copy_kind, {}, build_moves},
      {"amax", amax_kind, {}, build_amax},
      {"scale_from_amax",
       scale_from_amax_kind,
       {{"to", {"f8_e4m3", "f8_e5m2"}}, {"margin", {0, 3}}},
       build_scale_from_amax},
      {"quantize", quantize_kind, {{"to", {"f8_e4m3", "f8_e5m2"}}, {"saturate"}}, build_quantize},
      {"quantize_blocks", quantize_blocks_kind, {{"format"}, {"covers"}}, build_quantize_blocks},
  };
}

}  // namespace gpubench::variants
