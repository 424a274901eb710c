// The list of all suites, the only place where they are named together, and how a suite file declares its workloads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/workload.h"

namespace gpubench {

/// Every suite in the order in which they are listed and run.
[[nodiscard]] std::span<const Suite> all_suites();

namespace suites {

[[nodiscard]] Suite gemm();         ///< gemm.cpp
[[nodiscard]] Suite conv();         ///< conv.cpp
[[nodiscard]] Suite attention();    ///< attention.cpp
[[nodiscard]] Suite norm();         ///< norm.cpp
[[nodiscard]] Suite activation();   ///< activation.cpp
[[nodiscard]] Suite pool();         ///< pool.cpp
[[nodiscard]] Suite loss();         ///< loss.cpp
[[nodiscard]] Suite optimizer();    ///< optimizer.cpp
[[nodiscard]] Suite moe();          ///< moe.cpp
[[nodiscard]] Suite memory();       ///< memory.cpp
[[nodiscard]] Suite link();         ///< link.cpp
[[nodiscard]] Suite launch();       ///< launch.cpp
[[nodiscard]] Suite collectives();  ///< collectives.cpp
[[nodiscard]] Suite transformer();  ///< transformer.cpp
[[nodiscard]] Suite convnet();      ///< convnet.cpp
[[nodiscard]] Suite scaling();      ///< scaling.cpp
[[nodiscard]] Suite variants();     ///< variants/variants.cpp

/// A workload by its four parts, which are Workload's members of the same names.
struct Declaration {
  WorkloadInfo info;
  Grid grid;
  std::function<Program(const Case&, const Recipe&)> build;
  std::function<double(const Case&)> items;
};

/// Recipes of matrix products and whole steps: those in which tensors are no wider than f32 and products read them
/// unchanged.
[[nodiscard]] inline std::vector<std::string> training_recipes() { return {"f32", "tf32", "bf16", "f16"}; }

/// The mode of training steps in f16, all of which scale their loss (models/layers.h): without it, a case was one that
/// did not.
inline constexpr const char* loss_scaling_mode = "loss_scaling";

/// The mode of training steps of language models of which 15% of the labels count, as in masked language models and
/// where prompts are left out: no two parts of a batch have equally many.
inline constexpr const char* masked_mode = "masked";

/// Dimension "micro" of training steps that add up the gradients of so many micro-batches, each of the case's own
/// batch; 1 without it. Items are those of all of them.
[[nodiscard]] std::int64_t micro_batches(const Case& c);

/// A workload of one rank: build() is given the case's recipe.
[[nodiscard]] std::shared_ptr<const Workload> declare(Declaration declaration);

/// The case of a step whose ranks share sequences (RankLayout::cp), with the part that each has as its dimension "s".
/// Throws ProgramError for one that they cannot share equally.
[[nodiscard]] Case with_part_of_sequences(Case c);

/// What ranks can share of a training step besides its batch and its weights.
struct StepSharing {
  bool tensors = false;    ///< its layers say how their weights are cut (Layers::linear)
  bool experts = false;    ///< it has some (Layers::experts)
  bool sequences = false;  ///< only its attention looks beyond a token, and its tables of positions are Layers'
  bool blocks = false;     ///< it has some, "block0." and so on
};

/// A whole training step, on up to 64 ranks with a batch each. Its items ("tokens") are as many as the product of these
/// dimensions says, of which the first is the batch axis. Points in f16 have loss_scaling_mode.
[[nodiscard]] std::shared_ptr<const Workload> declare_step(std::string name, std::string description, std::string item,
                                                           std::vector<std::string> dims, Grid grid,
                                                           Program (*build)(const Case&, const Recipe&),
                                                           const StepSharing& sharing = {});

/// What a forward returns: the value that the gradient flows into, and those whose gradients are wanted.
struct Forward {
  ValueId y;
  std::vector<ValueId> wanted;
};
/// The backward of what `forward` appends, derived from it. It reads what the forward saved: that forward is set-up,
/// checked but not timed. The gradient that flows in is a source "dy", about one.
[[nodiscard]] Program backward_of(const std::function<Forward(Program&)>& forward);

/// What a case times: a forward, or the backward that is derived of it.
using BuildForward = Forward (*)(Program&, const Case&, const Recipe&);
template <BuildForward build>
[[nodiscard]] Program forward(const Case& c, const Recipe& r) {
  Program p;
  build(p, c, r);
  return p;
}
template <BuildForward build>
[[nodiscard]] Program backward(const Case& c, const Recipe& r) {
  return backward_of([&](Program& p) { return build(p, c, r); });
}

/// Points in f32, bf16 and f16: recipes of ops whose tensors are of one type, and that multiply no matrices.
[[nodiscard]] Grid grid_of(std::vector<Point> points);

/// A point of `rows` rows of `n` elements; in all recipes of its grid, or in these.
[[nodiscard]] Point row_point(std::int64_t rows, std::int64_t n, std::string label, Tier tier,
                              std::vector<std::string> recipes = {});
/// A workload over such rows, in bytes per second.
[[nodiscard]] std::shared_ptr<const Workload> declare_rows(std::string name, std::string description, Grid grid,
                                                           Program (*build)(const Case&, const Recipe&));

/// A workload over flat arrays of "n" elements, in bytes per second; `item` names an element ("parameters").
[[nodiscard]] std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item,
                                                           Grid grid, Program (*build)(const Case&, const Recipe&));

/// The three products of a linear layer with weight [n, k] on m tokens.
enum class Direction { forward, backward_data, backward_weight };

/// A convolution of images [h, w, c] with k filters of r x s, NHWC; stride and padding are those of both axes.
struct Convolution {
  std::int64_t h, w, c, k, r, s, stride, pad;
};
/// Its point in the grids of suite conv, on n images.
[[nodiscard]] Point conv_point(const Convolution& layer, std::int64_t n, std::string label, Tier tier,
                               std::int64_t dilation = 1, std::int64_t groups = 1);

/// DeepBench's training lists, at tier large (deepbench.cpp): its 160 products by the direction of a linear layer that
/// each is, and its 90 different convolutions.
[[nodiscard]] std::vector<Point> deepbench_products(Direction direction);
[[nodiscard]] std::vector<Point> deepbench_convolutions();

}  // namespace suites
}  // namespace gpubench
