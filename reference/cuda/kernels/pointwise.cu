// Each thread has several packs of 16 bytes in flight; a block's packs are neighbours. Packs that don't fit (an odd
// address or stride) fall back to single elements, also several at a time.
#include "reference/cuda/kernels/pointwise.h"

#include "reference/cuda/kernels/gelu.cuh"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/rows.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

struct CastOf {
  static constexpr bool two_inputs = false;
  template <class T>
  static __device__ __forceinline__ T of(T a, T /*none*/, double /*none*/) {
    return a;
  }
};
struct ScaleOf {
  static constexpr bool two_inputs = false;
  template <class T>
  static __device__ __forceinline__ T of(T a, T /*none*/, double factor) {
    return static_cast<T>(factor) * a;
  }
};
struct AddOf {
  static constexpr bool two_inputs = true;
  template <class T>
  static __device__ __forceinline__ T of(T a, T b, double /*none*/) {
    return a + b;
  }
};
struct TriadOf {
  static constexpr bool two_inputs = true;
  template <class T>
  static __device__ __forceinline__ T of(T a, T b, double factor) {
    return a + static_cast<T>(factor) * b;
  }
};
struct GeluTanh {
  static constexpr bool two_inputs = false;
  template <class T>
  static __device__ __forceinline__ T of(T a, T /*none*/, double /*none*/) {
    return gelu_tanh(a);
  }
};
struct GeluErf {
  static constexpr bool two_inputs = false;
  template <class T>
  static __device__ __forceinline__ T of(T a, T /*none*/, double /*none*/) {
    return gelu_erf(a);
  }
};
struct GeluTanhBackward {
  static constexpr bool two_inputs = true;
  template <class T>
  static __device__ __forceinline__ T of(T a, T b, double /*none*/) {
    return b * gelu_tanh_slope(a);
  }
};
struct GeluErfBackward {
  static constexpr bool two_inputs = true;
  template <class T>
  static __device__ __forceinline__ T of(T a, T b, double /*none*/) {
    return b * gelu_erf_slope(a);
  }
};

template <class A, class Y, bool is_double = sizeof(Wide<A>) == 8 || sizeof(Wide<Y>) == 8>
using Computed = Wide<std::conditional_t<is_double, double, float>>;

/// Elements per pack of a kernel between these types: 16 bytes of the narrower one, 32 of the wider.
template <class A, class Y>
constexpr int pack_of() {
  constexpr int narrow_size = sizeof(A) < sizeof(Y) ? sizeof(A) : sizeof(Y);
  return pack_bytes / narrow_size;
}

template <class Op, class A, class Y, int N, int in_flight>
__global__ void __launch_bounds__(threads) pointwise_kernel(PointwiseArgs args) {
  using T = Computed<A, Y>;
  const auto* a = static_cast<const A*>(args.a);
  const auto* b = static_cast<const A*>(args.b);
  auto* y = static_cast<Y*>(args.y);
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads * in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < packs;
       first += step) {
    Loaded<A, N> a_packs[in_flight];
    Loaded<A, N> b_packs[Op::two_inputs ? in_flight : 1];
    PackPlace places[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const std::int64_t count = args.columns - places[k].column;
      a_packs[k] = load_part<N>(a + places[k].row * args.a_stride + places[k].column, count, A{});
      if constexpr (Op::two_inputs) {
        b_packs[k] = load_part<N>(b + places[k].row * args.b_stride + places[k].column, count, A{});
      }
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      Pack<Y, N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const T second = Op::two_inputs ? static_cast<T>(widen(b_packs[Op::two_inputs ? k : 0][i])) : T(0);
        out.at[i] = narrow<Y>(Op::of(static_cast<T>(widen(a_packs[k][i])), second, args.factor));
      }
      store_part(y + places[k].row * args.y_stride + places[k].column, args.columns - places[k].column, out);
    }
  }
}

template <class Op, class A, class Y>
void launch_typed(const PointwiseArgs& args, cudaStream_t stream) {
  constexpr int n = pack_of<A, Y>();
  constexpr int in_flight = Op::two_inputs || n * (sizeof(A) > sizeof(Y) ? sizeof(A) : sizeof(Y)) > pack_bytes ? 2 : 4;
  const bool wide = packs_fit<A>(args.a, args.rows, args.a_stride, n) &&
                    packs_fit<Y>(args.y, args.rows, args.y_stride, n) &&
                    (!Op::two_inputs || packs_fit<A>(args.b, args.rows, args.b_stride, n));
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

}  // namespace

void launch_pointwise(const PointwiseArgs& args, cudaStream_t stream) {
  switch (args.op) {
    case PointwiseOp::cast: return launch_cast(args, stream);
    case PointwiseOp::scale: return launch_any<ScaleOf>(args, stream);
    case PointwiseOp::add: return launch_any<AddOf>(args, stream);
    case PointwiseOp::triad: return launch_any<TriadOf>(args, stream);
    case PointwiseOp::gelu_tanh: return launch_any<GeluTanh>(args, stream);
    case PointwiseOp::gelu_erf: return launch_any<GeluErf>(args, stream);
    case PointwiseOp::gelu_tanh_backward: return launch_any<GeluTanhBackward>(args, stream);
    case PointwiseOp::gelu_erf_backward: return launch_any<GeluErfBackward>(args, stream);
  }
}

}  // namespace gpubench::cuda
