// Each thread has several packs of 16 bytes in flight; a block's packs are neighbours. Unaligned addresses or strides
// fall back to single elements, also several in flight.
#include "reference/cuda/kernels/elements.h"

#include "reference/cuda/kernels/gelu.cuh"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

// Ops: numbers of tensors and the elementwise function. Definitions: reference/ops/pointwise.h.
struct CastOf {
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0];
  }
};
struct ScaleOf {
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double factor) {
    y[0] = static_cast<T>(factor) * x[0];
  }
};
struct AddOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] + x[1];
  }
};
struct TriadOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double factor) {
    y[0] = x[0] + static_cast<T>(factor) * x[1];
  }
};
// `repeats` marks ops whose inputs may be repeated.
struct MultiplyOf {
  static constexpr int inputs = 2, outputs = 1;
  using repeats = void;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] * x[1];
  }
};
struct ModulateForwardOf {
  static constexpr int inputs = 3, outputs = 1;
  using repeats = void;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] * (T(1) + x[1]) + x[2];
  }
};
struct ModulateBackwardOf {
  static constexpr int inputs = 2, outputs = 1;
  using repeats = void;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] * (T(1) + x[1]);
  }
};
template <bool tanh>
struct GeluOf {
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = gelu_of<tanh>(x[0]);
  }
};
template <bool tanh>
struct GeluBackwardOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[1] * gelu_slope_of<tanh>(x[0]);
  }
};

struct ReluOf {  // NaN stays
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] < T(0) ? T(0) : x[0];
  }
};
struct ReluBackwardOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] <= T(0) ? T(0) : x[1];
  }
};

struct SquaredReluOf {
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] < T(0) ? T(0) : x[0] * x[0];
  }
};
struct SquaredReluBackwardOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] <= T(0) ? T(0) : (x[0] + x[0]) * x[1];
  }
};

/// s(x) and 1 - s(x) of the logistic function, without cancellation or overflow.
template <class T>
struct Logistic {
  T value, rest;
  __device__ __forceinline__ explicit Logistic(T x) {
    const T e = fast_exp(x < T(0) ? x : -x);
    const T larger = T(1) / (T(1) + e);
    const T smaller = e * larger;
    value = x < T(0) ? smaller : larger;
    rest = x < T(0) ? larger : smaller;
  }
};
struct SiluOf {
  static constexpr int inputs = 1, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] * Logistic<T>(x[0]).value;
  }
};
struct SiluBackwardOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    const Logistic<T> s(x[0]);
    y[0] = x[1] * (s.value * (T(1) + x[0] * s.rest));
  }
};
struct SwigluForwardOf {
  static constexpr int inputs = 2, outputs = 1;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    y[0] = x[0] * Logistic<T>(x[0]).value * x[1];
  }
};
struct SwigluBackwardOf {
  static constexpr int inputs = 3, outputs = 2;
  template <class T>
  static __device__ __forceinline__ void of(const T* x, T* y, double /*none*/) {
    const Logistic<T> s(x[0]);
    y[0] = x[2] * x[1] * (s.value * (T(1) + x[0] * s.rest));
    y[1] = x[2] * (x[0] * s.value);
  }
};

template <class A, class Y, bool is_double = sizeof(Wide<A>) == 8 || sizeof(Wide<Y>) == 8>
using Computed = Wide<std::conditional_t<is_double, double, float>>;

/// Elements per pack: 16 bytes of the narrower type, 32 of the wider.
template <class A, class Y>
constexpr int pack_of() {
  constexpr int narrow_size = sizeof(A) < sizeof(Y) ? sizeof(A) : sizeof(Y);
  return pack_bytes / narrow_size;
}

/// An input's row for a row of y. The first input is never repeated.
template <class Op>
__device__ __forceinline__ std::int64_t row_of(const PointwiseArgs& args, int input, std::int64_t row) {
  if constexpr (requires { typename Op::repeats; }) {
    if (input == 0 || args.repeats[input] == 1) return row;
    return row <= 0xFFFFFFFF && args.repeats[input] <= 0xFFFFFFFF
               ? static_cast<unsigned>(row) / static_cast<unsigned>(args.repeats[input])
               : row / args.repeats[input];
  }
  return row;
}

