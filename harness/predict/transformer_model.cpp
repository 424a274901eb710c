#include "harness/predict/transformer_model.h"

#include <algorithm>
#include <array>

namespace gpubench {
namespace {

constexpr std::string_view llama3 = "arXiv 2407.21783, table 3", gpt3 = "arXiv 2005.14165, table 2.1";

constexpr std::array models{
    TransformerModel{"gpt2-124m", 12, 768, 12, 12, 64, 3072, false, 1, 1, 50257, true, 1024, "openai/gpt-2"},
    TransformerModel{"gpt3-175b", 96, 12288, 96, 96, 128, 49152, false, 1, 1, 51200, true, 2048, gpt3},
    TransformerModel{"llama2-7b", 32, 4096, 32, 32, 128, 11008, true, 1, 1, 32000, false, 0, "arXiv 2307.09288"},
    TransformerModel{"llama2-70b", 80, 8192, 64, 8, 128, 28672, true, 1, 1, 32000, false, 0, "arXiv 2307.09288"},
    TransformerModel{"llama3-8b", 32, 4096, 32, 8, 128, 14336, true, 1, 1, 128256, false, 0, llama3},
    TransformerModel{"llama3-70b", 80, 8192, 64, 8, 128, 28672, true, 1, 1, 128256, false, 0, llama3},
    TransformerModel{"llama3-405b", 126, 16384, 128, 8, 128, 53248, true, 1, 1, 128256, false, 0, llama3},
    TransformerModel{"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, true, 8, 2, 32000, false, 0, "arXiv 2401.04088"},
    TransformerModel{"grok-1", 64, 6144, 48, 8, 128, 32768, true, 8, 2, 131072, true, 0, "xai-org/grok-1"},
    TransformerModel{"nemotron4-15b", 32, 6144, 48, 8, 128, 24576, false, 1, 1, 256000, false, 0, "arXiv 2402.16819"},
    TransformerModel{"nemotron4-340b", 96, 18432, 96, 8, 192, 73728, false, 1, 1, 256000, false, 0, "arXiv 2406.11704"},
};

double of(std::int64_t value) { return static_cast<double>(value); }

double one_expert(const TransformerModel& m) { return (m.gated ? 3.0 : 2.0) * of(m.hidden) * of(m.feed_forward); }

// Weights of a layer that multiply every token: attention, and the router or the dense feed-forward network.
double shared_of_layer(const TransformerModel& m) {
  const double attention = 2.0 * of(m.hidden) * of(m.heads + m.kv_heads) * of(m.head_dim);
  return attention + (m.experts > 1 ? of(m.hidden) * of(m.experts) : one_expert(m));
}

}  // namespace

double TransformerModel::expert_parameters() const {
  return experts > 1 ? of(layers) * of(experts) * one_expert(*this) : 0.0;
}

double TransformerModel::parameters() const {
  const double embedding = of(vocabulary) * of(hidden);
  const double norms = of(2 * layers + 1) * of(hidden);
  return of(layers) * shared_of_layer(*this) + expert_parameters() + (tied ? 1.0 : 2.0) * embedding +
         of(positions) * of(hidden) + norms;
}

double TransformerModel::flop_per_token(std::int64_t sequence) const {
  const double experts_met = experts > 1 ? of(experts_per_token) * one_expert(*this) : 0.0;
  const double multiplied = of(layers) * (shared_of_layer(*this) + experts_met) + of(vocabulary) * of(hidden);
  return 6.0 * multiplied + 6.0 * of(layers) * of(heads) * of(head_dim) * of(sequence);
}

std::span<const TransformerModel> transformer_models() { return models; }

const TransformerModel* find_model(std::string_view name) {
  const auto* const found = std::ranges::find(models, name, &TransformerModel::name);
  return found == models.end() ? nullptr : &*found;
}

}  // namespace gpubench
