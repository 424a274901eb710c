#include "reference/cuda/plans.h"

#include <array>
#include <cmath>
#include <optional>

#include "reference/cuda/kernels/quantize.h"
#include "reference/ops/quantize.h"

namespace gpubench::cuda {
namespace {

constexpr std::size_t alignment = 256;

std::size_t rounded_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

Eight eight_of(const Quantize& attributes) {
  if (attributes.to == DType::f8_e4m3) return attributes.saturate ? Eight::e4m3 : Eight::e4m3_unsaturated;
  return attributes.saturate ? Eight::e5m2 : Eight::e5m2_unsaturated;
}

// From f32, f16 or bf16. Values in another order than x go through the workspace.
Plan plan_quantize(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[0];
  const TensorSpec& values = tensors[2];
  for (const std::size_t i : {1U, 3U, 4U}) expect_type(call, tensors[i], DType::f32);
  const std::int64_t elements = x.shape.elements();
  const bool same_order = share_one_run(std::array{x, values});
  const RowView rows = same_order ? RowView{1, elements, elements} : rows_of(call, x);
  QuantizeArgs args;
  args.from = float_element(call, x);
  args.to = eight_of(call.attributes.as<Quantize>());
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.parts = quantize_parts(elements, context.device.multiprocessors);
  std::optional<MoveArgs> onward;
  if (!same_order && !values.layout.is_row_major(values.shape)) {
    TensorSpec in_order = values;
    in_order.layout = Layout::row_major(values.shape);
    onward = move_of(call, in_order, values);
  }
  const std::size_t partial_bytes = rounded_up(static_cast<std::size_t>(args.parts) * sizeof(std::uint32_t));
  const std::size_t bytes = partial_bytes + (onward ? static_cast<std::size_t>(elements) : 0);
  return plan_of(own_implementation(context), bytes,
                 [args, onward, partial_bytes](std::span<const Tensor> bound, Workspace space) {
                   QuantizeArgs work = args;
                   work.x = bound[0].data;
                   work.scale = elements_of<const float>(bound[1]);
                   work.values = elements_of<std::uint8_t>(bound[2]);
                   work.inverse = elements_of<float>(bound[3]);
                   work.amax = elements_of<float>(bound[4]);
                   work.partial = reinterpret_cast<std::uint32_t*>(space.data);
                   std::optional<MoveArgs> move = onward;
                   if (move) {
                     move->to = work.values;
                     work.values = reinterpret_cast<std::uint8_t*>(space.data + partial_bytes);
                     move->from = work.values;
                   }
                   return [work, move](cudaStream_t stream) {
                     launch_quantize(work, stream);
                     if (move) launch_move(*move, stream);
                     check_launch("quantize");
                   };
                 });
}

// From f32, f16 or bf16; x in rows, or dense for blocks.
Plan plan_amax(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[0];
  const RowView rows = rows_of(call, x);
  QuantizeArgs args;
  args.from = float_element(call, x);
  args.to = Eight::none;
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.parts = quantize_parts(x.shape.elements(), context.device.multiprocessors);
  return own_plan(
      call, context, args, launch_quantize,
      {{"x", to<&QuantizeArgs::x>}, {"amax", to<&QuantizeArgs::amax>}, {workspace_operand, to<&QuantizeArgs::partial>}},
      static_cast<std::size_t>(args.parts) * sizeof(std::uint32_t));
}

Plan plan_scale_from_amax(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const auto& attributes = call.attributes.as<ScaleFromAmax>();
  expect_row_major(call, tensors[0]);
  ScaleFromAmaxArgs args;
  args.count = tensors[0].shape.elements();
  args.room = std::ilogb(largest_finite(attributes.to)) - attributes.margin;
  return own_plan(call, context, args, launch_scale_from_amax,
                  {{"history", to<&ScaleFromAmaxArgs::history>}, {"scale", to<&ScaleFromAmaxArgs::scale>}});
}

Plan plan_quantize_blocks(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const auto& attributes = call.attributes.as<QuantizeBlocks>();
  for (const char* name : {"x", "values", "scales"}) expect_row_major(call, operand[name]);
  QuantizeBlocksArgs args;
  args.from = float_element(call, operand["x"]);
  args.to = static_cast<BlockType>(attributes.format);
  args.covers = attributes.covers;
  args.elements = operand["x"].shape.elements();
  args.blocks = quantize_parts(args.elements, context.device.multiprocessors);
  return own_plan(call, context, args, launch_quantize_blocks,
                  {{"x", to<&QuantizeBlocksArgs::x>},
                   {"scale", to<&QuantizeBlocksArgs::scale>},
                   {"values", to<&QuantizeBlocksArgs::values>},
                   {"scales", to<&QuantizeBlocksArgs::scales>}});
}

}  // namespace

Ops quantize_ops() {
  return {{amax_kind, plan_amax},
          {quantize_blocks_kind, plan_quantize_blocks},
          {quantize_kind, plan_quantize},
          {scale_from_amax_kind, plan_scale_from_amax}};
}

}  // namespace gpubench::cuda
