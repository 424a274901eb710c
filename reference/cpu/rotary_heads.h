// Heads of one token, whose pairs rotary embedding turns by the same angles.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpubench::cpu {

/// Strides are in bytes, from one head to the next. x and y may be the same memory: each pair is read before it is
/// written, and no other touches it.
struct HeadRun {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_stride = 0, y_stride = 0;
  std::int64_t heads = 0;
  std::int64_t pairs = 0;
  const float *cos = nullptr, *sin = nullptr;
  float sign = 1.0F;  ///< -1 for the inverse
};

}  // namespace gpubench::cpu
