#include "reference/ops/conv2d.h"

#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

constexpr OpKind conv2d{"conv2d"};

void check(const Conv2d& a) {
  const bool positive = a.stride_h > 0 && a.stride_w > 0 && a.dilation_h > 0 && a.dilation_w > 0 && a.groups > 0;
  if (!positive || a.pad_h < 0 || a.pad_w < 0) {
    throw ProgramError("conv2d: attributes {" + describe(a) +
                       "}; expected strides, dilations and groups of at least 1, no negative pad");
  }
}

// Output positions along one axis; less than 1 if the filter is larger than the padded input.
std::int64_t positions(std::int64_t extent, std::int64_t filter, std::int64_t stride, std::int64_t pad,
                       std::int64_t dilation) {
  const std::int64_t room = extent + 2 * pad - dilation * (filter - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

ValueId append_one(Program& program, OpKind kind, const Conv2d& attributes, const Math& math, std::string label,
                   ValueId first, ValueId second, const Shape& shape, Role role) {
  expect_float(kind, program.spec(first));
  expect_dtype(kind, program.spec(second), program.spec(first).dtype);
  const DType type = program.spec(first).dtype;
  const ValueId output = reserve_output(program, first, label, type, shape, role);
  program.append({kind, attributes, math, {first, second}, {output}, std::move(label)});
  return output;
}

}  // namespace

Conv2dExtents extents_of(const Conv2d& attributes, const Shape& x, const Shape& filter) {
  check(attributes);
  if (x.rank() != 4) refuse_shape(conv2d, "x", x, "", "[n, h, w, c]");
  if (filter.rank() != 4) refuse_shape(conv2d, "filter", filter, "", "[k, r, s, c / groups]");
  Conv2dExtents e{x[0], x[1], x[2], x[3], filter[0], filter[1], filter[2], 0, 0};
  if (e.c % attributes.groups != 0 || e.k % attributes.groups != 0) {
    refuse_shape(conv2d, "filter", filter, "",
                 std::to_string(attributes.groups) + " groups that divide its k and the " + std::to_string(e.c) +
                     " channels of x");
  }
  if (filter[3] != e.c / attributes.groups) {
    refuse_shape(conv2d, "filter", filter, "",
                 std::to_string(e.c / attributes.groups) + " channels per group, as x " + x.to_string() + " has");
  }
  e.p = positions(e.h, e.r, attributes.stride_h, attributes.pad_h, attributes.dilation_h);
  e.q = positions(e.w, e.s, attributes.stride_w, attributes.pad_w, attributes.dilation_w);
  if (e.r < 1 || e.s < 1 || e.p < 1 || e.q < 1) {
    refuse_shape(conv2d, "filter", filter, "",
                 "one that fits into the padded input " + x.to_string() + " with {" + describe(attributes) + "}");
  }
  return e;
}

ValueId conv2d_forward(Program& program, const Conv2d& attributes, const Math& math, std::string label, ValueId x,
                       ValueId filter) {
  const Conv2dExtents e = extents_of(attributes, program.spec(x).shape, program.spec(filter).shape);
  return append_one(program, conv2d_forward_kind, attributes, math, std::move(label), x, filter, {e.n, e.p, e.q, e.k},
                    Role::activation);
}

ValueId conv2d_backward_data(Program& program, const Conv2d& attributes, const Math& math, std::string label,
                             ValueId dy, ValueId filter, std::int64_t h, std::int64_t w) {
  const Shape& gradient = program.spec(dy).shape;
  const Shape& weights = program.spec(filter).shape;
  if (gradient.rank() != 4) refuse_shape(conv2d, "dy", gradient, "", "[n, p, q, k]");
  if (weights.rank() != 4) refuse_shape(conv2d, "filter", weights, "", "[k, r, s, c / groups]");
  const Shape x{gradient[0], h, w, weights[3] * attributes.groups};
  const Conv2dExtents e = extents_of(attributes, x, weights);
  expect_shape(conv2d_backward_data_kind, program.spec(dy), {e.n, e.p, e.q, e.k});
  return append_one(program, conv2d_backward_data_kind, attributes, math, std::move(label), dy, filter, x,
                    Role::gradient);
}

ValueId conv2d_backward_filter(Program& program, const Conv2d& attributes, const Math& math, std::string label,
                               ValueId x, ValueId dy, std::int64_t r, std::int64_t s) {
  const Shape& data = program.spec(x).shape;
  const Shape& gradient = program.spec(dy).shape;
  check(attributes);
  if (data.rank() != 4) refuse_shape(conv2d, "x", data, "", "[n, h, w, c]");
  if (gradient.rank() != 4) refuse_shape(conv2d, "dy", gradient, "", "[n, p, q, k]");
  const Shape filter{gradient[3], r, s, data[3] / attributes.groups};
  const Conv2dExtents e = extents_of(attributes, data, filter);
  expect_shape(conv2d_backward_filter_kind, program.spec(dy), {e.n, e.p, e.q, e.k});
  return append_one(program, conv2d_backward_filter_kind, attributes, math, std::move(label), x, dy, filter,
                    Role::gradient);
}

Builders conv2d_builders() {
  return {{conv2d_backward_data_kind, in_turn<conv2d_backward_data>},
          {conv2d_backward_filter_kind, in_turn<conv2d_backward_filter>},
          {conv2d_forward_kind, in_turn<conv2d_forward>}};
}

}  // namespace gpubench
