// Attention (reference/ops/attention.h) as cuDNN graphs of single operations, in the order in which cuDNN's fused
// attention engines recognize them. Scores, log-sum-exp and sums are f32; probabilities are rounded to the tensors'
// type before they are multiplied with values.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "reference/cuda/cudnn.h"
#include "reference/cuda/cudnn_ops.h"
#include "reference/cuda/plans.h"
#include "reference/ops/attention.h"

namespace gpubench::cuda {
namespace {

// The graph that is being described, and what both directions put into it.
class Builder {
 public:
  /// `first`: index of q; k and v follow it.
  Builder(const OpCall& call, std::span<const TensorSpec> tensors, std::size_t first)
      : call_(call),
        tensors_(tensors),
        attention_(call.attributes.as<Attention>()),
        extents_(extents_of(tensors[first].shape, tensors[first + 1].shape, tensors[first + 2].shape)),
        type_(cudnn_type(tensors[first].dtype)) {
    expect_f32_sums(call);
  }

  CudnnGraph& graph() { return graph_; }
  const AttentionExtents& extents() const { return extents_; }
  cudnnDataType_t type() const { return type_; }
  CudnnGraph done() { return std::move(graph_); }

  // [b, s, h, d] as matrices [s, d] per batch entry and head.
  GraphShape heads(std::size_t index) const {
    const TensorSpec& tensor = tensors_[index];
    expect_strides(call_, tensor);
    const auto& s = tensor.layout.strides;
    return {cudnn_type(tensor.dtype),
            {tensor.shape[0], tensor.shape[2], tensor.shape[1], tensor.shape[3]},
            {s[0], s[2], s[1], s[3]}};
  }
  GraphTensor argument(std::size_t index) { return graph_.argument(index, heads(index)); }
  GraphTensor transposed_argument(std::size_t index) { return graph_.argument(index, transposed(heads(index))); }
  // [b, h, s] as columns [s, 1].
  GraphTensor log_sum_exp(std::size_t index) {
    const TensorSpec& tensor = tensors_[index];
    expect_type(call_, tensor, DType::f32);
    expect_strides(call_, tensor);
    const auto& s = tensor.layout.strides;
    return graph_.argument(
        index, {CUDNN_DATA_FLOAT, {tensor.shape[0], tensor.shape[1], tensor.shape[2], 1}, {s[0], s[1], s[2], 1}});
  }

  static GraphShape transposed(GraphShape shape) {
    std::swap(shape.extents[2], shape.extents[3]);
    std::swap(shape.strides[2], shape.strides[3]);
    return shape;
  }
  GraphShape score_shape(cudnnDataType_t type) const {
    return dense(type, {extents_.b, extents_.hq, extents_.s, extents_.s});
  }
  GraphShape row_shape() const { return dense(CUDNN_DATA_FLOAT, {extents_.b, extents_.hq, extents_.s, 1}); }
  GraphTensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return graph_.internal(score_shape(type)); }
  GraphTensor rows() { return graph_.internal(row_shape()); }

  /// op(x, b) over scores.
  GraphTensor on_scores(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor b) {
    const GraphTensor y = scores();
    graph_.pointwise(mode, x, b, y);
    return y;
  }
  GraphTensor on_scores(cudnnPointwiseMode_t mode, GraphTensor x) {
    const GraphTensor y = scores();
    graph_.pointwise(mode, x, y);
    return y;
  }

  /// scale q k^T; `k`: transposed already.
  GraphTensor scaled_scores(GraphTensor q, GraphTensor k) {
    const GraphTensor products = scores();
    graph_.matmul(q, k, products);
    return scaled(products);
  }
  GraphTensor scaled(GraphTensor x) {
    return on_scores(CUDNN_POINTWISE_MUL, x, graph_.constant(static_cast<float>(attention_.scale)));
  }

  /// Keys that a query does not see get minus infinity, of which the exponential is 0.
  GraphTensor masked(GraphTensor x) {
    if (!attention_.causal) return x;
    constexpr std::int64_t query_axis = 2, key_axis = 3;
    const GraphTensor query = scores(CUDNN_DATA_INT32);
    graph_.index_along(query_axis, x, query);
    const GraphTensor key = scores(CUDNN_DATA_INT32);
    graph_.index_along(key_axis, x, key);
    const GraphTensor seen = scores(CUDNN_DATA_BOOLEAN);
    graph_.pointwise(CUDNN_POINTWISE_CMP_GE, query, key, seen);
    const GraphTensor y = scores();
    graph_.select(seen, x, graph_.constant(-std::numeric_limits<float>::infinity()), y);
    return y;
  }

 private:
  const OpCall& call_;
  std::span<const TensorSpec> tensors_;
  const Attention& attention_;
  AttentionExtents extents_;
  cudnnDataType_t type_;
  CudnnGraph graph_;
};

}  // namespace

