#include "reference/cuda/rotary.h"

#include "reference/cuda/kernels/rotary.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/rotary.h"

namespace gpubench::cuda {
namespace {

HeadStrides strides_of(const TensorSpec& tensor) {
  const std::vector<std::int64_t>& strides = tensor.layout.strides;
  return {strides[0], strides[1], strides[2]};
}

}  // namespace

Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Rotary& attributes = call.attributes.as<Rotary>();
  const TensorSpec& x = tensors[0];
  const TensorSpec& y = tensors[3];
  expect_same_type(call, x, y);
  RotaryArgs args;
  args.type = any_element(call, x);
  for (const TensorSpec& table : {tensors[1], tensors[2]}) {
    expect_type(call, table, x.dtype == DType::f64 ? DType::f64 : DType::f32);
    expect_row_major(call, table);
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
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    RotaryArgs work = args;
    work.x = bound[0].data;
    work.cos = bound[1].data;
    work.sin = bound[2].data;
    work.y = bound[3].data;
    return [work](cudaStream_t stream) {
      launch_rotary(work, stream);
      check_launch("the rotary kernel");
    };
  });
}

}  // namespace gpubench::cuda
