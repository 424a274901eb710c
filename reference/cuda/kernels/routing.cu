// A warp per token. The j-th largest logit is the largest after the previous one, by falling score and rising index, so
// that no mark is needed. A token's logits, a few hundred at most, are reloaded from the L1 cache.
#include "reference/cuda/kernels/tokens.h"

#include "reference/cuda/kernels/softmax.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 128;

/// Scores of a token, distributed over a warp.
template <class T>
struct TokenScores {
  using W = Wide<T>;
  const T* logits;
  bool softmax;
  W shift = 0, factor = 0;  // for softmax

  __device__ __forceinline__ TokenScores(const RoutingArgs& args, std::int64_t token)
      : logits(static_cast<const T*>(args.logits) + token * args.experts), softmax(args.softmax) {
    if (!softmax) return;
    Softmax<W> seen;
    for (int i = lane(); i < args.experts; i += warp_lanes) add_pack(load_pack<1>(logits + i), seen);
    seen = warp_softmax(seen);
    shift = shift_of(seen.largest);
    factor = W(1) / seen.sum;
  }
  [[nodiscard]] static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % warp_lanes; }
  [[nodiscard]] __device__ __forceinline__ W operator[](int expert) const {
    const W x = widen(load(logits + expert));
    return softmax ? exp_of_difference(x, shift) * factor : W(1) / (W(1) + full_exp(-x));
  }
};

template <class W>
struct Candidate {
  W key;
  int index;  // -1: none
};

template <class W>
__device__ __forceinline__ bool before(Candidate<W> a, Candidate<W> b) {
  if (a.index < 0 || b.index < 0) return b.index < 0;
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}

template <class T>
__global__ void __launch_bounds__(threads) routing_forward_kernel(RoutingArgs args) {
  using W = Wide<T>;
  const int lane = TokenScores<T>::lane();
  for (std::int64_t token = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes;
       token < args.tokens; token += static_cast<std::int64_t>(gridDim.x) * (threads / warp_lanes)) {
    const TokenScores<T> score(args, token);
    const auto* bias = static_cast<const W*>(args.bias);
    const auto key_of = [&](int i) {
      return bias != nullptr ? score[i] + load(bias + i) : widen(load(score.logits + i));
    };
    Candidate<W> last{W(INFINITY), -1};
    int own = -1;  // lane j has the j-th expert
    for (int j = 0; j < args.k; ++j) {
      Candidate<W> best{W(0), -1};
      for (int i = lane; i < args.experts; i += warp_lanes) {
        const Candidate<W> one{key_of(i), i};
        const bool left = one.key < last.key || (one.key == last.key && i > last.index);
        if (left && before(one, best)) best = one;
      }
#pragma unroll
      for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
        const Candidate<W> other{__shfl_xor_sync(whole_warp, best.key, offset),
                                 __shfl_xor_sync(whole_warp, best.index, offset)};
        if (other.index >= 0 && before(other, best)) best = other;
      }
      if (lane == j) own = best.index;
      last = best;
    }
    const W of_own = own >= 0 ? score[own] : W(0);
    const W sum = warp_sum(of_own);
    if (lane >= args.k) continue;
    store(args.indices + token * args.k + lane, own);
    store(static_cast<W*>(args.weights) + token * args.k + lane,
          (args.normalize ? of_own / sum : of_own) * static_cast<W>(args.scale));
  }
}

template <class T>
__global__ void __launch_bounds__(threads) routing_backward_kernel(RoutingArgs args) {
  using W = Wide<T>;
  const int lane = TokenScores<T>::lane();
  const bool all = args.softmax && !args.normalize;  // all experts have a gradient, not only the chosen ones
  for (std::int64_t token = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes;
       token < args.tokens; token += static_cast<std::int64_t>(gridDim.x) * (threads / warp_lanes)) {
    const TokenScores<T> score(args, token);
    int own = -1;
    W own_dw = 0, of_own = 0;
    if (lane < args.k) {
      own = load(args.indices + token * args.k + lane);
      own_dw = load(static_cast<const W*>(args.dweights) + token * args.k + lane);
      if (own >= 0 && own < args.experts) {
        of_own = score[own];
      } else {
        own = -1;
      }
    }
    const W sum = warp_sum(of_own);
    const W share = args.normalize ? W(1) / sum : W(1);
    W projection = warp_sum(own >= 0 ? of_own * share * own_dw : W(0));
    if (!args.softmax && !args.normalize) projection = 0;
    for (int first = 0; first < args.experts; first += warp_lanes) {
      const int i = first + lane;
      bool chosen = false;
      W h = 0;
      for (int j = 0; j < args.k; ++j) {
        const int index = __shfl_sync(whole_warp, own, j);
        const W dw = __shfl_sync(whole_warp, own_dw, j);
        if (index != i) continue;
        chosen = true;
        h += dw;
      }
      if (i >= args.experts) continue;
      W dx = 0;
      if (chosen || all) {
        const W s = score[i];
        dx = static_cast<W>(args.scale) * (s * share) * (args.softmax ? W(1) : W(1) - s) * (h - projection);
      }
      store(static_cast<T*>(args.dlogits) + token * args.experts + i, narrow<T>(dx));
    }
  }
}

}  // namespace

void launch_routing_forward(const RoutingArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    const Grid grid{blocks_for(args.tokens, threads / warp_lanes), threads};
    launch(routing_forward_kernel<typename decltype(type)::type>, grid, stream, args);
  });
}

void launch_routing_backward(const RoutingArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    const Grid grid{blocks_for(args.tokens, threads / warp_lanes), threads};
    launch(routing_backward_kernel<typename decltype(type)::type>, grid, stream, args);
  });
}

}  // namespace gpubench::cuda
