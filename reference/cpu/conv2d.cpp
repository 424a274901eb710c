#include "reference/cpu/kernel.h"

#include <algorithm>
#include <array>
#include <vector>

#include "reference/cpu/onednn.h"
#include "reference/cpu/own_products.h"
#include "reference/ops/conv2d.h"

namespace gpubench::cpu {
namespace {

using Pass = ConvolutionRequest::Pass;

// Calls visit() for source, filter and destination; one or two of them are gradients.
template <class T, class Visit>
void in_library_order(const OpCall& call, std::span<const T> tensors, const Visit& visit) {
  Named<T>(call, tensors).each({"x", "dx", "filter", "dfilter", "y", "dy"}, visit);
}

// [n, h, w, c] in oneDNN's order: n, c, h, w.
MemoryShape image(const OpCall& call, const TensorSpec& tensor) { return memory_shape(call, tensor, {0, 3, 1, 2}); }

// [k, r, s, c / groups] in oneDNN's order: (groups, k / groups,) c / groups, r, s.
MemoryShape filter_shape(const OpCall& call, const TensorSpec& tensor, std::int64_t groups) {
  MemoryShape shape = memory_shape(call, tensor, {0, 3, 1, 2});
  if (groups == 1) return shape;
  const std::int64_t k = shape.extents[0] / groups;
  const std::int64_t k_stride = tensor.layout.strides[0];
  shape.extents[0] = k;
  shape.strides[0] = k_stride;
  shape.extents.insert(shape.extents.begin(), groups);
  shape.strides.insert(shape.strides.begin(), k * k_stride);
  return with_plain_strides(std::move(shape));
}

/// Whether the convolution is a matrix product over all pixels: 1x1 filter, stride 1, no padding or groups.
bool is_product(const Conv2d& attributes, const std::vector<const TensorSpec*>& specs) {
  const Shape& filter = specs[1]->shape;
  return filter[1] == 1 && filter[2] == 1 && attributes.stride_h == 1 && attributes.stride_w == 1 &&
         attributes.pad_h == 0 && attributes.pad_w == 0 && attributes.groups == 1 &&
         std::ranges::all_of(specs, [](const TensorSpec* spec) { return spec->layout.is_row_major(spec->shape); });
}

/// The product, and the positions of its a, b and c among source, filter and destination.
struct Product {
  MatmulRequest request;
  std::array<std::size_t, 3> order;
};

/// With pixels x [p, c], y [p, k] and filter f [k, c]: y = x f^T, dx = dy f, df = dy^T x.
Product product_of(Pass pass, const std::vector<const TensorSpec*>& specs) {
  const std::int64_t k = specs[1]->shape[0], c = specs[1]->shape[3], p = specs[0]->shape.elements() / c;
  const auto matrix = [&](std::size_t which, std::int64_t rows, std::int64_t columns, bool transposed = false) {
    return dense_matrix(specs[which]->dtype, rows, columns, transposed);
  };
  if (pass == Pass::forward)
    return {{.a = matrix(0, p, c), .b = matrix(1, c, k, true), .c = matrix(2, p, k)}, {0, 1, 2}};
  if (pass == Pass::backward_data)
    return {{.a = matrix(2, p, k), .b = matrix(1, k, c), .c = matrix(0, p, c)}, {2, 1, 0}};
  return {{.a = matrix(2, k, p, true), .b = matrix(0, p, c), .c = matrix(1, k, c)}, {2, 0, 1}};
}

// Forward and both gradients. NHWC, f32 and bf16; dfilter may be f32 with bf16 x and dy. If it pays, the work includes
// reordering filters to oneDNN's layout.
Plan plan_conv2d(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Pass pass = call.kind == conv2d_forward_kind         ? Pass::forward
                    : call.kind == conv2d_backward_data_kind ? Pass::backward_data
                                                             : Pass::backward_filter;
  for (const TensorSpec& tensor : tensors) expect_f32_or_bf16(call, tensor);
  expect_f32_sums(call);
  const Conv2d& attributes = call.attributes.as<Conv2d>();
  std::vector<const TensorSpec*> specs;
  in_library_order(call, tensors, [&](const TensorSpec& spec) { specs.push_back(&spec); });
  ConvolutionRequest request;
  request.pass = pass;
  request.source = image(call, *specs[0]);
  request.filter = filter_shape(call, *specs[1], attributes.groups);
  request.destination = image(call, *specs[2]);
  request.stride = {attributes.stride_h, attributes.stride_w};
  request.padding = {attributes.pad_h, attributes.pad_w};
  request.dilation = {attributes.dilation_h, attributes.dilation_w};

  const Shape& filter = specs[1]->shape;
  const double flop = 2.0 * static_cast<double>(specs[2]->shape.elements() * filter[1] * filter[2] * filter[3]);
  const std::size_t ways = candidate_count(flop);
  std::vector<Plan> candidates;
  if (const std::optional<Plan> own = plan_block_conv(call, pass, specs, context.threads)) {
    if (ways == 1 && context.options.pinned.empty()) return *own;
    candidates.push_back(*own);
  }
  const auto add = [&](const OneDnnWork& work, const std::array<std::size_t, 3>& order) {
    candidates.push_back(plan_of(work.implementation(), work.workspace_bytes(),
                                 [work, call, order](std::span<const Tensor> bound, Workspace workspace) {
                                   std::vector<std::byte*> all, operands;
                                   in_library_order(call, bound, [&](const Tensor& t) { all.push_back(t.data); });
                                   for (const std::size_t position : order) operands.push_back(all[position]);
                                   return work.bind(operands, workspace.data);
                                 }));
  };
  add(convolution_work(context.onednn, request), {0, 1, 2});
  if (ways > 1 && is_product(attributes, specs)) {
    const Product product = product_of(pass, specs);
    for (const OneDnnWork& work : matmul_ways(context.onednn, product.request, ways)) add(work, product.order);
  }
  return fastest_of(call, candidates, tensors, context);
}

}  // namespace

Ops conv2d_ops() {
  return {{conv2d_backward_data_kind, plan_conv2d},
          {conv2d_backward_filter_kind, plan_conv2d},
          {conv2d_forward_kind, plan_conv2d}};
}

}  // namespace gpubench::cpu
