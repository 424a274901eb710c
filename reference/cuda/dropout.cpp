#include "reference/ops/dropout.h"

#include <array>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"

namespace gpubench::cuda {
namespace {

// Dense tensors with equal strides, or strided rows.
Plan plan_dropout(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const double p = call.attributes.as<Dropout>().p;
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec &x = operand["x"], &y = operand["y"];
  expect_same_type(call, x, y);
  operand.each({"seed", "offset"}, [&](const TensorSpec& words) {
    expect_type(call, words, DType::i32);
    expect_row_major(call, words);
  });
  const bool one_run = share_one_run(std::array{x, y});
  const std::int64_t elements = x.shape.elements();
  const RowView from = one_run ? RowView{1, elements, elements} : rows_of(call, x);
  const RowView to_rows = one_run ? from : rows_of(call, y);
  DropoutArgs args;
  args.data = any_element(call, x);
  args.rows = from.rows;
  args.columns = from.columns;
  args.x_stride = from.stride;
  args.y_stride = to_rows.stride;
  args.least = static_cast<std::uint32_t>(p * 0x1p32);
  args.factor = 1.0 / (1.0 - p);
  return own_plan(call, context, args, launch_dropout,
                  {{"x", to<&DropoutArgs::x>},
                   {"seed", to<&DropoutArgs::seed>},
                   {"offset", to<&DropoutArgs::offset>},
                   {"y", to<&DropoutArgs::y>}});
}

}  // namespace

Ops dropout_ops() { return {{dropout_kind, plan_dropout}}; }

}  // namespace gpubench::cuda
