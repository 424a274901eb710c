// Suite transformer: training steps of transformers as a whole, forward to AdamW: blocks at the sizes of real models,
// and complete models. On several ranks each has a batch of the size that the case names (weak scaling), and gradients
// are reduced between them.
#include "suites/models/gpt2.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid gpt2_blocks() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t heads, std::string label,
                        Tier tier) {
    return Point{{{"b", b}, {"s", s}, {"h", h}, {"heads", heads}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(1, 256, 256, 4, "gpt2 block, a third of the width", Tier::smoke),
      point(1, 512, 768, 12, "gpt2-124m block", Tier::quick),
      point(4, 1024, 768, 12, "gpt2-124m block", Tier::standard),
      point(4, 1024, 1600, 25, "gpt2-1558m block", Tier::large),
      point(1, 2048, 12288, 96, "gpt3-175b block", Tier::large),
  };
  return grid;
}

Grid gpt2_models() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                        std::int64_t vocab, std::string label, Tier tier) {
    return Point{
        {{"b", b}, {"s", s}, {"layers", layers}, {"h", h}, {"heads", heads}, {"vocab", vocab}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(2, 64, 2, 128, 4, 512, "2-layer gpt2", Tier::smoke),
      point(4, 128, 4, 256, 4, 2048, "4-layer gpt2", Tier::quick),
      point(4, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::standard),
      point(16, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::large),
      point(4, 1024, 24, 1024, 16, 50304, "gpt2-350m", Tier::large),
      point(4, 1024, 36, 1280, 20, 50304, "gpt2-774m", Tier::large),
      point(4, 1024, 48, 1600, 25, 50304, "gpt2-1558m", Tier::large),
  };
  return grid;
}

double tokens(const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s") * c.ranks); }

std::shared_ptr<const Workload> step(std::string name, std::string description, Grid grid,
                                     Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {training_step(std::move(name), std::move(description), "b", "tokens"), std::move(grid), build, tokens});
}

}  // namespace

Suite transformer() {
  return {
      "transformer",
      "whole training steps of transformers: forward, backward, clip, AdamW",
      {
          step("gpt2_block", "one GPT-2 block: forward, backward, AdamW step", gpt2_blocks(), gpt2_block_step),
          step("gpt2_train_step", "a whole GPT-2 training step: embedding to AdamW", gpt2_models(), gpt2_train_step),
      }};
}

}  // namespace gpubench::suites
