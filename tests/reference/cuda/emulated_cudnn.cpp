// Replaces cuDNN: own kernels for attention, and convolutions as loops in f32 (f64 for f64) for ops whose later steps
// are own kernels. Channel sums are those of the unrounded product, and missing in f64. Convolutions alone are not
// emulated.
#include <cstring>

#include "reference/cuda/plans.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d_batch_norm.h"

namespace gpubench::cuda {
namespace {

constexpr std::size_t convolution_scratch_bytes = 300;  // all of it is written

/// An element of y [n, p, q, k], summed in order of k.
template <class Wide>
Wide element(const Conv2d& conv, const TensorView& x, const TensorView& filter, const Shape& y, std::int64_t linear) {
  const std::int64_t k = linear % y[3], q = linear / y[3] % y[2], p = linear / y[3] / y[2] % y[1];
  const Shape& weights = filter.shape();
  const std::int64_t first = k / (y[3] / conv.groups) * weights[3];
  Wide sum = 0;
  for (std::int64_t r = 0; r < weights[1]; ++r) {
    for (std::int64_t s = 0; s < weights[2]; ++s) {
      const std::int64_t h = p * conv.stride_h - conv.pad_h + r * conv.dilation_h;
      const std::int64_t w = q * conv.stride_w - conv.pad_w + s * conv.dilation_w;
      if (h < 0 || h >= x.shape()[1] || w < 0 || w >= x.shape()[2]) continue;
      for (std::int64_t c = 0; c < weights[3]; ++c)
        sum += static_cast<Wide>(x.at({linear / (y[1] * y[2] * y[3]), h, w, first + c})) *
               static_cast<Wide>(filter.at({k, r, s, c}));
    }
  }
  return sum;
}

template <class Wide>
void convolve(const Conv2d& conv, std::span<const Tensor> tensors) {
  const TensorView x(tensors[0].spec, tensors[0].data), filter(tensors[1].spec, tensors[1].data);
  const Tensor& y = tensors[2];
  const auto channels = static_cast<std::size_t>(y.spec.shape[3]);
  std::vector<float> sums(2 * channels);
  for (std::int64_t i = 0; i < y.spec.shape.elements(); ++i) {
    const Wide value = element<Wide>(conv, x, filter, y.spec.shape, i);
    store(y.spec.dtype, y.data, i, static_cast<double>(value));
    const auto channel = static_cast<std::size_t>(i) % channels;
    sums[channel] += static_cast<float>(value);
    sums[channels + channel] += static_cast<float>(value) * static_cast<float>(value);
  }
  if (tensors.size() < 5) return;
  std::memcpy(tensors[3].data, sums.data(), channels * sizeof(float));
  std::memcpy(tensors[4].data, sums.data() + channels, channels * sizeof(float));
}

Plan emulated_convolution(const OpCall& call) {
  const Conv2d conv = call.attributes.as<Conv2dBatchNorm>().conv;
  return plan_of("emulated", convolution_scratch_bytes, [conv](std::span<const Tensor> bound, Workspace workspace) {
    return [conv, tensors = std::vector<Tensor>(bound.begin(), bound.end()), workspace](cudaStream_t) {
      std::memset(workspace.data, 0xA5, convolution_scratch_bytes);
      (tensors[0].spec.dtype == DType::f64 ? convolve<double> : convolve<float>)(conv, tensors);
    };
  });
}

}  // namespace

std::vector<Plan> convolution_plans(const OpCall& call, std::span<const TensorSpec> /*tensors*/,
                                    const CudaContext& /*context*/) {
  return {emulated_convolution(call)};
}

std::vector<Plan> convolution_and_sums_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                             const CudaContext& /*context*/) {
  if (tensors[0].dtype == DType::f64) refuse(call, "no sums in f64");
  return {emulated_convolution(call)};
}

Ops attention_ops() {
  return {{attention_backward_kind, plan_tiled_attention_backward},
          {attention_forward_kind, plan_tiled_attention_forward}};
}

Ops conv2d_ops() { return {}; }

}  // namespace gpubench::cuda
