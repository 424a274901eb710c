#include "reference/cpu/reorder.h"

#include <fmt/core.h>

#include <array>
#include <numeric>
#include <vector>

#include "reference/cpu/memory_shapes.h"
#include "reference/cpu/move.h"
#include "reference/cpu/onednn.h"
#include "reference/ops/elementwise.h"

namespace gpubench::cpu {
namespace {

Plan plan_own_move(const Shape& shape, const Layout& from, const Layout& to, std::size_t element_bytes, int threads) {
  auto move = std::make_shared<const Move>(shape, from, to, element_bytes);
  return plan_of(own_implementation(), 0, [move, threads](std::span<const Tensor> bound, Workspace) {
    return [move, threads, x = bound[0].data, y = bound[1].data] { move->run(threads, x, y); };
  });
}

Plan plan_library_move(const OneDnnWork& work) {
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work](std::span<const Tensor> bound, Workspace workspace) {
                   const std::array<std::byte*, 2> operands{bound[0].data, bound[1].data};
                   return work.bind(operands, workspace.data);
                 });
}

// `x` seen with the axes of `y`.
Plan plan_move(const OpCall& call, const TensorSpec& x, const Layout& x_layout, const TensorSpec& y,
               const CpuContext& context) {
  if (x.dtype != y.dtype) {
    refuse(call, fmt::format("{} and {} differ in type; expected the same", x.to_string(), y.to_string()));
  }
  if (x_layout.blocks.empty() && y.layout.blocks.empty() && y.shape.rank() > 0) {
    TensorSpec seen = x;
    seen.shape = y.shape;
    seen.layout = x_layout;
    std::vector<int> axes(static_cast<std::size_t>(y.shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    try {
      const OneDnnWork work = reorder_work(context.onednn, memory_shape(call, seen, axes), memory_shape(call, y, axes));
      if (!work.is_reference_code()) return plan_library_move(work);
    } catch (const Unsupported&) {
      // A type that the library does not move: ours moves bytes of any type.
    }
  }
  return plan_own_move(y.shape, x_layout, y.layout, size_of(y.dtype), context.threads);
}

}  // namespace

Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const TensorSpec& x = tensors[0];
  if (!x.layout.blocks.empty()) {
    refuse(call,
           fmt::format("tensor {} has layout {}; expected plain strides", x.to_string(), x.layout.to_string(x.shape)));
  }
  Layout permuted;
  for (const int axis : call.attributes.as<Transpose>().permutation) {
    permuted.strides.push_back(x.layout.strides[static_cast<std::size_t>(axis)]);
  }
  return plan_move(call, x, permuted, tensors[1], context);
}

Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_move(call, tensors[0], tensors[0].layout, tensors[1], context);
}

}  // namespace gpubench::cpu
