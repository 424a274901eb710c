// Attention (reference/ops/attention.h) as cuDNN graphs of single operations, in the order that cuDNN's fused attention
// engines recognize. Scores, log-sum-exp and sums are f32; probabilities are rounded to the tensors' type before the
// product with v. Calls without a cuDNN engine run on own kernels (tiled_attention.cpp).
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "reference/cuda/cudnn.h"
#include "reference/cuda/cudnn_plan.h"
#include "reference/cuda/plans.h"
#include "reference/ops/attention.h"

namespace gpubench::cuda {
namespace {

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
    if (attention_.documents) {
      refuse(call, "documents; cuDNN masks them only as ragged tensors, whose offsets and lengths are other tensors");
    }
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
  // [b, h, s] as column vectors [s, 1].
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
  // [hq]
  GraphTensor per_head(std::size_t index) {
    expect_type(call_, tensors_[index], DType::f32);
    return graph_.argument(index, dense(CUDNN_DATA_FLOAT, {1, extents_.hq, 1, 1}));
  }
  GraphShape score_shape(cudnnDataType_t type) const {
    return dense(type, {extents_.b, extents_.hq, extents_.s, extents_.t});
  }
  GraphShape row_shape() const { return dense(CUDNN_DATA_FLOAT, {extents_.b, extents_.hq, extents_.s, 1}); }
  GraphTensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return graph_.internal(score_shape(type)); }
  GraphTensor rows() { return graph_.internal(row_shape()); }

  /// op(x, b), elementwise on scores.
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

  /// scale q k^T; `k` is already transposed.
  GraphTensor scaled_scores(GraphTensor q, GraphTensor k) {
    const GraphTensor products = scores();
    graph_.matmul(q, k, products);
    return scaled(products);
  }
  GraphTensor scaled(GraphTensor x) {
    return on_scores(CUDNN_POINTWISE_MUL, x, graph_.constant(static_cast<float>(attention_.scale)));
  }

  /// cap tanh(x / cap) if there is a softcap; stores x / cap for uncapped().
  GraphTensor capped(GraphTensor x) {
    if (attention_.softcap == 0.0) return x;
    const GraphTensor cap = graph_.constant(static_cast<float>(attention_.softcap));
    before_tanh_ = on_scores(CUDNN_POINTWISE_DIV, x, cap);
    return on_scores(CUDNN_POINTWISE_MUL, on_scores(CUDNN_POINTWISE_TANH_FWD, before_tanh_), cap);
  }
  /// Gradient of scale q k^T, from the gradient of capped()'s result.
  GraphTensor uncapped(GraphTensor gradient) {
    if (attention_.softcap == 0.0) return gradient;
    const GraphTensor y = scores();
    graph_.pointwise_backward(CUDNN_POINTWISE_TANH_BWD, before_tanh_, gradient, y);
    return y;
  }

  /// Sets masked scores to minus infinity, whose exponential is 0. Query i sees key j if i + t - s >= j and, with a
  /// window, j + window - (t - s) > i.
  GraphTensor masked(GraphTensor x) {
    if (!attention_.causal) return x;
    const std::int64_t offset = extents_.t - extents_.s;
    if (offset < 0)
      refuse(call_,
             fmt::format("{} causal queries for {} keys; expected at most one query per key", extents_.s, extents_.t));
    GraphTensor y = where(x, shifted(index(query_axis, x), offset), CUDNN_POINTWISE_CMP_GE, index(key_axis, x));
    if (attention_.window > 0) {
      y = where(y, shifted(index(key_axis, x), attention_.window - offset), CUDNN_POINTWISE_CMP_GT,
                index(query_axis, x));
    }
    return y;
  }

 private:
  static constexpr std::int64_t query_axis = 2, key_axis = 3;

  GraphTensor index(std::int64_t axis, GraphTensor x) {
    const GraphTensor y = scores(CUDNN_DATA_INT32);
    graph_.index_along(axis, x, y);
    return y;
  }
  GraphTensor shifted(GraphTensor index, std::int64_t by) {
    return by == 0 ? index : on_scores(CUDNN_POINTWISE_ADD, index, graph_.constant(static_cast<float>(by)));
  }
  GraphTensor where(GraphTensor x, GraphTensor left, cudnnPointwiseMode_t compare, GraphTensor right) {
    const GraphTensor seen = scores(CUDNN_DATA_BOOLEAN);
    graph_.pointwise(compare, left, right, seen);
    const GraphTensor y = scores();
    graph_.select(seen, x, graph_.constant(-std::numeric_limits<float>::infinity()), y);
    return y;
  }

  const OpCall& call_;
  std::span<const TensorSpec> tensors_;
  const Attention& attention_;
  GraphTensor before_tanh_;
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
  const bool sinks = call.attributes.has("sinks");
  const std::size_t outputs = call.inputs.size();
  const GraphTensor o = build.argument(outputs);
  const GraphTensor lse = build.log_sum_exp(outputs + 1);
  const auto on_rows = [&](cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor b) {
    const GraphTensor y = build.rows();
    graph.pointwise(mode, x, b, y);
    return y;
  };

