// The vision transformer (Dosovitskiy et al., arXiv 2010.11929): patches of an image as tokens, behind one that stands
// for the class; pre-norm blocks of attention in both directions.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// Dims n, image (its height and width), patch (of a patch), layers, h, heads, classes. Without dropout.
[[nodiscard]] Program vit_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
