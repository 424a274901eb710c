#include "reference/ops/pool.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_indexed = 256;    // indices are u8
constexpr std::int64_t widest = 0x7FFFFFFF;  // its square fits std::int64_t

bool fits(const PoolAxis& axis) {
  const bool in_range = axis.window > 0 && axis.window <= widest && axis.stride > 0 && axis.pad >= 0;
  return in_range && axis.pad < axis.window && axis.pad <= axis.extent && axis.window - 2 * axis.pad <= axis.extent;
}

ValueId backward(Program& program, OpKind kind, const Pool& attributes, const Math& math, std::string label,
                 std::vector<ValueId> inputs, std::int64_t h, std::int64_t w) {
  const TensorSpec dy = program.spec(inputs.front());
  expect_float(kind, dy);
  expect_axes(kind, dy, 4, "[n, p, q, c]");
  const PoolExtents e = pool_extents(kind, attributes, {dy.shape[0], h, w, dy.shape[3]});
  for (const ValueId input : inputs) expect_shape(kind, program.spec(input), e.output());
  const ValueId dx = reserve_output(program, inputs.front(), label, dy.dtype, e.input(), Role::gradient);
  program.append({kind, attributes, math, std::move(inputs), {dx}, std::move(label)});
  return dx;
}

}  // namespace

PoolExtents pool_extents(OpKind kind, const Pool& a, const Shape& x) {
  if (x.rank() != 4 || x.elements() == 0) refuse_shape(kind, "x", x, "", "[n, h, w, c] with at least one element");
  const PoolExtents e{x[0],
                      x[3],
                      {x[1], a.window_h, a.stride_h, a.pad_h, a.ceil_mode},
                      {x[2], a.window_w, a.stride_w, a.pad_w, a.ceil_mode}};
  if (!fits(e.vertical) || !fits(e.horizontal)) {
    refuse_shape(kind, "x", x, " and attributes {" + describe(a) + "}",
                 "windows that fit into the padded input, strides of at least 1 and padding narrower than the window");
  }
  if (kind == max_pool_forward_kind && a.window_h * a.window_w > max_indexed) {
    refuse_shape(kind, "x", x, " and attributes {" + describe(a) + "}",
                 "windows of at most 256 elements, the limit of an 8-bit index");
  }
  return e;
}

MaxPoolForward max_pool_forward(Program& program, const Pool& attributes, const Math& math, std::string label,
                                ValueId x) {
  const TensorSpec data = program.spec(x);
  expect_float(max_pool_forward_kind, data);
  const PoolExtents e = pool_extents(max_pool_forward_kind, attributes, data.shape);
  const MaxPoolForward out{reserve_output(program, x, label, data.dtype, e.output(), role_of_result(program, {x})),
                           reserve_output(program, x, label + ".index", DType::u8, e.output(), Role::activation)};
  program.append({max_pool_forward_kind, attributes, math, {x}, {out.y, out.index}, std::move(label)});
  return out;
}

ValueId max_pool_backward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId dy,
                          ValueId index, std::int64_t h, std::int64_t w) {
  expect_dtype(max_pool_backward_kind, program.spec(index), DType::u8);
  return backward(program, max_pool_backward_kind, attributes, math, std::move(label), {dy, index}, h, w);
}

ValueId average_pool_forward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId x) {
  const TensorSpec data = program.spec(x);
  expect_float(average_pool_forward_kind, data);
  const PoolExtents e = pool_extents(average_pool_forward_kind, attributes, data.shape);
  const ValueId y = reserve_output(program, x, label, data.dtype, e.output(), role_of_result(program, {x}));
  program.append({average_pool_forward_kind, attributes, math, {x}, {y}, std::move(label)});
  return y;
}

ValueId average_pool_backward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId dy,
                              std::int64_t h, std::int64_t w) {
  return backward(program, average_pool_backward_kind, attributes, math, std::move(label), {dy}, h, w);
}

ValueId global_average_pool_forward(Program& program, const Math& math, std::string label, ValueId x) {
  const Shape& shape = program.spec(x).shape;
  if (shape.rank() != 4) refuse_shape(average_pool_forward_kind, program.spec(x).name, shape, "", "[n, h, w, c]");
  return average_pool_forward(program, {.window_h = shape[1], .window_w = shape[2]}, math, std::move(label), x);
}

Builders pool_builders() {
  return {{average_pool_backward_kind, in_turn<average_pool_backward>},
          {average_pool_forward_kind, in_turn<average_pool_forward>},
          {max_pool_backward_kind, in_turn<max_pool_backward>},
          {max_pool_forward_kind, in_turn<max_pool_forward>}};
}

}  // namespace gpubench
