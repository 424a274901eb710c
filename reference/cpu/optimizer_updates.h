// The arithmetic of optimizers on a run of one parameter.
#pragma once

#include <cstdint>

namespace gpubench::cpu {

/// Factors of one step.
struct AdamWFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float inverse_bc1, inverse_bc2;  ///< 1 / (1 - beta^step)
  float epsilon, lr;
  float weight_decay, l2;  ///< with the step; part of the gradient: one of them is 0
  float clip;              ///< of the gradient
};
struct LionFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, weight_decay, lr;
};
/// The step is of_d d + of_m m': m' alone, or Nesterov's.
struct SgdFactors {
  float momentum, weight_decay, of_d, of_m, lr;
};

/// The moments m and v, and the weights w, of `count` elements.
void update_run(const float* g, const AdamWFactors& factors, std::int64_t count, float* w, float* m, float* v);
void update_run(const float* g, const LionFactors& factors, std::int64_t count, float* w, float* m, float* v);
void update_run(const float* g, const SgdFactors& factors, std::int64_t count, float* w, float* m, float* v);

/// In f64.
[[nodiscard]] double sum_of_squares(const float* g, std::int64_t count);

}  // namespace gpubench::cpu
