// Suite transformer: training steps as a whole: a GPT-2 block and a small complete GPT-2, forward to AdamW. On several
// ranks each has a batch of the size that the case names (weak scaling), and gradients are reduced between them.
#include "reference/ops/cross_entropy.h"
#include "reference/ops/transform/data_parallel.h"
#include "suites/declare.h"
#include "suites/gpt2_model.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Gpt2Shape shape_of(const Case& c) { return {c.dim("b"), c.dim("s"), c.dim("h"), c.dim("heads")}; }

double tokens_of(const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s") * c.ranks); }

/// A source of which each rank has its own part.
ValueId add_part(Program& p, TensorSpec spec) {
  spec.placement = Placement::shard(0);
  return p.add(std::move(spec));
}

Program block_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  Program p;
  const ValueId x =
      add_part(p, tensor("x", r.tensor, {shape.tokens(), shape.width}, Role::input, Fill::norm_rows(1.0)));
  const ValueId dy =
      add_part(p, tensor("dy", r.tensor, {shape.tokens(), shape.width}, Role::gradient, Fill::normal(0.03125)));
  Gpt2Model model(p, r, shape);
  const ValueId y = model.block("", x);
  const std::vector<ValueId> gradients = model.train(y, dy, {x});
  return data_parallel(p, {.ranks = c.ranks, .reduction = Reduction::sum, .math = r.math}, gradients);
}

Program train_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  const std::int64_t vocabulary = c.dim("vocab");
  Program p;
  const ValueId tokens =
      add_part(p, tensor("tokens", DType::i32, {shape.tokens()}, Role::input, Fill::integers(0, vocabulary - 1)));
  const ValueId labels =
      add_part(p, tensor("labels", DType::i32, {shape.tokens()}, Role::input, Fill::integers(0, vocabulary - 1)));
  const ValueId positions =
      p.add(tensor("positions", DType::i32, {shape.tokens()}, Role::input, Fill::sequence(0, shape.sequence - 1)));
  Gpt2Model model(p, r, shape);
  const ValueId logits = model.language_model(tokens, positions, c.dim("layers"), vocabulary);
  const ValueId loss = cross_entropy_forward(p, r.math, "loss", logits, labels).loss;
  const std::vector<ValueId> gradients = model.train(loss, {}, {});
  return data_parallel(p, {.ranks = c.ranks, .math = r.math}, gradients);
}

Grid blocks() {
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

Grid models() {
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
  };
  return grid;
}

WorkloadInfo step(std::string name, std::string description) {
  WorkloadInfo info{std::move(name), std::move(description), "b", PrimaryMetric::items_per_s,
                    "tokens",        CacheMode::step};
  info.most_ranks = 64;
  return info;
}

}  // namespace

Suite transformer() {
  return {"transformer",
          "whole training steps of transformers: forward, backward, clip, AdamW",
          {
              declare({step("gpt2_block", "one GPT-2 block: forward, backward, AdamW step"), blocks(), block_step,
                       tokens_of}),
              declare({step("gpt2_train_step", "a whole GPT-2 training step: embedding to AdamW"), models(), train_step,
                       tokens_of}),
          }};
}

}  // namespace gpubench::suites
