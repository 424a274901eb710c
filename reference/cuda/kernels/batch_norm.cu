#include "reference/cuda/kernels/images.h"

#include <algorithm>
#include <cmath>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

/// Threads per row, each with N channels; fewer if there are few channels.
__host__ __device__ constexpr int lanes_for(std::int64_t channels, int n) {
  int lanes = 1;
  while (lanes < warp_lanes && static_cast<std::int64_t>(lanes) * n < channels) lanes *= 2;
  return lanes;
}

constexpr std::int64_t tiles_of(std::int64_t channels, int n) {
  const std::int64_t tile = static_cast<std::int64_t>(lanes_for(channels, n)) * n;
  return (channels + tile - 1) / tile;
}

struct Rows {
  std::int64_t begin, end;
  /// Number of rows of group `group`, which takes every `groups`th row.
  [[nodiscard]] __device__ __forceinline__ std::int64_t count(int group, int groups) const {
    return end - begin > group ? (end - begin - group + groups - 1) / groups : 0;
  }
};

__device__ __forceinline__ Rows rows_of_part(const BatchNormArgs& args, std::int64_t part) {
  const std::int64_t per_part = (args.rows + args.parts - 1) / args.parts;
  const std::int64_t begin = part * per_part < args.rows ? part * per_part : args.rows;
  return {begin, begin + per_part < args.rows ? begin + per_part : args.rows};
}

/// A thread's work: N channels of every `groups`th row of a part.
template <int N>
struct Share {
  int lanes, groups, group;
  std::int64_t part, first_channel, channel;
  Rows rows;

  __device__ __forceinline__ Share(const BatchNormArgs& args, std::int64_t work)
      : lanes(lanes_for(args.channels, N)), groups(threads / lanes), group(static_cast<int>(threadIdx.x) / lanes) {
    const std::int64_t tile = static_cast<std::int64_t>(lanes) * N;
    const std::int64_t tiles = (args.channels + tile - 1) / tile;
    part = work / tiles;
    first_channel = work % tiles * tile;
    channel = first_channel + static_cast<std::int64_t>(static_cast<int>(threadIdx.x) % lanes) * N;
    rows = rows_of_part(args, part);
  }

  /// Calls several(element) for `at_once` rows, `step` elements apart, and one(element) for the remaining rows.
  template <int at_once, class Several, class One>
  __device__ __forceinline__ void each_row(std::int64_t channels, const Several& several, const One& one) const {
    if (channel >= channels) return;
    std::int64_t row = rows.begin + group;
    for (; row + (at_once - 1) * groups < rows.end; row += at_once * groups) several(row * channels + channel);
    for (; row < rows.end; row += groups) one(row * channels + channel);
  }
};

/// Mean and sum of squared deviations of `count` numbers.
template <class W>
struct Moments {
  W count, mean, m2;
  /// Chan, Golub, LeVeque 1983.
  __device__ __forceinline__ void merge(const Moments& other) {
    if (other.count == W(0)) return;
    const W total = count + other.count;
    const W weight = other.count / total, delta = other.mean - mean;
    mean += delta * weight;
    m2 += other.m2 + delta * delta * (count * weight);
    count = total;
  }
};

template <class W, int N>
struct BlockSums {
  Shared<W> first[threads * N], second[threads * N];
};

/// For each channel of the tile, writes mean and m2 of merge(sums, cell of the first group) to the halves of the
/// scratch memory. Cells of consecutive groups are `lanes` apart. All threads of the block must call it.
template <class W, int N, class Merge>
__device__ __forceinline__ void store_block_sums(const BatchNormArgs& args, const Share<N>& share, const W (&first)[N],
                                                 const W (&second)[N], const Merge& merge) {
  auto& shared = shared_storage<BlockSums<W, N>>();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    shared.first[i * threads + static_cast<int>(threadIdx.x)] = first[i];
    shared.second[i * threads + static_cast<int>(threadIdx.x)] = second[i];
  }
  __syncthreads();
  W* partial = static_cast<W*>(args.partial);
  for (int cell = static_cast<int>(threadIdx.x); cell < share.lanes * N; cell += threads) {
    const int lane = cell % share.lanes, i = cell / share.lanes;
    const std::int64_t channel = share.first_channel + lane * N + i;
    if (channel >= args.channels) continue;
    const Moments<W> sums = merge(shared, i * threads + lane);
    const std::int64_t place = share.part * args.channels + channel;
    store(partial + place, sums.mean);
    store(partial + args.parts * args.channels + place, sums.m2);
  }
  __syncthreads();
}

