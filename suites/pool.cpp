#include "reference/ops/pool.h"

#include "suites/suites.h"

namespace gpubench::suites {
namespace {

// n images of h x h pixels and c channels; windows of r x r.
Point point(std::int64_t n, std::int64_t h, std::int64_t c, std::int64_t r, std::int64_t stride, std::int64_t pad,
            std::string label, Tier tier, std::vector<std::string> recipes = {}) {
  return {{{"n", n}, {"h", h}, {"w", h}, {"c", c}, {"r", r}, {"stride", stride}, {"pad", pad}},
          std::move(label),
          tier,
          std::move(recipes)};
}

// ResNet-50 (He et al., arXiv 1512.03385), VGG-16 (Simonyan and Zisserman, arXiv 1409.1556).
Grid largest_of() {
  return grid_of({
      point(1, 56, 64, 3, 2, 1, "resnet50 stem, a quarter", Tier::smoke, {"f32"}),
      point(4, 112, 64, 3, 2, 1, "resnet50 stem", Tier::quick),
      point(1, 33, 77, 3, 2, 1, "edge: odd extents, channels that fill no pack", Tier::standard),
      point(32, 112, 64, 3, 2, 1, "resnet50 stem", Tier::standard),
      point(32, 224, 64, 2, 2, 0, "vgg16, first", Tier::standard),
      point(32, 14, 512, 2, 2, 0, "vgg16, last", Tier::standard),
      point(256, 112, 64, 3, 2, 1, "resnet50 stem", Tier::large),
  });
}

// The end of ResNet-50, DenseNet-121's transitions (Huang et al., arXiv 1608.06993), Inception-v3 (Szegedy et al.,
// arXiv 1512.00567).
Grid mean_of() {
  return grid_of({
      point(2, 7, 2048, 7, 1, 0, "resnet50 head", Tier::smoke, {"f32"}),
      point(4, 56, 128, 2, 2, 0, "densenet121, first transition", Tier::quick),
      point(4, 35, 288, 3, 1, 1, "inception-v3, mixed_5d", Tier::quick),
      point(32, 7, 2048, 7, 1, 0, "resnet50 head", Tier::standard),
      point(32, 56, 128, 2, 2, 0, "densenet121, first transition", Tier::standard),
      point(32, 35, 288, 3, 1, 1, "inception-v3, mixed_5d", Tier::standard),
      point(256, 7, 2048, 7, 1, 0, "resnet50 head", Tier::large),
  });
}

Pool window_of(const Case& c) {
  const auto r = c.dim("r"), stride = c.dim("stride"), pad = c.dim("pad");
  return {.window_h = r, .window_w = r, .stride_h = stride, .stride_w = stride, .pad_h = pad, .pad_w = pad};
}

ValueId image_of(Program& p, const Case& c, const Recipe& r) {
  return p.add(tensor("x", r.tensor, {c.dim("n"), c.dim("h"), c.dim("w"), c.dim("c")}, Role::input, Fill::normal(1.0)));
}

Forward largest(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = image_of(p, c, r);
  return {max_pool_forward(p, window_of(c), r.math, "pool", x).y, {x}};
}

Forward mean(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = image_of(p, c, r);
  return {average_pool_forward(p, window_of(c), r.math, "pool", x), {x}};
}

Program average_backward(const Case& c, const Recipe& r) {
  const Shape x{c.dim("n"), c.dim("h"), c.dim("w"), c.dim("c")};
  const Shape y = pool_extents(average_pool_backward_kind, window_of(c), x).output();
  Program p;
  const ValueId dy = p.add(tensor("dy", r.tensor, y, Role::gradient, Fill::normal(1.0)));
  average_pool_backward(p, window_of(c), r.math, "pool.backward", dy, x[1], x[2]);
  return p;
}

std::shared_ptr<const Workload> pooling(std::string name, std::string description, Grid grid,
                                        Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "n", PrimaryMetric::bytes_per_s, "images", CacheMode::cold},
                  std::move(grid),
                  build,
                  [](const Case& c) { return static_cast<double>(c.dim("n")); }});
}

}  // namespace

Suite pool() {
  return {"pool",
          "pooling layers of convolutional networks, forward and backward, NHWC",
          {
              pooling("max_pool_forward", "the largest element of each window, and its index", largest_of(),
                      forward<largest>),
              pooling("max_pool_backward", "its gradient: dy to the chosen elements", largest_of(), backward<largest>),
              pooling("average_pool_forward", "the mean of each window", mean_of(), forward<mean>),
              pooling("average_pool_backward", "its gradient: spread evenly", mean_of(), average_backward),
          }};
}

}  // namespace gpubench::suites
