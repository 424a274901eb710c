// ResNet v1.5 (He et al., arXiv 1512.03385, with the stride of a stage on its first 3x3 convolution, as torchvision and
// MLPerf have it), NHWC.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// One bottleneck, to SGD with momentum: n images of h x h pixels and c channels -> 4 width channels. Dims n, h, c,
/// width, stride. Where the stride or the channels ask for it, the shortcut is a convolution.
[[nodiscard]] Program resnet_block_step(const Case& c, const Recipe& r);
/// The whole network, trained with labels smoothed by 0.1 (He et al., arXiv 1812.01187, 5.2). Dims n, image (its height
/// and width), width (channels of the first stage: 64), depth (14, 50, 101 or 152 layers; 14: one bottleneck in each
/// stage), classes.
[[nodiscard]] Program resnet_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
