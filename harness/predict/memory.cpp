#include "harness/predict/memory.h"

#include <algorithm>

namespace gpubench {
namespace {

constexpr double bytes_of_activation = 2.0, bytes_of_weight = 2.0, bytes_of_gradient = 4.0, bytes_of_optimizer = 12.0;

double real(std::int64_t value) { return static_cast<double>(value); }

/// Elements that a layer keeps of a token for its backward: both norms' inputs and outputs, q, k and v, what attention
/// returns, and of the feed-forward network its inner columns before and behind the activation.
double kept_by_layer(const TransformerModel& m) {
  const double inner = (m.gated ? 3.0 : 2.0) * real(m.feed_forward) * real(m.experts > 1 ? m.experts_per_token : 1);
  return 4.0 * real(m.hidden) + 2.0 * real(m.heads + m.kv_heads) * real(m.head_dim) + inner;
}

}  // namespace

DeviceMemory memory_of(const TransformerModel& model, const StepShape& shape, const StepTerms& terms) {
  const ParallelLayout& at = shape.layout;
  const double layers = real((model.layers + at.pipeline - 1) / at.pipeline);  // of the largest stage
  const double share = layers / real(model.layers);
  const double table = real(model.vocabulary) * real(model.hidden);
  const double tables = (model.tied ? 1.0 : 2.0) * table, experts = model.expert_parameters();
  const double of_layers = model.parameters() - experts - tables;
  const double dense = (share * of_layers + (at.pipeline > 1 ? table : tables)) / real(at.tensor);
  const double own_experts = share * experts / real(at.tensor * at.expert);
  const bool sharded = at.optimizer == Optimizer::sharded;
  const double sharing = sharded ? real(terms.sharing) : 1.0;
  const double sharing_experts = sharded ? sharing / real(at.expert) : 1.0;

  DeviceMemory memory;
  memory.weights = bytes_of_weight * (dense + own_experts);
  memory.gradients = bytes_of_gradient * (dense + own_experts);
  memory.optimizer = bytes_of_optimizer * (dense / sharing + own_experts / sharing_experts);
  // Of interleaved parts more micro-batches are on their way: Korthikanti et al., section 4.2.3.
  const double ahead = at.virtual_parts > 1 ? real(at.pipeline - 1) / real(at.virtual_parts) : 0.0;
  const double waiting = std::min(real(terms.micro_batches), real(at.pipeline) + ahead);
  const double tokens = real(at.micro_batch * shape.sequence) / real(at.context);
  const double of_layer = bytes_of_activation * tokens * kept_by_layer(model) / real(at.tensor);
  const double input_of_layer = bytes_of_activation * tokens * real(model.hidden) / real(at.tensor);
  // The logits and their gradient are the last stage's, which has one micro-batch.
  const double logits =
      at.pipeline > 1 ? 0.0 : 2.0 * bytes_of_activation * tokens * real(model.vocabulary) / real(at.tensor);
  memory.activations = waiting * layers * of_layer + logits;
  memory.recomputed = waiting * layers * input_of_layer + of_layer + logits;
  return memory;
}

}  // namespace gpubench
