// A pack is 16 bytes of the 16-bit tensors and 32 of the product; each thread has two of them in flight.
#include "reference/cuda/kernels/gelu_epilogue.h"

#include "reference/cuda/kernels/gelu.cuh"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/rows.cuh"

namespace gpubench::cuda {
namespace {

constexpr int epilogue_threads = 256;
constexpr int epilogue_in_flight = 2;

template <class T, bool tanh, bool gradient, int N>
__global__ void __launch_bounds__(epilogue_threads) gelu_epilogue_kernel(GeluEpilogueArgs args) {
  const auto* product = static_cast<const float*>(args.product);
  const auto* bias = static_cast<const T*>(args.bias);
  auto* pre = static_cast<T*>(args.pre);
  auto* c = static_cast<T*>(args.c);
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  constexpr int at_once = epilogue_threads * epilogue_in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * at_once + threadIdx.x; first < packs;
       first += static_cast<std::int64_t>(gridDim.x) * at_once) {
    Loaded<float, N> products[epilogue_in_flight] = {};
    Loaded<T, N> others[epilogue_in_flight] = {};  // bias, or the pre-activation
    PackPlace places[epilogue_in_flight] = {};
#pragma unroll
    for (int k = 0; k < epilogue_in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * epilogue_threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const std::int64_t count = args.columns - places[k].column;
      products[k] = load_part<N>(product + places[k].row * args.product_stride + places[k].column, count, 0.0F);
      if constexpr (gradient) {
        others[k] = load_part<N>(pre + places[k].row * args.pre_stride + places[k].column, count, T{});
      } else if (bias != nullptr) {
        others[k] = load_part<N>(bias + places[k].column, count, T{});
      }
    }
#pragma unroll
    for (int k = 0; k < epilogue_in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * epilogue_threads;
      if (pack >= packs) break;
      const std::int64_t count = args.columns - places[k].column;
      Pack<T, N> out;
      Pack<T, N> kept;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float other = widen(others[k][i]);  // without a bias, zero
        if constexpr (gradient) {
          out.at[i] = narrow<T>(products[k][i] * gelu_slope_of<tanh>(other));
        } else {
          const float z = products[k][i] + other;
          kept.at[i] = narrow<T>(z);
          out.at[i] = narrow<T>(gelu_of<tanh>(z));
        }
      }
      if constexpr (!gradient) store_part(pre + places[k].row * args.pre_stride + places[k].column, count, kept);
      store_part(c + places[k].row * args.c_stride + places[k].column, count, out);
    }
  }
}

template <class T, bool tanh, bool gradient>
void launch_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  const bool packed = packs_fit<float>(args.product, args.rows, args.product_stride, n) &&
                      packs_fit<T>(args.pre, args.rows, args.pre_stride, n) &&
                      packs_fit<T>(args.c, args.rows, args.c_stride, n) &&
                      (args.bias == nullptr || packs_fit<T>(args.bias, 1, 0, n));
  const std::int64_t packs = packed ? (args.columns + n - 1) / n * args.rows : args.columns * args.rows;
  const Grid grid{blocks_for(packs, epilogue_threads * epilogue_in_flight), epilogue_threads};
  if (packed) {
    launch(gelu_epilogue_kernel<T, tanh, gradient, n>, grid, stream, args);
  } else {
    launch(gelu_epilogue_kernel<T, tanh, gradient, 1>, grid, stream, args);
  }
}

template <class T>
void launch_form(const GeluEpilogueArgs& args, cudaStream_t stream) {
  if (args.tanh) {
    args.gradient ? launch_epilogue<T, true, true>(args, stream) : launch_epilogue<T, true, false>(args, stream);
  } else {
    args.gradient ? launch_epilogue<T, false, true>(args, stream) : launch_epilogue<T, false, false>(args, stream);
  }
}

}  // namespace

void launch_gelu_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream) {
  switch (args.data) {
    case Element::f16: return launch_form<F16>(args, stream);
    case Element::bf16: return launch_form<Bf16>(args, stream);
    default: throw std::logic_error("a kernel for f16 and bf16 was given another type");
  }
}

}  // namespace gpubench::cuda
