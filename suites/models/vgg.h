// VGG-16 (Simonyan and Zisserman, arXiv 1409.1556) with batch normalization, as it is trained since: nothing but
// convolutions of 3 x 3 and three large linear layers.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// Dims n, image (its height and width), width (of the first layers), classes. Without dropout.
[[nodiscard]] Program vgg_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
