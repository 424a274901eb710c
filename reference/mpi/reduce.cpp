#include "reference/mpi/mpi_processes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace gpubench::mpi {
namespace {

constexpr std::int64_t block = 1024;
using Block = std::array<float, block>;

// bf16 is the upper half of an f32.
void widen(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16U);
}

// To nearest even; keeps NaN.
void narrow(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    to[i] = static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16U);
  }
}

void read(DType type, const std::byte* from, std::int64_t first, std::int64_t count, float* to) {
  if (type == DType::bf16) {
    widen(reinterpret_cast<const std::uint16_t*>(from) + first, to, count);
  } else {
    std::memcpy(to, from + first * static_cast<std::int64_t>(sizeof(float)),
                static_cast<std::size_t>(count) * sizeof(float));
  }
}

}  // namespace

void keep_larger(const float* from, float* largest, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    largest[i] = from[i] > largest[i] || from[i] != from[i] ? from[i] : largest[i];  // keeps NaN
}

void divide(float* values, std::int64_t count, float divisor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] /= divisor;
}

void reduce(DType type, Reduction reduction, std::span<const std::byte* const> from, std::byte* to,
            std::int64_t count) {
  Block sum, next;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t some = std::min(block, count - first);
    read(type, from[0], first, some, sum.data());
    for (const std::byte* peer : from.subspan(1)) {
      read(type, peer, first, some, next.data());
      if (reduction == Reduction::maximum) {
        keep_larger(next.data(), sum.data(), some);
      } else {
        for (std::int64_t i = 0; i < some; ++i) sum[static_cast<std::size_t>(i)] += next[static_cast<std::size_t>(i)];
      }
    }
    if (reduction == Reduction::average) divide(sum.data(), some, static_cast<float>(from.size()));
    if (type == DType::bf16) {
      narrow(sum.data(), reinterpret_cast<std::uint16_t*>(to) + first, some);
    } else {
      std::memcpy(to + first * static_cast<std::int64_t>(sizeof(float)), sum.data(),
                  static_cast<std::size_t>(some) * sizeof(float));
    }
  }
}

}  // namespace gpubench::mpi
