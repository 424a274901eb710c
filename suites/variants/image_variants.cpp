// Convolutions, pools and batch normalization.
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/pool.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

constexpr std::int64_t channels = 12, filters = 24;
constexpr std::int64_t convolved = 5, pooled = 9;  // heights

BatchNormChannels channels_of(VariantBuild& call, std::int64_t count) {
  const ValueId gamma = call.wide("gamma", {count}), beta = call.wide("beta", {count});
  return {gamma, beta, call.wide("running_mean", {count}), call.wide("running_var", {count}, Fill::positive(1.0))};
}

void build_conv(VariantBuild& call) {
  const auto& attributes = call.attributes<Conv2d>();
  const ValueId x = call.in("x", {3, convolved, call.n, channels});
  const ValueId filter =
      call.in("filter", {filters, call.other("r"), call.other("s"), channels / attributes.groups}, Fill::normal(0.25));
  call.y = {conv2d_forward(call.p, attributes, call.r.math, call.label, x, filter)};
  call.wanted = {x, filter};
}

void build_conv_batch_norm(VariantBuild& call) {
  const auto& attributes = call.attributes<Conv2dBatchNorm>();
  const Shape x{3, convolved, call.n, channels}, filter{filters, 3, 3, channels / attributes.conv.groups};
  const Conv2dExtents e = extents_of(attributes.conv, x, filter);
  const ValueId image = call.in("x", x), weights = call.in("filter", filter, Fill::normal(0.25));
  const BatchNormChannels of_channels = channels_of(call, filters);
  std::optional<ValueId> r;
  if (attributes.r) r = call.in("r", {e.n, e.p, e.q, e.k});
  (void)conv2d_batch_norm_forward(call.p, attributes, call.r.math, call.label, image, weights, of_channels, r);
}

void build_max_pool(VariantBuild& call) {
  const ValueId x = call.in("x", {3, pooled, call.n, 5});
  call.y = {max_pool_forward(call.p, call.attributes<Pool>(), call.r.math, call.label, x).y};
  call.wanted = {x};
}

void build_average_pool(VariantBuild& call) {
  const ValueId x = call.in("x", {3, pooled, call.n, 5});
  call.y = {average_pool_forward(call.p, call.attributes<Pool>(), call.r.math, call.label, x)};
  call.wanted = {x};
}

void build_batch_norm(VariantBuild& call) {
  const ValueId x = call.in("x", {3, 6, call.n, 5});
  const BatchNormChannels of_channels = channels_of(call, 5);
  call.y = {batch_norm_forward(call.p, call.attributes<BatchNorm>(), call.r.math, call.label, x, of_channels).y};
  call.wanted = {x, of_channels.gamma, of_channels.beta};
}

void build_batch_norm_relu(VariantBuild& call) {
  const auto& attributes = call.attributes<BatchNormRelu>();
  const ValueId x = call.in("x", {3, 6, call.n, 5});
  const BatchNormChannels of_channels = channels_of(call, 5);
  call.wanted = {x, of_channels.gamma, of_channels.beta};
  std::optional<ValueId> r;
  if (attributes.r) call.wanted.push_back(*(r = call.in("r", {3, 6, call.n, 5})));
  call.y = {batch_norm_relu_forward(call.p, attributes.norm, call.r.math, call.label, x, of_channels, r).y};
}

void build_batch_norm_relu_backward(VariantBuild& call) {
  const auto& attributes = call.attributes<BatchNormReluBackward>();
  const Shape shape{3, 6, call.n, 5};
  const ValueId x = call.in("x", shape), dy = call.in("dy", shape);
  const BatchNormChannels of_channels = channels_of(call, 5);
  const BatchNormForward saved =
      batch_norm_relu_forward(call.p, {}, call.r.math, call.label + ".forward", x, of_channels);
  std::optional<ValueId> dy2;
  if (attributes.dy2) dy2 = call.in("dy2", shape);
  (void)batch_norm_relu_backward(call.p, attributes, call.r.math, call.label,
                                 {x, of_channels.gamma, saved.mean, saved.rstd, saved.y}, dy, dy2);
}

std::vector<Factor> pool_factors() {
  return {{"window_h", {2, 3, 5}},
          {"window_w", {2, 3, 4}},
          {"stride_h", {1, 2, 3}},
          {"stride_w", {1, 2, 5}},
          {"pad_h", {0, 1, 2}},
          {"pad_w", {0, 1, 3}},
          {"ceil_mode"}};
}

}  // namespace

std::vector<Variants> image_variants() {
  const Factor epsilons{"epsilon", {1e-5, 0.125}}, momenta{"momentum", {0.1, 1.0, 0.0}};
  std::vector<Factor> mean_factors = pool_factors();
  mean_factors.push_back({"counts_padding"});
  return {
      {"conv2d",
       conv2d_forward_kind,
       {{"stride_h", {1, 2, 3}},
        {"stride_w", {1, 2}},
        {"pad_h", {0, 1, 2}},
        {"pad_w", {0, 3}},
        {"dilation_h", {1, 2}},
        {"dilation_w", {1, 3}},
        {"groups", {1, 3, 12}},
        {"r", {3, 1, 2}},
        {"s", {3, 1, 2}}},
       build_conv,
       suites::training_recipes()},
      {"conv2d_batch_norm",
       conv2d_batch_norm_forward_kind,
       {{"stride_h", {1, 2}},
        {"stride_w", {1, 2}},
        {"pad_h", {0, 1}},
        {"pad_w", {0, 2}},
        {"dilation_h", {1, 2}},
        {"dilation_w", {1, 2}},
        {"groups", {1, 3}},
        epsilons,
        momenta,
        {"relu"},
        {"r"}},
       build_conv_batch_norm,
       suites::training_recipes()},
      {"max_pool", max_pool_forward_kind, pool_factors(), build_max_pool},
      {"average_pool", average_pool_forward_kind, std::move(mean_factors), build_average_pool},
      {"batch_norm", batch_norm_forward_kind, {epsilons, momenta}, build_batch_norm},
      {"batch_norm_relu", batch_norm_relu_forward_kind, {epsilons, momenta, {"r"}}, build_batch_norm_relu},
      {"batch_norm_relu_backward", batch_norm_relu_backward_kind, {{"dy2"}, {"dr"}}, build_batch_norm_relu_backward},
  };
}

}  // namespace gpubench::variants