CudnnGraph attention_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors) {
  Builder build(call, tensors, 0);
  CudnnGraph& graph = build.graph();
  const GraphTensor q = build.argument(0);
  const GraphTensor k = build.transposed_argument(1);
  const GraphTensor v = build.argument(2);
  const GraphTensor o = build.argument(3);
  const GraphTensor lse = build.log_sum_exp(4);

  const GraphTensor scores = build.masked(build.scaled_scores(q, k));
  const GraphTensor largest = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const GraphTensor exponentials =
      build.on_scores(CUDNN_POINTWISE_EXP, build.on_scores(CUDNN_POINTWISE_SUB, scores, largest));
  const GraphTensor sum = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  const GraphTensor log_of_sum = build.rows();
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, log_of_sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, log_of_sum, lse);

  const GraphTensor probabilities = build.scores(build.type());
  graph.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
  graph.matmul(probabilities, v, o);
  return build.done();
}

namespace {

// gradient = left^T right, where `left` are scores of all query heads; query heads that share a head of k and v are
// summed.
void key_gradient(Builder& build, GraphTensor left, GraphTensor right, std::size_t gradient) {
  CudnnGraph& graph = build.graph();
  const AttentionExtents& e = build.extents();
  const GraphTensor turned = graph.internal(Builder::transposed(build.score_shape(build.type())));
  graph.reshape(left, turned);
  const GraphTensor result = build.argument(gradient);
  if (e.hq == e.hkv) {
    graph.matmul(turned, right, result);
    return;
  }
  const GraphTensor per_query_head = graph.internal(dense(build.type(), {e.b, e.hq, e.s, e.d}));
  graph.matmul(turned, right, per_query_head);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, per_query_head, result);
}

}  // namespace

CudnnGraph attention_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors, bool direct_dq) {
  Builder build(call, tensors, 1);
  CudnnGraph& graph = build.graph();
  const AttentionExtents& e = build.extents();
  if (e.s == 1) refuse(call, "sequences of length 1; cuDNN's fused gradient begins at 2");
  const GraphTensor d_o = build.argument(0);
  const GraphTensor q = build.argument(1);
  const GraphTensor k = build.transposed_argument(2);
  const GraphTensor v = build.transposed_argument(3);
  const GraphTensor o = build.argument(4);
  const GraphTensor lse = build.log_sum_exp(5);
  constexpr std::size_t dq = 6, dk = 7, dv = 8;

  // delta = sum over d of do o. The engines want it in memory, and as a product with a constant.
  const GraphTensor products = graph.internal(dense(CUDNN_DATA_FLOAT, {e.b, e.hq, e.s, e.d}));
  graph.pointwise(CUDNN_POINTWISE_MUL, d_o, o, products);
  const GraphTensor sums = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const GraphTensor delta = graph.scratch(build.row_shape());
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.constant(1.0F), delta);

  const GraphTensor exponents = build.masked(build.on_scores(CUDNN_POINTWISE_SUB, build.scaled_scores(q, k), lse));
  const GraphTensor probabilities = build.on_scores(CUDNN_POINTWISE_EXP, exponents);
  key_gradient(build, probabilities, d_o, dv);

  const GraphTensor dp = build.scores();
  graph.matmul(d_o, v, dp);
  const GraphTensor ds = build.scaled(
      build.on_scores(CUDNN_POINTWISE_MUL, build.on_scores(CUDNN_POINTWISE_SUB, dp, delta), probabilities));
  key_gradient(build, ds, q, dk);

  const GraphTensor k_rows = graph.internal(build.heads(2));
  graph.reshape(k, k_rows);
  if (direct_dq) {
    graph.matmul(ds, k_rows, build.argument(dq));
  } else {
    const GraphTensor sum = graph.scratch(dense(CUDNN_DATA_FLOAT, {e.b, e.hq, e.s, e.d}));
    graph.matmul(ds, k_rows, sum);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, sum, build.argument(dq));
  }
  return build.done();
}

namespace {

// cuDNN's own front end does not hand graphs like these to earlier versions: it pads lengths that are no multiple of
// 128 up to 9.15, masks with the lowest finite number before 9.10, and zeroes the sum of dq before 9.6.
constexpr std::size_t first_version = 91600;

void expect_version(const OpCall& call) {
  if (cudnnGetVersion() >= first_version) return;
  refuse(call, fmt::format("cuDNN {}; expected 9.16 or newer for fused attention", cudnn_version()));
}

}  // namespace

Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_version(call);
  return plan_graph(call, tensors, attention_forward_graph(call, tensors), context);
}

Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_version(call);
  return plan_graph(call, tensors, attention_backward_graph(call, tensors, context.options.deterministic), context);
}

}  // namespace gpubench::cuda