template <class T, int N>
__global__ void __launch_bounds__(threads) batch_moments_kernel(BatchNormArgs args) {
  using W = Wide<T>;
  const auto* x = static_cast<const T*>(args.x);
  for (std::int64_t work = blockIdx.x;; work += gridDim.x) {
    const Share<N> share(args, work);
    if (share.part >= args.parts) return;
    W mean[N]{}, m2[N]{};
    W count = 0;
    share.template each_row<4>(
        args.channels,
        [&](std::int64_t first) {
          Loaded<T, N> rows[4];
#pragma unroll
          for (int k = 0; k < 4; ++k) rows[k] = load_pack<N>(x + first + k * share.groups * args.channels);
          const W weight = W(4) / (count + W(4)), of_delta = count * weight;
          count += W(4);
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const W a = widen(rows[0][i]), b = widen(rows[1][i]), c = widen(rows[2][i]), d = widen(rows[3][i]);
            const W of_four = ((a + b) + (c + d)) * W(0.25);
            const W delta = of_four - mean[i];
            mean[i] += delta * weight;
            m2[i] += (((a - of_four) * (a - of_four) + (b - of_four) * (b - of_four)) +
                      ((c - of_four) * (c - of_four) + (d - of_four) * (d - of_four))) +
                     delta * delta * of_delta;
          }
        },
        [&](std::int64_t first) {
          const auto row = load_pack<N>(x + first);
          const W weight = W(1) / (count + W(1)), of_delta = count * weight;
          count += W(1);
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const W delta = widen(row[i]) - mean[i];
            mean[i] += delta * weight;
            m2[i] += delta * delta * of_delta;
          }
        });
    store_block_sums<W, N>(args, share, mean, m2, [&share](const BlockSums<W, N>& sums, int cell) {
      Moments<W> all{0, 0, 0};
      for (int group = 0; group < share.groups; ++group, cell += share.lanes) {
        all.merge({static_cast<W>(share.rows.count(group, share.groups)), sums.first[cell], sums.second[cell]});
      }
      return all;
    });
  }
}

enum class Counts { all, where_y_is_positive, where_masked };

__device__ __forceinline__ unsigned char* mask_of(const BatchNormArgs& args) {
  return static_cast<unsigned char*>(args.partial) + args.mask_at;
}

/// dy at an element, plus dy2 if given; 0 if not counted.
template <class T, int N, Counts counts>
class Gradient {
 public:
  using W = Wide<T>;
  __device__ __forceinline__ Gradient(const BatchNormArgs& args, std::int64_t at)
      : dy_(load_pack<N>(static_cast<const T*>(args.dy) + at)) {
    if constexpr (counts == Counts::where_masked) mask_ = load(mask_of(args) + at / N);
    if constexpr (counts == Counts::where_y_is_positive) {
      y_ = load_pack<N>(static_cast<const T*>(args.y) + at);
      sums_ = args.dy2 != nullptr;
      if (sums_) dy2_ = load_pack<N>(static_cast<const T*>(args.dy2) + at);
    }
  }
  [[nodiscard]] __device__ __forceinline__ W operator[](int i) const {
    if (!is_counted(i)) return W(0);
    return counts == Counts::where_y_is_positive && sums_ ? widen(dy_[i]) + widen(dy2_[i]) : widen(dy_[i]);
  }
  /// Stores the counted dy as dr if given, else the mask.
  __device__ __forceinline__ void keep(const BatchNormArgs& args, std::int64_t at) const {
    if constexpr (counts == Counts::where_y_is_positive) {
      if (args.dr != nullptr) {
        Pack<T, N> dr;
#pragma unroll
        for (int i = 0; i < N; ++i) dr.at[i] = narrow<T>((*this)[i]);
        store_pack(static_cast<T*>(args.dr) + at, dr);
      } else if (N > 1) {
        unsigned mask = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) mask |= is_counted(i) ? 1U << i : 0U;
        store(mask_of(args) + at / N, static_cast<unsigned char>(mask));
      }
    }
  }

 private:
  /// A NaN in y counts.
  [[nodiscard]] __device__ __forceinline__ bool is_counted(int i) const {
    if constexpr (counts == Counts::where_masked) return ((mask_ >> i) & 1U) != 0;
    if constexpr (counts == Counts::where_y_is_positive) return !(widen(y_[i]) <= W(0));
    return true;
  }

  Loaded<T, N> dy_, y_, dy2_;
  unsigned mask_ = 0;
  bool sums_ = false;
};

