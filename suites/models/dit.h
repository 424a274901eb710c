// The diffusion transformer (Peebles and Xie, arXiv 2212.09748): a transformer over patches of a noisy latent image,
// whose blocks are modulated by the time step and the class (adaLN-Zero).
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// One block, to AdamW. Dims n, s (tokens of an image), h, heads.
[[nodiscard]] Program dit_block_step(const Case& c, const Recipe& r);
/// The whole model, trained to predict the noise and as many elements that stand for its variance, by their squared
/// error (the paper has a variational bound for the latter). Dims n, image (height and width of the latent), channels,
/// patch, layers, h, heads, classes.
[[nodiscard]] Program dit_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
