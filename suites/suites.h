// The list of all suites, and the functions with which a suite file declares its workloads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/workload.h"

namespace gpubench {

[[nodiscard]] std::span<const Suite> all_suites();

namespace suites {

[[nodiscard]] Suite gemm();
[[nodiscard]] Suite conv();
[[nodiscard]] Suite attention();
[[nodiscard]] Suite norm();
[[nodiscard]] Suite activation();
[[nodiscard]] Suite pool();
[[nodiscard]] Suite loss();
[[nodiscard]] Suite optimizer();
[[nodiscard]] Suite moe();
[[nodiscard]] Suite memory();
[[nodiscard]] Suite link();
[[nodiscard]] Suite launch();
[[nodiscard]] Suite collectives();
[[nodiscard]] Suite transformer();
[[nodiscard]] Suite convnet();
[[nodiscard]] Suite scaling();
[[nodiscard]] Suite variants();

struct Declaration {
  WorkloadInfo info;
  Grid grid;
  std::function<Program(const Case&, const Recipe&)> build;
  std::function<double(const Case&)> items;
};

/// Recipes of matrix products and whole steps: no tensor wider than f32, operands not quantized.
[[nodiscard]] inline std::vector<std::string> training_recipes() { return {"f32", "tf32", "bf16", "f16"}; }

/// Mode of all training steps in f16, which scale their loss (models/layers.h). It separates their case ids from those
/// of earlier steps without loss scaling.
inline constexpr const char* loss_scaling_mode = "loss_scaling";

/// Mode of language-model steps in which 15% of the labels count; the parts of a batch have different counts.
inline constexpr const char* masked_mode = "masked";

/// Dimension "micro": how many micro-batches a training step accumulates, each of the case's batch; 1 if absent.
[[nodiscard]] std::int64_t micro_batches(const Case& c);

[[nodiscard]] std::shared_ptr<const Workload> declare(Declaration declaration);

/// The case with dimension "s" divided by the ranks that share sequences (RankLayout::cp). Throws ProgramError if it is
/// not divisible.
[[nodiscard]] Case with_part_of_sequences(Case c);

/// Parts of a training step, besides batch and weights, that ranks can share.
struct StepSharing {
  bool tensors = false;    ///< layers declare how their weights are cut (Layers::linear)
  bool experts = false;    ///< the step has experts (Layers::experts)
  bool sequences = false;  ///< only attention reads other tokens; position tables are from Layers
  bool blocks = false;     ///< ops are named "block0." and so on
};

/// A whole training step on up to 64 ranks with a batch each. The number of items ("tokens") is the product of `dims`;
/// the first of `dims` is the batch axis. Points in f16 get loss_scaling_mode.
[[nodiscard]] std::shared_ptr<const Workload> declare_step(std::string name, std::string description, std::string item,
                                                           std::vector<std::string> dims, Grid grid,
                                                           Program (*build)(const Case&, const Recipe&),
                                                           const StepSharing& sharing = {});

/// Results of a forward: y, into which the gradient flows, and the values whose gradients are wanted.
struct Forward {
  ValueId y;
  std::vector<ValueId> wanted;
};
/// The backward of what `forward` appends, by differentiation. The forward is set-up: checked but not timed. The
/// incoming gradient is a source "dy" of magnitude about one.
[[nodiscard]] Program backward_of(const std::function<Forward(Program&)>& forward);

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

/// Points in f32, bf16 and f16, for ops whose tensors have one type and that multiply no matrices.
[[nodiscard]] Grid grid_of(std::vector<Point> points);

/// A point of `rows` rows of `n` elements; no `recipes`: those of its grid.
[[nodiscard]] Point row_point(std::int64_t rows, std::int64_t n, std::string label, Tier tier,
                              std::vector<std::string> recipes = {});
[[nodiscard]] std::shared_ptr<const Workload> declare_rows(std::string name, std::string description, Grid grid,
                                                           Program (*build)(const Case&, const Recipe&));

/// A workload over flat arrays of "n" elements, in bytes per second. `item` names an element ("parameters").
[[nodiscard]] std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item,
                                                           Grid grid, Program (*build)(const Case&, const Recipe&));

/// The three products of a linear layer with weight [n, k] on m tokens.
enum class Direction { forward, backward_data, backward_weight };

/// A convolution of images [h, w, c] with k filters of r x s, NHWC; stride and pad hold for both axes.
struct Convolution {
  std::int64_t h, w, c, k, r, s, stride, pad;
};
/// The point of suite conv for n images.
[[nodiscard]] Point conv_point(const Convolution& layer, std::int64_t n, std::string label, Tier tier,
                               std::int64_t dilation = 1, std::int64_t groups = 1);

/// DeepBench's training lists, at tier large: 160 products, by direction, and 90 distinct convolutions.
[[nodiscard]] std::vector<Point> deepbench_products(Direction direction);
[[nodiscard]] std::vector<Point> deepbench_convolutions();

}  // namespace suites
}  // namespace gpubench