template <class T, int N, Counts counts>
__global__ void __launch_bounds__(threads) batch_gradient_sums_kernel(BatchNormArgs args) {
  using W = Wide<T>;
  const auto* x = static_cast<const T*>(args.x);
  for (std::int64_t work = blockIdx.x;; work += gridDim.x) {
    const Share<N> share(args, work);
    if (share.part >= args.parts) return;
    W plain[N]{}, weighted[N]{}, mean[N]{};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (share.channel + i < args.channels) mean[i] = load(static_cast<const W*>(args.mean) + share.channel + i);
    }
    share.template each_row<2>(
        args.channels,
        [&](std::int64_t first) {
          const std::int64_t second = first + share.groups * args.channels;
          const Gradient<T, N, counts> a(args, first), b(args, second);
          const auto p = load_pack<N>(x + first), q = load_pack<N>(x + second);
#pragma unroll
          for (int i = 0; i < N; ++i) {
            plain[i] += a[i] + b[i];
            weighted[i] += a[i] * (widen(p[i]) - mean[i]) + b[i] * (widen(q[i]) - mean[i]);
          }
          a.keep(args, first);
          b.keep(args, second);
        },
        [&](std::int64_t first) {
          const Gradient<T, N, counts> a(args, first);
          const auto p = load_pack<N>(x + first);
#pragma unroll
          for (int i = 0; i < N; ++i) {
            plain[i] += a[i];
            weighted[i] += a[i] * (widen(p[i]) - mean[i]);
          }
          a.keep(args, first);
        });
    store_block_sums<W, N>(args, share, plain, weighted, [&share](const BlockSums<W, N>& sums, int cell) {
      Moments<W> all{0, 0, 0};
      for (int group = 0; group < share.groups; ++group, cell += share.lanes) {
        all.mean += sums.first[cell];
        all.m2 += sums.second[cell];
      }
      return all;
    });
  }
}

constexpr int merged_channels = 32;  // per block
constexpr int merged_groups = 16;    // of parts, merged in parallel

template <class W>
struct GroupMoments {
  Shared<W> count[merged_groups][merged_channels], mean[merged_groups][merged_channels],
      m2[merged_groups][merged_channels];
};

template <class W>
__device__ __forceinline__ void add_moments(Moments<W>& all, const Moments<W>& other, bool forward) {
  if (forward) return all.merge(other);
  all.mean += other.mean;
  all.m2 += other.m2;
}

template <class W>
__device__ __forceinline__ void update_running(void* running, std::int64_t channel, W momentum, W statistic) {
  W* place = static_cast<W*>(running) + channel;
  store(place, (W(1) - momentum) * load(place) + momentum * statistic);
}

template <class W>
__device__ __forceinline__ void finish_forward(const BatchNormArgs& args, std::int64_t channel, const Moments<W>& all) {
  const W n = static_cast<W>(args.rows), momentum = static_cast<W>(args.momentum);
  store(static_cast<W*>(args.mean) + channel, all.mean);
  store(static_cast<W*>(args.rstd) + channel, W(1) / std::sqrt(all.m2 / n + static_cast<W>(args.epsilon)));
  update_running(args.running_mean, channel, momentum, all.mean);
  update_running(args.running_var, channel, momentum, all.m2 / (n - W(1)));
}

template <class W, bool forward>
__global__ void __launch_bounds__(merged_channels* merged_groups) batch_merge_kernel(BatchNormArgs args) {
  auto& shared = shared_storage<GroupMoments<W>>();
  const int lane = static_cast<int>(threadIdx.x) % merged_channels;
  const int group = static_cast<int>(threadIdx.x) / merged_channels;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * merged_channels; first < args.channels;
       first += static_cast<std::int64_t>(gridDim.x) * merged_channels) {
    const std::int64_t channel = first + lane;
    Moments<W> all{0, 0, 0};
    if (channel < args.channels) {
      const W* means = static_cast<const W*>(args.partial) + channel;
      const W* m2s = means + args.parts * args.channels;
#pragma unroll 4
      for (std::int64_t part = group; part < args.parts; part += merged_groups) {
        const Rows rows = rows_of_part(args, part);
        add_moments(all,
                    Moments<W>{static_cast<W>(rows.end - rows.begin), load(means + part * args.channels),
                               load(m2s + part * args.channels)},
                    forward);
      }
    }
    shared.count[group][lane] = all.count;
    shared.mean[group][lane] = all.mean;
    shared.m2[group][lane] = all.m2;
    __syncthreads();
    if (group == 0 && channel < args.channels) {
      for (int other = 1; other < merged_groups; ++other) {
        add_moments(all, Moments<W>{shared.count[other][lane], shared.mean[other][lane], shared.m2[other][lane]},
                    forward);
      }
      if (forward) {
        finish_forward(args, channel, all);
      } else {
        store(static_cast<W*>(args.dbeta) + channel, all.mean);
        store(static_cast<W*>(args.dgamma) + channel, all.m2 * load(static_cast<const W*>(args.rstd) + channel));
      }
    }
    __syncthreads();
  }
}

