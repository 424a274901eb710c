// Suite conv: convolutions of ResNet-50 v1.5 (He et al., arXiv 1512.03385; stride on the 3x3) and DeepBench, NHWC, in
// three directions, and edge shapes (depthwise, dilated, odd padding).
#include <cmath>
#include <utility>

#include "reference/ops/conv2d.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

struct Layer {
  std::int64_t c, h, k, r, stride, pad;
  Tier smallest;  // the lowest tier that runs it
};

// ResNet-50's 23 distinct convolutions; h = w, r = s.
constexpr Layer resnet50_layers[] = {
    {3, 224, 64, 7, 2, 3, Tier::quick},       {64, 56, 256, 1, 1, 0, Tier::standard},
    {64, 56, 64, 1, 1, 0, Tier::standard},    {64, 56, 64, 3, 1, 1, Tier::smoke},
    {256, 56, 64, 1, 1, 0, Tier::quick},      {256, 56, 512, 1, 2, 0, Tier::quick},
    {256, 56, 128, 1, 1, 0, Tier::standard},  {128, 56, 128, 3, 2, 1, Tier::standard},
    {128, 28, 512, 1, 1, 0, Tier::standard},  {512, 28, 128, 1, 1, 0, Tier::standard},
    {128, 28, 128, 3, 1, 1, Tier::standard},  {512, 28, 1024, 1, 2, 0, Tier::standard},
    {512, 28, 256, 1, 1, 0, Tier::standard},  {256, 28, 256, 3, 2, 1, Tier::quick},
    {256, 14, 1024, 1, 1, 0, Tier::smoke},    {1024, 14, 256, 1, 1, 0, Tier::standard},
    {256, 14, 256, 3, 1, 1, Tier::quick},     {1024, 14, 2048, 1, 2, 0, Tier::standard},
    {1024, 14, 512, 1, 1, 0, Tier::standard}, {512, 14, 512, 3, 2, 1, Tier::standard},
    {512, 7, 2048, 1, 1, 0, Tier::standard},  {2048, 7, 512, 1, 1, 0, Tier::standard},
    {512, 7, 512, 3, 1, 1, Tier::quick},
};

Grid layers() {
  Grid grid;
  grid.recipes = training_recipes();
  const auto add = [&](const Convolution& layer, std::int64_t n, const char* label, Tier tier,
                       std::int64_t dilation = 1, std::int64_t groups = 1) {
    grid.points.push_back(conv_point(layer, n, label, tier, dilation, groups));
  };
  for (const auto& [c, h, k, r, stride, pad, smallest] : resnet50_layers) {
    const Convolution layer{h, h, c, k, r, r, stride, pad};
    if (smallest == Tier::smoke) add(layer, 2, "resnet50", Tier::smoke);
    add(layer, 4, "resnet50", smallest == Tier::quick ? Tier::quick : Tier::standard);
    add(layer, 32, "resnet50", Tier::standard);
    add(layer, 256, "resnet50", Tier::large);
  }
  add({28, 28, 64, 64, 3, 3, 1, 1}, 4, "edge: depthwise", Tier::quick, 1, 64);
  add({28, 28, 32, 48, 3, 3, 1, 2}, 4, "edge: dilated", Tier::quick, 2);
  add({13, 17, 24, 40, 5, 3, 1, 3}, 3, "edge: odd extents, more padding than the filter reaches", Tier::quick);
  for (Point& point : deepbench_convolutions()) grid.points.push_back(std::move(point));
  return grid;
}

Conv2d attributes(const Case& c) {
  const auto stride = c.dim("stride"), pad = c.dim("pad"), dilation = c.dim("dilation");
  return {stride, stride, pad, pad, dilation, dilation, c.dim("groups")};
}

// Scaled so that outputs are about one.
struct Tensors {
  TensorSpec x, filter, dy;
};
Tensors tensors(const Case& c, const Recipe& r) {
  const Shape x{c.dim("n"), c.dim("h"), c.dim("w"), c.dim("c")};
  const Shape filter{c.dim("k"), c.dim("r"), c.dim("s"), c.dim("c") / c.dim("groups")};
  const Conv2dExtents e = extents_of(attributes(c), x, filter);
  const double fan_in = static_cast<double>(e.r * e.s * e.c) / static_cast<double>(c.dim("groups"));
  return {tensor("x", r.tensor, x, Role::input, Fill::normal(1.0)),
          tensor("filter", r.tensor, filter, Role::parameter, Fill::normal(1.0 / std::sqrt(fan_in))),
          tensor("dy", r.tensor, {e.n, e.p, e.q, e.k}, Role::gradient, Fill::normal(1.0))};
}

Program conv2d_forward_step(const Case& c, const Recipe& r) {
  Tensors t = tensors(c, r);
  Program p;
  const ValueId x = p.add(t.x);
  const ValueId filter = p.add(t.filter);
  conv2d_forward(p, attributes(c), r.math, "y", x, filter);
  return p;
}

Program backward_data(const Case& c, const Recipe& r) {
  Tensors t = tensors(c, r);
  Program p;
  const ValueId dy = p.add(t.dy);
  const ValueId filter = p.add(t.filter);
  conv2d_backward_data(p, attributes(c), r.math, "dx", dy, filter, c.dim("h"), c.dim("w"));
  return p;
}

Program backward_filter(const Case& c, const Recipe& r) {
  Tensors t = tensors(c, r);
  Program p;
  const ValueId x = p.add(t.x);
  const ValueId dy = p.add(t.dy);
  conv2d_backward_filter(p, attributes(c), r.math, "dfilter", x, dy, c.dim("r"), c.dim("s"));
  return p;
}

WorkloadInfo convolution(std::string name, std::string description) {
  return {std::move(name), std::move(description), "n", PrimaryMetric::flop_per_s, "images", CacheMode::cold};
}

double images(const Case& c) { return static_cast<double>(c.dim("n")); }

}  // namespace

Point conv_point(const Convolution& l, std::int64_t n, std::string label, Tier tier, std::int64_t dilation,
                 std::int64_t groups) {
  return {{{"n", n},
           {"h", l.h},
           {"w", l.w},
           {"c", l.c},
           {"k", l.k},
           {"r", l.r},
           {"s", l.s},
           {"stride", l.stride},
           {"pad", l.pad},
           {"dilation", dilation},
           {"groups", groups}},
          std::move(label),
          tier};
}

Suite conv() {
  Grid data = layers();  // without first layers: training needs no gradient of an image or of sound
  std::erase_if(data.points, [](const Point& p) { return p.dims[3].second <= 3; });
  return {
      "conv",
      "convolutions of ResNet-50 and DeepBench in all three directions, NHWC",
      {
          declare({convolution("conv2d_forward", "y = conv(x, filter)"), layers(), conv2d_forward_step, images}),
          declare({convolution("conv2d_backward_data", "dx from dy and filter"), data, backward_data, images}),
          declare({convolution("conv2d_backward_filter", "dfilter from x and dy"), layers(), backward_filter, images}),
      }};
}

}  // namespace gpubench::suites
