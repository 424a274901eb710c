// The softmax of forward attention: a block of scores becomes weights, block after block along the keys.
#pragma once

#include <cstdint>

#include "reference/cpu/block_matmul.h"

namespace gpubench::cpu {

/// One block of scores on its way through the softmax.
struct ScoreBlock {
  std::int64_t rows = 0;
  std::int64_t keys = 0;           ///< in this block
  std::int64_t first_visible = 0;  ///< how many of them row 0 sees
  bool causal = false;             ///< each further row sees one more
  float scale = 1.0F;
  Rows<float> scores;  ///< overwritten
  Rows<float> o;       ///< shrinks where the maximum grows
  std::int64_t width = 0;
  float* maxima = nullptr;  ///< of scaled scores, per row
  float* sums = nullptr;    ///< of exp(scale score - maximum)
};

/// Updates maxima, sums and o, and returns exp(scale score - maximum), [rows, padded(keys)], 0 for what is cut off: f32
/// in place of the scores, bf16 rounded into `room`.
[[nodiscard]] Rows<const float> softmax(const ScoreBlock& block, Rows<float> room);
[[nodiscard]] Rows<const bf16> softmax(const ScoreBlock& block, Rows<bf16> room);

/// softmax() in portable code: the weights take the place of the scores.
void softmax_in_place(const ScoreBlock& block);

namespace avx512 {
/// softmax() where available_bf16() (vector_avx512.h); f32 weights may take the place of the scores.
void softmax(const ScoreBlock& block, Rows<float> weights);
void softmax(const ScoreBlock& block, Rows<bf16> weights);
}  // namespace avx512

}  // namespace gpubench::cpu