/// A thread per channel. In f64, where the difference of the two means loses no more than the sums have.
template <class W>
__global__ void __launch_bounds__(threads) batch_sums_kernel(BatchNormArgs args) {
  const auto* sums = static_cast<const float*>(args.partial);
  const auto step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; channel < args.channels;
       channel += step) {
    const double sum = load(sums + channel), squares = load(sums + args.sum_stride + channel);
    const double mean = sum / static_cast<double>(args.rows);
    const double m2 = squares - mean * sum;
    finish_forward(args, channel, Moments<W>{W(0), static_cast<W>(mean), static_cast<W>(m2 < 0.0 ? 0.0 : m2)});
  }
}

template <class T, int N, bool relu>
__global__ void __launch_bounds__(threads) batch_normalize_kernel(BatchNormArgs args) {
  using W = Wide<T>;
  const auto *x = static_cast<const T*>(args.x), *r = static_cast<const T*>(args.r);
  auto* y = static_cast<T*>(args.to);
  for (std::int64_t work = blockIdx.x;; work += gridDim.x) {
    const Share<N> share(args, work);
    if (share.part >= args.parts) return;
    W mean[N]{}, scale[N]{}, beta[N]{};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::int64_t channel = share.channel + i;
      if (channel >= args.channels) continue;
      mean[i] = load(static_cast<const W*>(args.mean) + channel);
      scale[i] = load(static_cast<const W*>(args.gamma) + channel) * load(static_cast<const W*>(args.rstd) + channel);
      beta[i] = load(static_cast<const W*>(args.beta) + channel);
    }
    const auto write = [&](std::int64_t at, const Loaded<T, N>& row, const Loaded<T, N>& added) {
      Pack<T, N> result;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        W value = (widen(row[i]) - mean[i]) * scale[i] + beta[i];
        if constexpr (relu) {
          if (r != nullptr) value += widen(added[i]);
          value = value < W(0) ? W(0) : value;  // NaN stays
        }
        result.at[i] = narrow<T>(value);
      }
      store_pack(y + at, result);
    };
    share.template each_row<4>(
        args.channels,
        [&](std::int64_t first) {
          Loaded<T, N> rows[4], added[4];
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            rows[k] = load_pack<N>(x + first + k * share.groups * args.channels);
            if (relu && r != nullptr) added[k] = load_pack<N>(r + first + k * share.groups * args.channels);
          }
#pragma unroll
          for (int k = 0; k < 4; ++k) write(first + k * share.groups * args.channels, rows[k], added[k]);
        },
        [&](std::int64_t first) {
          write(first, load_pack<N>(x + first), relu && r != nullptr ? load_pack<N>(r + first) : Loaded<T, N>());
        });
  }
}

