#include "reference/cuda/kernel.h"

#include "reference/cuda/kernels/attention.h"
#include "reference/ops/rotary.h"

namespace gpubench::cuda {
namespace {

HeadStrides strides_of(const TensorSpec& tensor) {
  const std::vector<std::int64_t>& strides = tensor.layout.strides;
  return {strides[0], strides[1], strides[2]};
}

// Any strides between heads, tokens and sequences.
Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Rotary& attributes = call.attributes.as<Rotary>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  const TensorSpec& y = operand["y"];
  expect_same_type(call, x, y);
  RotaryArgs args;
  args.type = any_element(call, x);
  for (const char* table : {"cos", "sin"}) {
    expect_type(call, operand[table], x.dtype == DType::f64 ? DType::f64 : DType::f32);
    expect_row_major(call, operand[table]);
  }
  const RotaryExtents e = rotary_extents(x);
  args.interleaved = attributes.pairing == Rotary::Pairing::interleaved;
  args.inverse = attributes.inverse;
  args.sequences = e.b;
  args.tokens = e.s;
  args.heads = e.h;
  args.pairs = e.d / 2;
  args.x_strides = strides_of(x);
  args.y_strides = strides_of(y);
  return own_plan(call, context, args, launch_rotary,
                  {{"x", to<&RotaryArgs::x>},
                   {"cos", to<&RotaryArgs::cos>},
                   {"sin", to<&RotaryArgs::sin>},
                   {"y", to<&RotaryArgs::y>}});
}

}  // namespace

Ops rotary_ops() { return {{rotary_kind, plan_rotary}}; }

}  // namespace gpubench::cuda
