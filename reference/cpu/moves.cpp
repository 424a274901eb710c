// copy, transpose and reorder: the same elements in another place.
#include "reference/cpu/plans.h"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "reference/cpu/memory_shapes.h"
#include "reference/cpu/move.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"
#include "reference/ops/move.h"

namespace gpubench::cpu {
namespace {

void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming) {
  if (streaming) {
    stream_store(to, from, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

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

Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const std::int64_t elements = tensors[0].shape.elements();
  const bool one_run = share_one_run(tensors);
  const RowView from = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[0]);
  const RowView to = one_run ? from : rows_of(call, tensors[1]);
  const auto size = static_cast<std::int64_t>(size_of(tensors[0].dtype));
  const bool streaming = worth_streaming(tensors[1].bytes());
  return plan_of(own_implementation(), 0, [=, threads = context.threads](std::span<const Tensor> bound, Workspace) {
    const std::byte* x = bound[0].data;
    std::byte* y = bound[1].data;
    return [=] {
      if (one_run) {
        parallel_chunks(threads, elements * size, element_grain * 4, [=](std::int64_t begin, std::int64_t end) {
          move_bytes(y + begin, x + begin, end - begin, streaming);
          stream_fence();
        });
        return;
      }
      parallel_chunks(threads, to.rows, row_grain(to.columns), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          move_bytes(y + row * to.stride * size, x + row * from.stride * size, to.columns * size, streaming);
        }
        stream_fence();
      });
    };
  });
}

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
