#include "suites/models/models.h"

#include <algorithm>
#include <array>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/pool.h"

namespace gpubench::suites {

Program vgg_train_step(const Case& c, const Recipe& r) {
  return train_step(c, r, &Layers::sgd, [&](Layers& layers) {
    Program& p = layers.program();
    const std::int64_t n = c.dim("n"), size = c.dim("image"), width = c.dim("width");
    ValueId x = layers.batch(tensor("image", r.tensor, {n, size, size, 3}, Role::input, Fill::normal(1.0)));
    const ValueId labels = layers.classes("labels", n, c.dim("classes"));
    constexpr std::array convolutions{2, 2, 3, 3, 3};
    for (std::size_t stage = 0; stage < convolutions.size(); ++stage) {
      const std::string prefix = "stage" + std::to_string(stage + 1) + ".";
      for (int i = 0; i < convolutions[stage]; ++i) {
        const std::string number = std::to_string(i + 1);
        x = layers.conv_norm(prefix + "conv" + number, x, std::min(width << stage, 8 * width), 3, 1);
        x = layers.relu(prefix + "relu" + number, x);
      }
      const Pool halves{.window_h = 2, .window_w = 2, .stride_h = 2, .stride_w = 2};
      x = max_pool_forward(p, halves, r.math, prefix + "pool", x).y;
    }
    x = layers.reshaped("features", x, {n, p.spec(x).shape.elements() / n});
    x = layers.relu("relu1", layers.linear("linear1", x, 64 * width));
    x = layers.relu("relu2", layers.linear("linear2", x, 64 * width));
    return cross_entropy_forward(p, r.math, "loss", layers.linear("head", x, c.dim("classes")), labels).loss;
  });
}

}  // namespace gpubench::suites