/// With the number of blocks given, ptxas loads both rows before the first use; without, it saves registers instead.
template <class T, int N, Counts counts>
__global__ void __launch_bounds__(threads, 3) batch_gradient_kernel(BatchNormArgs args) {
  using W = Wide<T>;
  const auto* x = static_cast<const T*>(args.x);
  auto* dx = static_cast<T*>(args.to);
  const W n = static_cast<W>(args.rows);
  for (std::int64_t work = blockIdx.x;; work += gridDim.x) {
    const Share<N> share(args, work);
    if (share.part >= args.parts) return;
    W mean[N]{}, factor[N]{}, plain[N]{}, weighted[N]{};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::int64_t channel = share.channel + i;
      if (channel >= args.channels) continue;
      const W rstd = load(static_cast<const W*>(args.rstd) + channel);
      mean[i] = load(static_cast<const W*>(args.mean) + channel);
      factor[i] = load(static_cast<const W*>(args.gamma) + channel) * rstd;
      plain[i] = load(static_cast<const W*>(args.dbeta) + channel) / n;
      weighted[i] = load(static_cast<const W*>(args.dgamma) + channel) * rstd / n;
    }
    const auto gradient = [&](int i, W slope, T value) {
      return narrow<T>(factor[i] * ((slope - plain[i]) - (widen(value) - mean[i]) * weighted[i]));
    };
    share.template each_row<2>(
        args.channels,
        [&](std::int64_t first) {
          const std::int64_t second = first + share.groups * args.channels;
          const Gradient<T, N, counts> a(args, first), b(args, second);
          const auto p = load_pack<N>(x + first), q = load_pack<N>(x + second);
          Pack<T, N> of_first, of_second;
#pragma unroll
          for (int i = 0; i < N; ++i) {
            of_first.at[i] = gradient(i, a[i], p[i]);
            of_second.at[i] = gradient(i, b[i], q[i]);
          }
          store_pack(dx + first, of_first);
          store_pack(dx + second, of_second);
        },
        [&](std::int64_t first) {
          const Gradient<T, N, counts> a(args, first);
          const auto p = load_pack<N>(x + first);
          Pack<T, N> result;
#pragma unroll
          for (int i = 0; i < N; ++i) result.at[i] = gradient(i, a[i], p[i]);
          store_pack(dx + first, result);
        });
  }
}

template <class T, int N, bool forward>
void launch_packs(const BatchNormArgs& args, cudaStream_t stream) {
  const Grid grid{blocks_for(tiles_of(args.channels, N) * args.parts, 1), threads};
  const Grid merge{blocks_for(args.channels, merged_channels), merged_channels * merged_groups};
  if constexpr (forward) {
    if (args.sum_stride != 0) {
      launch(batch_sums_kernel<Wide<T>>, Grid{blocks_for(args.channels, threads), threads}, stream, args);
    } else {
      launch(batch_moments_kernel<T, N>, grid, stream, args);
      launch(batch_merge_kernel<Wide<T>, true>, merge, stream, args);
    }
    launch(args.relu ? batch_normalize_kernel<T, N, true> : batch_normalize_kernel<T, N, false>, grid, stream, args);
  } else {
    launch(args.relu ? batch_gradient_sums_kernel<T, N, Counts::where_y_is_positive>
                     : batch_gradient_sums_kernel<T, N, Counts::all>,
           grid, stream, args);
    launch(batch_merge_kernel<Wide<T>, false>, merge, stream, args);
    BatchNormArgs last = args;
    if (args.dr != nullptr) last.dy = args.dr;  // already stored
    const bool selects = args.relu && args.dr == nullptr;
    constexpr Counts selected = N > 1 ? Counts::where_masked : Counts::where_y_is_positive;
    launch(selects ? batch_gradient_kernel<T, N, selected> : batch_gradient_kernel<T, N, Counts::all>, grid, stream,
           last);
  }
}

int pack_elements_of(Element data) { return data == Element::f64 ? 2 : data == Element::f32 ? 4 : 8; }

template <bool forward>
void launch_batch_norm(const BatchNormArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const auto fits = [&](const void* data) { return packs_fit<T>(data, args.rows, args.channels, n); };
    if (fits(args.x) && fits(args.dy) && fits(args.r) && fits(args.y) && fits(args.dy2) && fits(args.dr) &&
        fits(args.to)) {
      launch_packs<T, n, forward>(args, stream);
    } else {
      launch_packs<T, 1, forward>(args, stream);
    }
  });
}

}  // namespace

std::int64_t batch_norm_mask_bytes(const BatchNormArgs& args) {
  return args.rows * args.channels / pack_elements_of(args.data);
}

std::int64_t batch_norm_parts(const BatchNormArgs& args, int multiprocessors) {
  const int n = pack_elements_of(args.data);
  const std::int64_t min_rows = threads / lanes_for(args.channels, n) * std::int64_t{8};  // minimum per block
  const std::int64_t tiles = tiles_of(args.channels, n);
  const std::int64_t wanted = (std::int64_t{4} * multiprocessors + tiles - 1) / tiles;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, args.rows / min_rows));
}

void launch_batch_norm_forward(const BatchNormArgs& args, cudaStream_t stream) {
  launch_batch_norm<true>(args, stream);
}
void launch_batch_norm_backward(const BatchNormArgs& args, cudaStream_t stream) {
  launch_batch_norm<false>(args, stream);
}

}  // namespace gpubench::cuda
