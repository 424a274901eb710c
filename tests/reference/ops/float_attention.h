// Attention in single precision, with optional faults, for tests of the bounds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/core/dtype.h"

namespace gpubench::testing {

struct FloatAttentionFaults {
  float scale = 1.0F;
  std::int64_t leak = 0;              ///< keys seen beyond the causal mask
  std::int64_t lost_keys = 0;         ///< missing last keys of a row
  DType scores = DType::f32;          ///< type that scores are rounded to
  bool coarse_probabilities = false;  ///< cast to e4m3 before they are multiplied with v
  bool five_digit_ln2 = false;        ///< log-sum-exp by log2, with ln 2 of five digits
  bool without_correction = false;
  bool correction_of_next_row = false;  ///< backward: D of another row
  bool without_scale = false;
  std::int64_t lost_queries = 0;  ///< backward: missing last query rows in dk
};

/// One head, [rows, d] each.
struct HeadData {
  std::vector<double> q, k, v;
};

struct FloatAttention {
  std::vector<float> o, lse;
};

inline float float_dot(const double* a, const double* b, std::int64_t d) {
  float sum = 0.0F;
  for (std::int64_t e = 0; e < d; ++e) sum += static_cast<float>(a[e]) * static_cast<float>(b[e]);
  return sum;
}

inline float cast(DType type, float value) { return static_cast<float>(round_to(type, value)); }

/// Causal, with a running maximum over blocks of 16 keys. Probabilities are cast to `type` before the product with v.
inline FloatAttention attention_in_float(const HeadData& data, std::int64_t rows, std::int64_t d, float scale,
                                         DType type, const FloatAttentionFaults& faults = {}) {
  FloatAttention result;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t keys = std::max<std::int64_t>(1, std::min(rows, i + 1 + faults.leak) - faults.lost_keys);
    float largest = -HUGE_VALF, sum = 0.0F;
    std::vector<float> o(static_cast<std::size_t>(d), 0.0F);
    for (std::int64_t first = 0; first < keys; first += 16) {
      const std::int64_t last = std::min(first + 16, keys);
      std::vector<float> scores;
      float block = largest;
      for (std::int64_t j = first; j < last; ++j) {
        scores.push_back(cast(faults.scores, float_dot(&data.q[i * d], &data.k[j * d], d) * scale * faults.scale));
        block = std::max(block, scores.back());
      }
      const float rescale = std::exp(largest - block);
      largest = block;
      sum *= rescale;
      for (float& value : o) value *= rescale;
      for (std::int64_t j = first; j < last; ++j) {
        const float p = std::exp(scores[j - first] - largest);
        sum += p;
        for (std::int64_t e = 0; e < d; ++e)
          o[e] += cast(faults.coarse_probabilities ? DType::f8_e4m3 : type, p) * static_cast<float>(data.v[j * d + e]);
      }
    }
    for (const float value : o) result.o.push_back(value / sum);
    result.lse.push_back(largest + (faults.five_digit_ln2 ? std::log2(sum) * 0.69315F : std::log(sum)));
  }
  return result;
}

/// Gradients of one head from saved o and lse. p and ds are cast to `type` before products with do, q and k.
struct FloatGradients {
  std::vector<float> dq, dk, dv;
};
inline FloatGradients attention_backward_in_float(const HeadData& data, const std::vector<double>& d_o,
                                                  const std::vector<double>& o, const std::vector<double>& lse,
                                                  std::int64_t rows, std::int64_t d, float scale, DType type,
                                                  const FloatAttentionFaults& faults = {}) {
  const auto size = static_cast<std::size_t>(rows * d);
  FloatGradients g{std::vector<float>(size), std::vector<float>(size), std::vector<float>(size)};
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t from = faults.correction_of_next_row ? (i + 1) % rows : i;
    const float correction = faults.without_correction ? 0.0F : float_dot(&d_o[from * d], &o[from * d], d);
    for (std::int64_t j = 0; j <= i; ++j) {
      const float p = std::exp(float_dot(&data.q[i * d], &data.k[j * d], d) * scale - static_cast<float>(lse[i]));
      const float ds = p * (float_dot(&d_o[i * d], &data.v[j * d], d) - correction);
      for (std::int64_t e = 0; e < d; ++e) {
        g.dq[i * d + e] += cast(type, ds) * static_cast<float>(data.k[j * d + e]);
        if (i < rows - faults.lost_queries) g.dk[j * d + e] += cast(type, ds) * static_cast<float>(data.q[i * d + e]);
        g.dv[j * d + e] += cast(type, p) * static_cast<float>(d_o[i * d + e]);
      }
    }
  }
  for (std::vector<float>* gradient : {&g.dq, &g.dk}) {
    for (float& value : *gradient) value *= faults.without_scale ? 1.0F : scale;
  }
  return g;
}

}  // namespace gpubench::testing