template <class Op, class A, class Y, int N, int in_flight>
__global__ void __launch_bounds__(threads) pointwise_kernel(PointwiseArgs args) {
  using T = Computed<A, Y>;
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads * in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < packs;
       first += step) {
    Loaded<A, N> loaded[in_flight][Op::inputs];
    PackPlace places[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const std::int64_t count = args.columns - places[k].column;
#pragma unroll
      for (int input = 0; input < Op::inputs; ++input) {
        const std::int64_t row = row_of<Op>(args, input, places[k].row);
        const A* x = static_cast<const A*>(args.in[input]) + row * args.in_stride[input];
        loaded[k][input] = load_part<N>(x + places[k].column, count, A{});
      }
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      Pack<Y, N> results[Op::outputs];
#pragma unroll
      for (int i = 0; i < N; ++i) {
        T x[Op::inputs];
        T y[Op::outputs];
#pragma unroll
        for (int input = 0; input < Op::inputs; ++input) x[input] = static_cast<T>(widen(loaded[k][input][i]));
        Op::of(x, y, args.factor);
#pragma unroll
        for (int output = 0; output < Op::outputs; ++output) results[output].at[i] = narrow<Y>(y[output]);
      }
#pragma unroll
      for (int output = 0; output < Op::outputs; ++output) {
        Y* y = static_cast<Y*>(args.out[output]) + places[k].row * args.out_stride[output];
        store_part(y + places[k].column, args.columns - places[k].column, results[output]);
      }
    }
  }
}

template <class Op, class A, class Y>
void launch_typed(const PointwiseArgs& args, cudaStream_t stream) {
  constexpr int n = pack_of<A, Y>();
  constexpr int in_flight = Op::inputs > 1 || n * (sizeof(A) > sizeof(Y) ? sizeof(A) : sizeof(Y)) > pack_bytes ? 2 : 4;
  bool wide = true;
  for (int i = 0; i < Op::inputs; ++i) wide = wide && packs_fit<A>(args.in[i], args.rows, args.in_stride[i], n);
  for (int i = 0; i < Op::outputs; ++i) wide = wide && packs_fit<Y>(args.out[i], args.rows, args.out_stride[i], n);
  const std::int64_t packs = wide ? (args.columns + n - 1) / n * args.rows : args.columns * args.rows;
  const Grid grid{blocks_for(packs, threads * in_flight), threads};
  if (wide) {
    launch(pointwise_kernel<Op, A, Y, n, in_flight>, grid, stream, args);
  } else {
    launch(pointwise_kernel<Op, A, Y, 1, in_flight>, grid, stream, args);
  }
}

template <class Op>
void launch_any(const PointwiseArgs& args, cudaStream_t stream) {
  with_any_type(args.from, [&](auto type) {
    using T = typename decltype(type)::type;
    launch_typed<Op, T, T>(args, stream);
  });
}

void launch_cast(const PointwiseArgs& args, cudaStream_t stream) {
  with_any_type(args.from, [&](auto from) {
    with_any_type(args.to, [&](auto to) {
      launch_typed<CastOf, typename decltype(from)::type, typename decltype(to)::type>(args, stream);
    });
  });
}

struct NamedLaunch {
  std::string_view op;
  PointwiseLaunch launch;
};
constexpr NamedLaunch launches[] = {
    {"add", launch_any<AddOf>},
    {"cast", launch_cast},
    {"gelu_backward erf", launch_any<GeluBackwardOf<false>>},
    {"gelu_backward tanh", launch_any<GeluBackwardOf<true>>},
    {"gelu_forward erf", launch_any<GeluOf<false>>},
    {"gelu_forward tanh", launch_any<GeluOf<true>>},
    {"modulate_backward", launch_any<ModulateBackwardOf>},
    {"modulate_forward", launch_any<ModulateForwardOf>},
    {"multiply", launch_any<MultiplyOf>},
    {"relu_backward", launch_any<ReluBackwardOf>},
    {"relu_forward", launch_any<ReluOf>},
    {"scale", launch_any<ScaleOf>},
    {"silu_backward", launch_any<SiluBackwardOf>},
    {"silu_forward", launch_any<SiluOf>},
    {"squared_relu_backward", launch_any<SquaredReluBackwardOf>},
    {"squared_relu_forward", launch_any<SquaredReluOf>},
    {"swiglu_backward", launch_any<SwigluBackwardOf>},
    {"swiglu_forward", launch_any<SwigluForwardOf>},
    {"triad", launch_any<TriadOf>},
};

}  // namespace

PointwiseLaunch pointwise_launch(std::string_view op) {
  for (const NamedLaunch& named : launches) {
    if (named.op == op) return named.launch;
  }
  return nullptr;
}

}  // namespace gpubench::cuda
