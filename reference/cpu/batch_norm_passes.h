// The passes of batch normalization over runs of channels, in Highway, for data of T, f32 or bf16.
#pragma once

#include <cstdint>

#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// Merges moments of `group` rows with those of the `before` rows that m2, the sum of squared deviations, and mean are
/// of.
struct MergeWeights {
  float mean, m2;
  MergeWeights(std::int64_t before, std::int64_t group)
      : mean(static_cast<float>(group) / static_cast<float>(before + group)), m2(static_cast<float>(before) * mean) {}
};

/// What the passes of the backward take for dy: that itself; with a ReLU, dr, which may be a sum and may be stored.
enum class Slope { given, selected, stored, summed };

/// Of one row. Null where the slope does not need it.
template <class T>
struct SlopeRow {
  const T *dy = nullptr, *y = nullptr, *dy2 = nullptr, *x = nullptr;
  T* dr = nullptr;
};

/// For the instruction set in use.
template <class T>
struct BatchNormPasses {
  /// Merges the moments of 4 rows of `channels` elements with mean and m2; of one row.
  void (*add_four_rows)(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2);
  void (*add_row)(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2);
  /// The same of moments.
  void (*merge)(const float* of_group, const float* m2_of_group, MergeWeights weights, std::int64_t count, float* mean,
                float* m2);
  /// y = (x - mean) scale + beta, + r where that is not null; cut at 0 where `relu`.
  void (*normalize)(const T* x, const float* mean, const float* scale, const float* beta, const T* r, bool relu,
                    std::int64_t count, T* y);
  /// plain += slope and weighted += slope (x - mean), of one row or, where `next` is not null, of two.
  void (*add_slopes)(Slope slope, const SlopeRow<T>& row, const SlopeRow<T>* next, const float* mean,
                     std::int64_t count, float* plain, float* weighted);
  /// dx = factor ((slope - plain) - (x - mean) weighted), where the slope is selected by y unless that is null.
  void (*project)(const T* slopes, const T* y, const T* x, const float* mean, const float* factor, const float* plain,
                  const float* weighted, std::int64_t count, T* dx);
};

template <class T>
[[nodiscard]] BatchNormPasses<T> batch_norm_passes();

}  // namespace gpubench::cpu