  const GraphTensor scores = build.masked(build.capped(build.scaled_scores(q, k)));
  GraphTensor largest = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const GraphTensor sink = sinks ? build.per_head(3) : GraphTensor();
  if (sinks) largest = on_rows(CUDNN_POINTWISE_MAX, largest, sink);
  const GraphTensor exponentials =
      build.on_scores(CUDNN_POINTWISE_EXP, build.on_scores(CUDNN_POINTWISE_SUB, scores, largest));
  GraphTensor sum = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  if (sinks) {
    const GraphTensor of_sink = build.rows();
    graph.pointwise(CUDNN_POINTWISE_EXP, on_rows(CUDNN_POINTWISE_SUB, sink, largest), of_sink);
    sum = on_rows(CUDNN_POINTWISE_ADD, sum, of_sink);
  }
  const GraphTensor log_of_sum = build.rows();
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, log_of_sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, log_of_sum, lse);

  const GraphTensor probabilities = build.scores(build.type());
  graph.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
  graph.matmul(probabilities, v, o);
  return build.done();
}

namespace {

// gradient = left^T right, where `left` holds scores of all query heads. Sums over query heads that share a head of k
// and v. `width`: elements per row of `right`.
void key_gradient(Builder& build, GraphTensor left, GraphTensor right, std::size_t gradient, std::int64_t width) {
  CudnnGraph& graph = build.graph();
  const AttentionExtents& e = build.extents();
  const GraphTensor turned = graph.internal(Builder::transposed(build.score_shape(build.type())));
  graph.reshape(left, turned);
  const GraphTensor result = build.argument(gradient);
  if (e.hq == e.hkv) {
    graph.matmul(turned, right, result);
    return;
  }
  const GraphTensor per_query_head = graph.internal(dense(build.type(), {e.b, e.hq, e.t, width}));
  graph.matmul(turned, right, per_query_head);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, per_query_head, result);
}

}  // namespace

CudnnGraph attention_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors, bool direct_dq) {
  Builder build(call, tensors, 1);
  CudnnGraph& graph = build.graph();
  const AttentionExtents& e = build.extents();
  if (call.attributes.has("sinks")) {
    refuse(call, "the gradient of sinks: cuDNN has no engine for a sum of negated terms beside the other gradients");
  }
  if (e.s == 1) refuse(call, "sequences of length 1; cuDNN's fused gradient needs at least 2");
  const GraphTensor d_o = build.argument(0);
  const GraphTensor q = build.argument(1);
  const GraphTensor k = build.transposed_argument(2);
  const GraphTensor v = build.transposed_argument(3);
  const GraphTensor o = build.argument(4);
  const GraphTensor lse = build.log_sum_exp(5);
  const std::size_t dq = call.inputs.size(), dk = dq + 1, dv = dq + 2;

  // delta = sum of do o. The engines need it in memory, and as a product with a constant.
  const GraphTensor products = graph.internal(dense(CUDNN_DATA_FLOAT, {e.b, e.hq, e.s, e.d_v}));
  graph.pointwise(CUDNN_POINTWISE_MUL, d_o, o, products);
  const GraphTensor sums = build.rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const GraphTensor delta = graph.scratch(build.row_shape());
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.constant(1.0F), delta);

  const GraphTensor exponents =
      build.masked(build.on_scores(CUDNN_POINTWISE_SUB, build.capped(build.scaled_scores(q, k)), lse));
  const GraphTensor probabilities = build.on_scores(CUDNN_POINTWISE_EXP, exponents);
  key_gradient(build, probabilities, d_o, dv, e.d_v);

  const GraphTensor dp = build.scores();
  graph.matmul(d_o, v, dp);
  const GraphTensor ds = build.scaled(build.uncapped(
      build.on_scores(CUDNN_POINTWISE_MUL, build.on_scores(CUDNN_POINTWISE_SUB, dp, delta), probabilities)));
  key_gradient(build, ds, q, dk, e.d);

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

// cuDNN's front end avoids such graphs in earlier versions. Up to 9.15 it pads lengths that are not multiples of 128,
// before 9.10 it masks with the lowest finite number, and before 9.6 it zeroes the sum of dq.
constexpr std::size_t first_version = 91600;

void expect_version(const OpCall& call) {
  if (cudnnGetVersion() >= first_version) return;
  refuse(call, fmt::format("cuDNN {} is too old for fused attention; expected 9.16 or newer", cudnn_version()));
}

// cuDNN's plan if it has one, else the own plan. A pinned name permits only the plan of that name.
template <class PlanByCudnn>
Plan cudnn_or_own(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context,
                  PlanFunction* plan_own, const PlanByCudnn& plan_by_cudnn) {
  const std::string& pinned = context.options.pinned;
  if (pinned == own_implementation(context)) return plan_own(call, tensors, context);
  try {
    return plan_by_cudnn();
  } catch (const Unsupported& by_cudnn) {
    if (!pinned.empty()) throw;
    try {
      return plan_own(call, tensors, context);
    } catch (const Unsupported& own_refusal) {
      throw Unsupported(fmt::format("{}; {}", by_cudnn.what(), own_refusal.what()));
    }
  }
}

// f16 and bf16 (f32 only as TF32, forward only); q, k, v, o and their gradients may be strided parts of packed
// storages; head sizes are multiples of 8.
// Backward with `context.options.deterministic` sums dq without atomic additions; it keeps scores of all heads in a
// workspace of b hq s^2 elements.
// Calls that cuDNN refuses are planned as tiled attention.
Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return cudnn_or_own(call, tensors, context, plan_tiled_attention_forward, [&] {
    expect_version(call);
    return plan_graph(call, tensors, attention_forward_graph(call, tensors), context);
  });
}

Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return cudnn_or_own(call, tensors, context, plan_tiled_attention_backward, [&] {
    expect_version(call);
    return plan_graph(call, tensors, attention_backward_graph(call, tensors, context.options.deterministic), context);
  });
}

}  // namespace

Ops attention_ops() {
  return {{attention_backward_kind, plan_attention_backward}, {attention_forward_kind, plan_attention_forward}};
}

}  // namespace gpubench::cuda
