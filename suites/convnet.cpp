// Suite convnet: training steps of convolutional networks, forward to SGD: ResNet's bottlenecks, whole ResNet and VGG.
// On several ranks each has the case's batch and its own batch statistics.
#include "suites/models/models.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid bottlenecks() {
  const auto point = [](std::int64_t n, std::int64_t h, std::int64_t c, std::int64_t width, std::int64_t stride,
                        std::string label, Tier tier) {
    return Point{{{"n", n}, {"h", h}, {"c", c}, {"width", width}, {"stride", stride}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(2, 14, 256, 64, 1, "resnet50 conv4_x, a quarter of the width", Tier::smoke),
      point(4, 56, 64, 64, 1, "resnet50 conv2_x, first", Tier::quick),
      point(4, 28, 512, 256, 2, "resnet50 conv4_x, first", Tier::quick),
      point(4, 7, 2048, 512, 1, "resnet50 conv5_x", Tier::quick),
  };
  for (const std::int64_t n : {32, 256}) {
    const Tier tier = n == 32 ? Tier::standard : Tier::large;
    grid.points.insert(grid.points.end(), {
                                              point(n, 56, 64, 64, 1, "resnet50 conv2_x, first", tier),
                                              point(n, 56, 256, 64, 1, "resnet50 conv2_x", tier),
                                              point(n, 56, 256, 128, 2, "resnet50 conv3_x, first", tier),
                                              point(n, 28, 512, 128, 1, "resnet50 conv3_x", tier),
                                              point(n, 28, 512, 256, 2, "resnet50 conv4_x, first", tier),
                                              point(n, 14, 1024, 256, 1, "resnet50 conv4_x", tier),
                                              point(n, 14, 1024, 512, 2, "resnet50 conv5_x, first", tier),
                                              point(n, 7, 2048, 512, 1, "resnet50 conv5_x", tier),
                                          });
  }
  return grid;
}

Grid networks() {
  const auto point = [](std::int64_t n, std::int64_t image, std::int64_t width, std::int64_t depth,
                        std::int64_t classes, std::string label, Tier tier) {
    return Point{
        {{"n", n}, {"image", image}, {"width", width}, {"depth", depth}, {"classes", classes}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(2, 64, 4, 14, 10, "resnet50, 4 narrow bottlenecks", Tier::smoke),
      point(2, 128, 64, 50, 1000, "resnet50, small images", Tier::standard),
      point(32, 224, 64, 50, 1000, "resnet50", Tier::standard),
      point(256, 224, 64, 50, 1000, "resnet50", Tier::large),
      point(64, 224, 64, 101, 1000, "resnet101", Tier::large),
      point(64, 224, 64, 152, 1000, "resnet152", Tier::large),
  };
  return grid;
}

Grid vgg_networks() {
  const auto point = [](std::int64_t n, Tier tier) {
    return Point{{{"n", n}, {"image", 224}, {"width", 64}, {"classes", 1000}}, "vgg-16", tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {point(32, Tier::standard), point(128, Tier::large)};
  return grid;
}

}  // namespace

Suite convnet() {
  return {"convnet",
          "whole training steps of convolutional networks: forward, backward, SGD with momentum",
          {
              declare_step("resnet_block", "one bottleneck of ResNet v1.5: forward, backward, SGD step", "images",
                           {"n"}, bottlenecks(), resnet_block_step),
              declare_step("resnet_train_step", "a whole ResNet v1.5 training step: images to SGD", "images", {"n"},
                           networks(), resnet_train_step),
              declare_step("vgg_train_step", "a whole VGG-16 training step with batch normalization: images to SGD",
                           "images", {"n"}, vgg_networks(), vgg_train_step),
          }};
}

}  // namespace gpubench::suites
