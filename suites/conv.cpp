// Suite conv: the convolutions of ResNet-50 v1.5 (He et al., arXiv 1512.03385; stride on the 3x3), NHWC, in all three
// directions, and edge shapes (depthwise, dilated).
#include <cmath>

#include "reference/ops/conv2d.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

struct Layer {
  std::int64_t c, h, k, r, stride, pad;
  Tier smallest;  // the lowest tier that runs it
};

// The 23 distinct convolutions; h = w, r = s.
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

Point point(const Layer& l, std::int64_t n, std::int64_t dilation, std::int64_t groups, std::string label, Tier tier) {
  return {{{"n", n},
           {"h", l.h},
           {"w", l.h},
           {"c", l.c},
           {"k", l.k},
           {"r", l.r},
           {"s", l.r},
           {"stride", l.stride},
           {"pad", l.pad},
           {"dilation", dilation},
           {"groups", groups}},
          std::move(label),
          tier};
}

Grid layers() {
  Grid grid;
  grid.recipes = training_recipes();
  for (const Layer& layer : resnet50_layers) {
    if (layer.smallest == Tier::smoke) grid.points.push_back(point(layer, 2, 1, 1, "resnet50", Tier::smoke));
    // Layers that smoke runs with two images are not repeated with four in quick.
    const Tier four = layer.smallest == Tier::quick ? Tier::quick : Tier::standard;
    grid.points.push_back(point(layer, 4, 1, 1, "resnet50", four));
    grid.points.push_back(point(layer, 32, 1, 1, "resnet50", Tier::standard));
    grid.points.push_back(point(layer, 256, 1, 1, "resnet50", Tier::large));
  }
  grid.points.push_back(point({64, 28, 64, 3, 1, 1, Tier::quick}, 4, 1, 64, "edge: depthwise", Tier::quick));
  grid.points.push_back(point({32, 28, 48, 3, 1, 2, Tier::quick}, 4, 2, 1, "edge: dilated", Tier::quick));
  return grid;
}

Conv2d attributes(const Case& c) {
  const auto stride = c.dim("stride"), pad = c.dim("pad"), dilation = c.dim("dilation");
  return {stride, stride, pad, pad, dilation, dilation, c.dim("groups")};
}

// Tensors of a convolution at the scales of training: outputs of about one.
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

Suite conv() {
  Grid data = layers();  // no backward_data for the stem: nothing needs the gradient of the image
  std::erase_if(data.points, [](const Point& p) { return p.dims[3].second == 3; });
  return {
      "conv",
      "convolutions of ResNet-50 in all three directions, NHWC",
      {
          declare({convolution("conv2d_forward", "y = conv(x, filter)"), layers(), conv2d_forward_step, images}),
          declare({convolution("conv2d_backward_data", "dx from dy and filter"), data, backward_data, images}),
          declare({convolution("conv2d_backward_filter", "dfilter from x and dy"), layers(), backward_filter, images}),
      }};
}

}  // namespace gpubench::suites
