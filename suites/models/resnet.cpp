#include "suites/models/models.h"

#include <array>

#include "harness/core/error.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/pool.h"

namespace gpubench::suites {
namespace {

constexpr std::int64_t expansion = 4;  // a bottleneck's output channels per inner channel

using Stages = std::array<int, 4>;

/// Bottlenecks of each stage. Throws ProgramError for a depth that is not published.
Stages stages_of(std::int64_t depth) {
  switch (depth) {
    case 14: return {1, 1, 1, 1};
    case 50: return {3, 4, 6, 3};
    case 101: return {3, 4, 23, 3};
    case 152: return {3, 8, 36, 3};
    default: throw ProgramError("resnet: depth is " + std::to_string(depth) + "; expected 14, 50, 101 or 152");
  }
}

ValueId bottleneck(Layers& layers, const std::string& prefix, ValueId x, std::int64_t width, std::int64_t stride) {
  const std::int64_t channels = layers.program().spec(x).shape[3];
  const ValueId narrow = layers.relu(prefix + "relu1", layers.conv_norm(prefix + "conv1", x, width, 1, 1));
  const ValueId seen = layers.relu(prefix + "relu2", layers.conv_norm(prefix + "conv2", narrow, width, 3, stride));
  const ValueId wide = layers.conv_norm(prefix + "conv3", seen, expansion * width, 1, 1);
  const bool projects = stride != 1 || channels != expansion * width;
  const ValueId shortcut = projects ? layers.conv_norm(prefix + "shortcut", x, expansion * width, 1, stride) : x;
  return layers.relu(prefix + "relu3", layers.sum(prefix + "residual", wide, shortcut));
}

}  // namespace

Program resnet_block_step(const Case& c, const Recipe& r) {
  const std::int64_t n = c.dim("n"), h = c.dim("h"), width = c.dim("width"), stride = c.dim("stride");
  const std::int64_t p = (h - 1) / stride + 1;
  // Positive: the output of a ReLU.
  const TensorSpec x = tensor("x", r.tensor, {n, h, h, c.dim("c")}, Role::input, Fill::positive(1.0));
  return block_step(c, r, {x, {n, p, p, expansion * width}, &Layers::sgd, [&](Layers& layers, ValueId in) {
                             return bottleneck(layers, "", in, width, stride);
                           }});
}

Program resnet_train_step(const Case& c, const Recipe& r) {
  return train_step(c, r, &Layers::sgd, [&](Layers& layers) {
    Program& p = layers.program();
    const std::int64_t n = c.dim("n"), size = c.dim("image"), width = c.dim("width");
    const ValueId image = layers.batch(tensor("image", r.tensor, {n, size, size, 3}, Role::input, Fill::normal(1.0)));
    const ValueId labels = layers.classes("labels", n, c.dim("classes"));
    const ValueId stem = layers.relu("stem.relu", layers.conv_norm("stem", image, width, 7, 2));
    const Pool window{.window_h = 3, .window_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
    ValueId x = max_pool_forward(p, window, r.math, "stem.pool", stem).y;
    const Stages stages = stages_of(c.dim("depth"));
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (int block = 0; block < stages[stage]; ++block) {
        const std::string prefix = "stage" + std::to_string(stage + 1) + ".block" + std::to_string(block) + ".";
        x = bottleneck(layers, prefix, x, width << stage, stage > 0 && block == 0 ? 2 : 1);
      }
    }
    const ValueId mean = global_average_pool_forward(p, r.math, "pool", x);
    const ValueId features = layers.reshaped("features", mean, {n, p.spec(mean).shape[3]});
    const ValueId logits = layers.linear("head", features, c.dim("classes"));
    return cross_entropy_forward(p, r.math, "loss", logits, labels, {.label_smoothing = 0.1}).loss;
  });
}

}  // namespace gpubench::suites
