// Top-k routing, and its gradient, as launches.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// reference/ops/routing.h; all row-major. Weights and biases are f32, or f64 for f64 logits.
struct RoutingArgs {
  Element data = Element::f32;
  bool softmax = true, normalize = false;
  double scale = 1.0;
  std::int64_t tokens = 0;
  int experts = 0, k = 1;  ///< k <= most_routed
  const void *logits = nullptr, *bias = nullptr;
  int* indices = nullptr;  ///< written by the forward, read by the backward
  void* weights = nullptr;
  const void* dweights = nullptr;
  void* dlogits = nullptr;
};

inline constexpr int most_routed = 32;

void launch_routing_forward(const RoutingArgs& args, cudaStream_t stream);
void launch_routing_backward(const RoutingArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
