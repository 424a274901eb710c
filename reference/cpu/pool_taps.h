// What one position of a pooled image takes from the places that it depends on, for a run of channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// What a position depends on: first channels in the image that is read.
struct Taps {
  static constexpr std::size_t most = 256;  ///< of a window with an index; larger ones are summed in several turns
  std::size_t count = 0;
  bool first_turn = true;
  std::array<std::int64_t, most> place;
  std::array<std::int32_t, most> number;  ///< in its window
  std::array<float, most> factor;
};

/// For elements T of the image that is read, for the instruction set in use.
template <class T>
struct TapKernels {
  /// The largest of the taps, a NaN before any number, and the number of the first tap that has it.
  void (*keep_larger)(const T* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index);
  /// The sum of those whose index is their number; added to dx after the first turn.
  void (*add_chosen)(const T* dy, const Taps& taps, std::int64_t channels, float* dx, const std::uint8_t* index);
  /// The sum of taps by their factors; added to y after the first turn.
  void (*add_scaled)(const T* x, const Taps& taps, std::int64_t channels, float* y);
};

template <class T>
[[nodiscard]] TapKernels<T> tap_kernels();

}  // namespace gpubench::cpu
