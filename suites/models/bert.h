// BERT (Devlin et al., arXiv 1810.04805): post-norm blocks of attention in both directions and a GELU feed-forward
// layer; trained on masked tokens only, without dropout.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// Dims b, s, layers, h, heads, vocab. Every seventh token is to be predicted (14 %; in the paper 15 % at random), by a
/// head whose last product has the embedding's weights.
[[nodiscard]] Program bert_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
