#include "reference/cuda/plans.h"

#include <array>
#include <optional>

#include "reference/cuda/kernels/quantize.h"
#include "reference/ops/quantize.h"

namespace gpubench::cuda {
namespace {

constexpr std::size_t alignment = 256;

std::size_t rounded_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

Plan plan_quantize(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[0];
  const TensorSpec& values = tensors[2];
  for (const std::size_t i : {1U, 3U, 4U}) expect_type(call, tensors[i], DType::f32);
  const std::int64_t elements = x.shape.elements();
  const bool same_order = share_one_run(std::array{x, values});
  const RowView rows = same_order ? RowView{1, elements, elements} : rows_of(call, x);
  QuantizeArgs args;
  args.from = float_element(call, x);
  args.to = values.dtype == DType::f8_e4m3 ? Eight::e4m3 : Eight::e5m2;
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

}  // namespace gpubench::cuda
