// Suite scaling: training steps on 1, 2, 4, ... ranks. Weak: each rank has the case's batch, as in suites transformer
// and convnet. Strong: the ranks share it. Tensors, layers, sequences, experts: each rank has a part of these.
#include <algorithm>
#include <optional>

#include "suites/models/models.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

using BuildStep = Program (*)(const Case&, const Recipe&);

Case of_each_rank(Case c, const std::string& batch_axis) {
  for (auto& [axis, extent] : c.dims) {
    if (axis == batch_axis) extent /= c.ranks;
  }
  return c;
}

Case sharing(Case c, int RankLayout::*axis) {
  RankLayout layout;
  layout.*axis = c.ranks;
  for (std::string& mode : modes_of(layout)) c.modes.push_back(std::move(mode));
  return with_part_of_sequences(std::move(c));
}

enum class Scaling { weak, strong, tensors, layers, sequences, experts };

/// The axis of a RankLayout, and the dimension that its ranks divide equally.
struct Shared {
  int RankLayout::*axis;
  const char* dimension;
};
std::optional<Shared> shared_in(Scaling scaling) {
  switch (scaling) {
    case Scaling::weak:
    case Scaling::strong: break;
    case Scaling::tensors: return Shared{&RankLayout::tp, "kv"};
    case Scaling::layers: return Shared{&RankLayout::pp, "layers"};
    case Scaling::sequences: return Shared{&RankLayout::cp, "s"};
    case Scaling::experts: return Shared{&RankLayout::ep, "experts"};
  }
  return std::nullopt;
}

/// A step over increasing numbers of ranks; items of all ranks count.
template <BuildStep build>
std::shared_ptr<const Workload> curve(std::string name, std::string description, std::string item,
                                      std::vector<std::string> dims, std::vector<Point> points, Scaling scaling) {
  WorkloadInfo info{std::move(name), std::move(description), dims.front(), PrimaryMetric::items_per_s,
                    std::move(item), CacheMode::step};
  info.max_ranks = 64;
  info.on_all_ranks = true;
  const std::optional<Shared> shared = shared_in(scaling);
  if (shared || scaling == Scaling::strong) {
    info.fits = [divided = shared ? shared->dimension : dims.front()](const Dims& extents, int ranks) {
      const auto dim = std::ranges::find(extents, divided, &Dims::value_type::first);
      return dim->second % ranks == 0;
    };
  }
  Grid grid;
  grid.points = std::move(points);
  const auto step = [scaling, shared, batch = dims.front()](const Case& c, const Recipe& r) {
    if (shared) return build(sharing(c, shared->axis), r);
    return build(scaling == Scaling::strong ? of_each_rank(c, batch) : c, r);
  };
  const auto items = [scaling, dims](const Case& c) {
    const bool has_own_batches = scaling == Scaling::weak || scaling == Scaling::experts;
    double count = has_own_batches ? c.ranks : 1;  // per micro-batch; declare() multiplies by their number
    for (const std::string& dim : dims) count *= static_cast<double>(c.dim(dim));
    return count;
  };
  return declare({std::move(info), std::move(grid), step, items});
}

// For processors: in f32 only, where large points run in f32 and bf16.
Point small(Point point) {
  point.recipes = {"f32"};
  return point;
}

std::vector<Point> gpt2_points() {
  return {small(gpt2_point(4, 64, 2, 128, 4, 512, "2-layer gpt2", Tier::smoke)),
          small(gpt2_point(8, 128, 4, 256, 8, 2048, "4-layer gpt2", Tier::standard)),
          gpt2_point(64, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::standard)};
}

// The points with `micro` micro-batches; small ones with a batch of one sequence, to keep them short.
std::vector<Point> in_micro_batches(std::vector<Point> points, std::int64_t micro) {
  for (Point& point : points) {
    if (!point.recipes.empty()) point.dims.front().second = 1;
    point.dims.emplace_back("micro", micro);
    point.label += ", " + std::to_string(micro) + " micro-batches";
  }
  return points;
}

std::vector<Point> llama_points() {
  return {small(llama_point(2, 64, 2, 128, 8, 8, 384, 512, "llama3, 2 narrow layers", Tier::smoke)),
          small(llama_point(2, 256, 2, 512, 8, 8, 1408, 2048, "llama3, 2 layers", Tier::standard)),
          llama_point(2, 2048, 22, 2048, 32, 8, 5632, 32000, "tinyllama-1.1b with 8 heads of keys", Tier::standard)};
}

std::vector<Point> mixtral_points() {
  return {{{{"b", 2},
            {"s", 64},
            {"layers", 1},
            {"h", 128},
            {"heads", 4},
            {"kv", 2},
            {"f", 96},
            {"experts", 4},
            {"k", 2},
            {"vocab", 512}},
           "mixtral-8x7b, a small layer of 4 experts",
           Tier::quick,
           {"f32"}},
          {{{"b", 2},
            {"s", 512},
            {"layers", 2},
            {"h", 1024},
            {"heads", 16},
            {"kv", 4},
            {"f", 1792},
            {"experts", 8},
            {"k", 2},
            {"vocab", 32000}},
           "mixtral-8x7b, 2 layers, a quarter of its width",
           Tier::standard}};
}

std::vector<Point> resnet_points() {
  return {{{{"n", 8}, {"image", 64}, {"width", 4}, {"depth", 14}, {"classes", 10}},
           "resnet50, 4 narrow bottlenecks",
           Tier::quick,
           {"f32"}},
          {{{"n", 256}, {"image", 224}, {"width", 64}, {"depth", 50}, {"classes", 1000}}, "resnet50", Tier::standard}};
}

}  // namespace

Suite scaling() {
  const std::vector<std::string> tokens{"b", "s"};
  return {
      "scaling",
      "training steps on 1, 2, 4, ... ranks: with a batch each, with parts of one batch, of tensors, layers, sequences",
      {
          curve<gpt2_train_step>("gpt2_weak", "a whole GPT-2 training step, each rank with this batch", "tokens",
                                 tokens, gpt2_points(), Scaling::weak),
          curve<gpt2_train_step>("gpt2_strong", "a whole GPT-2 training step, all ranks with parts of this batch",
                                 "tokens", tokens, gpt2_points(), Scaling::strong),
          curve<llama_train_step>("llama_shared", "a whole Llama training step, its tensors shared by all ranks",
                                  "tokens", tokens, llama_points(), Scaling::tensors),
          curve<llama_train_step>("llama_sequences",
                                  "a whole Llama training step, each rank with parts of all sequences", "tokens",
                                  tokens, llama_points(), Scaling::sequences),
          curve<gpt2_train_step>("gpt2_stages", "a whole GPT-2 training step, each rank with some of the layers",
                                 "tokens", tokens, in_micro_batches(gpt2_points(), 8), Scaling::layers),
          curve<mixtral_train_step>("mixtral_weak", "a whole Mixtral training step, each rank with this batch",
                                    "tokens", tokens, mixtral_points(), Scaling::weak),
          curve<mixtral_train_step>("mixtral_experts",
                                    "a whole Mixtral training step, each rank with this batch and some of the experts",
                                    "tokens", tokens, mixtral_points(), Scaling::experts),
          curve<resnet_train_step>("resnet_weak", "a whole ResNet training step, each rank with this batch", "images",
                                   {"n"}, resnet_points(), Scaling::weak),
          curve<resnet_train_step>("resnet_strong", "a whole ResNet training step, all ranks with parts of this batch",
                                   "images", {"n"}, resnet_points(), Scaling::strong),
      },
      /*only_by_name=*/false,
      /*repeats_steps=*/true};
}

}  // namespace gpubench::suites
