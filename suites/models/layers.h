// What the models of the suites are made of: parameters with their masters, layers, and a training step around them.
// Only forwards are written here; backwards come from differentiate().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/core/workload.h"
#include "reference/ops/gemm.h"
#include "reference/ops/rotary.h"
#include "reference/ops/transform/partition.h"

namespace gpubench::suites {

/// A trained tensor: the weight that ops read, and its f32 master where the recipe keeps a copy of lower precision.
struct Parameter {
  ValueId weight;
  std::optional<ValueId> master;
  MaybeCut cut;             ///< where several ranks share it
  bool is_experts = false;  ///< of ranks that share experts, not tensors
};

/// How the weight of a linear layer, [n, k], is shared by ranks that share the layer: by what comes out (columns of the
/// result, whose sections are each cut by themselves), or by what goes in.
[[nodiscard]] inline Cut by_columns(std::vector<std::int64_t> sections = {}) { return {0, std::move(sections)}; }
inline const Cut by_rows{1};
/// And a table with a row for each of `count` tokens or classes: by these, where the ranks can share them equally.
[[nodiscard]] inline MaybeCut by_tokens(const Case& c, std::int64_t count) {
  return count % c.parallel().tp == 0 ? MaybeCut(by_columns()) : MaybeCut();
}

/// A linear layer's product alone, and with its bias.
inline constexpr Gemm no_bias{.transpose_b = true};
inline constexpr Gemm with_bias{.transpose_b = true, .bias = true};

/// b sequences of s tokens, and the heads that attend to them.
struct Heads {
  std::int64_t b = 1, s = 1, heads = 1;
};

class Layers;
/// Appends the optimizer's ops, given the gradients of all parameters.
using Optimizer = void (Layers::*)(const std::vector<ValueId>& gradients);

/// Appends layers to a program, in the types of a recipe, and keeps track of their parameters. A label starts the names
/// of all that a layer adds.
class Layers {
 public:
  Layers(Program& program, const Recipe& recipe) : program_(program), recipe_(recipe) {}

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Of the sources that ranks may share, and of those of which each may keep a part: weights and moments. `step`: of
  /// these layers, whose ranks may share them already.
  [[nodiscard]] const Cuts& cuts() const { return cuts_; }
  [[nodiscard]] Cuts weight_cuts(const Program& step, int ranks) const;
  /// Sources with a row for each position of a sequence.
  [[nodiscard]] const std::set<std::string, std::less<>>& by_position() const { return by_position_; }
  /// Of those that experts have.
  [[nodiscard]] const Cuts& expert_cuts() const { return expert_cuts_; }

  // --- sources ---

  /// Part of the batch: sharded over the ranks along its first axis.
  ValueId batch(TensorSpec spec);
  /// i32 [n], uniform in [0, classes): tokens, labels.
  ValueId classes(const std::string& name, std::int64_t n, std::int64_t classes);
  /// The same, "labels"; in masked_mode most of them do not count.
  ValueId labels(const Case& c, std::int64_t n, std::int64_t classes);
  /// i32 [n]: 0, step, ... (period - 1) step, 0, ...; the same on every rank, or parts of it where they share
  /// sequences.
  ValueId sequence(const std::string& name, std::int64_t n, std::int64_t period, std::int64_t step = 1);

  /// A weight of the recipe's tensor type. Where that is narrower than f32, the filled tensor is the f32 master and the
  /// weight is its cast, made before timing: they start out consistent, as in real training.
  ValueId matrix(const std::string& name, Shape shape, double scale, const MaybeCut& cut = {});
  /// The same, [experts, n, k], of experts that ranks may share.
  ValueId experts(const std::string& name, Shape shape, double scale);
  /// [n], f32 in every recipe: its own master. About `offset`; with 0, around it.
  ValueId wide_parameter(const std::string& name, std::int64_t n, double offset);

  // --- layers ---

  /// x [rows, k] -> [rows, n]. Where the recipe quantizes, the product is of 8-bit copies of x and the weight, with
  /// scales from their own largest elements (quantize_by_amax()); so are, of gradients and these, those of its
  /// backward. `cut`: of the weight, and so of its bias.
  ValueId linear(const std::string& label, ValueId x, std::int64_t n, const Gemm& attributes = with_bias,
                 const MaybeCut& cut = {});
  /// x [..., n], as all norms
  ValueId layer_norm(const std::string& label, ValueId x, double epsilon = 1e-5);
  ValueId rms_norm(const std::string& label, ValueId x);
  ValueId sum(const std::string& label, ValueId a, ValueId b);
  ValueId relu(const std::string& label, ValueId x);
  /// x [n, h, w, c] -> [n, ceil(h / stride), ..., k]: a convolution of r x r (odd) without a bias, padded by r / 2, and
  /// batch normalization, which updates its running averages.
  ValueId conv_norm(const std::string& label, ValueId x, std::int64_t k, std::int64_t r, std::int64_t stride);
  /// Squares of an image [n, h, w, c], each of `patch` x `patch` x c elements as a row, image by image: what a
  /// convolution of that window and stride meets.
  ValueId patches(ValueId image, std::int64_t patch);
  /// The elements of a row-major x in another shape.
  ValueId reshaped(const std::string& name, ValueId x, Shape shape);
  /// Columns [first, first + n) of x [rows, width], n being the last extent: as [rows, n], or as heads [b, s, heads, d]
  /// of rows that are b sequences; `per_head`: how many columns there are from one head to the next, d unless given.
  ValueId columns_of(const std::string& name, ValueId x, const Shape& shape, std::int64_t first,
                     std::int64_t per_head = 0);
  /// Attention of q [b, s, hq, d] to k [b, s, hkv, d] and v [b, s, hkv, dv] -> [b s, hq dv]
  ValueId attention(const std::string& prefix, ValueId q, ValueId k, ValueId v, bool causal);
  /// x [b s, h] -> [b s, h]: multi-head attention between linear layers, of which the first has q, k and v in one.
  ValueId self_attention(const std::string& prefix, ValueId x, const Heads& heads, bool causal);

  /// x [rows, h] -> [rows, h]: down(gelu(up x))
  ValueId gelu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden, GeluForm form);
  /// Cosines and sines of s positions, as the harness fills tables: at random, so that x keeps about its magnitude.
  RotaryTables rotary_tables(std::int64_t s, std::int64_t head_width);
  /// x [rows, h] -> [rows, h]: down(swiglu(gate x, up x)) without biases, gate and up in one product.
  ValueId swiglu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden);
  /// Rows [n, width] of a new table [count, width], by indices i32 [n].
  ValueId embedding(const std::string& label, ValueId indices, std::int64_t count, std::int64_t width,
                    const MaybeCut& cut = {});

  // --- training ---

  /// The loss of logits by labels().
  ValueId loss(const Case& c, ValueId logits, ValueId labels);
  /// The factor on the loss, and so on all gradients, in recipes whose gradients would underflow without: f16. Its
  /// value is one of those that training with f16 arrives at, 2^10; nothing in the suites' steps overflows with it.
  [[nodiscard]] std::optional<ValueId> loss_scale();
  /// Appends the backward from `value`, the loss, or with `seed_gradient` from that; returns the gradients of the
  /// parameters. `also_wanted`: values whose gradients are computed too (the input of a block).
  std::vector<ValueId> backward(ValueId value, std::optional<ValueId> seed_gradient = {},
                                const std::vector<ValueId>& also_wanted = {});
  /// Appends the optimizer. With the `scale` of the loss, it is taken off the gradients first; where one of them is
  /// infinite or NaN, the optimizer changes nothing; and the scale is adapted for the next step.
  void update(Optimizer optimizer, const std::vector<ValueId>& gradients, std::optional<ValueId> scale);
  /// Appends the gradients' norm, their clip at 1, and AdamW in place.
  void adamw(const std::vector<ValueId>& gradients);
  /// Appends SGD in place: momentum 0.9, weight decay 1e-4 (He et al., arXiv 1512.03385).
  void sgd(const std::vector<ValueId>& gradients);

 private:
  /// A source like a parameter: one of its optimizer's moments.
  ValueId moment(const Parameter& parameter, const char* suffix, const Fill& fill);
  void adamw(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr, ValueId step);
  void sgd(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr);

  Program& program_;
  const Recipe& recipe_;
  /// A weight, or what belongs to one.
  ValueId source(TensorSpec spec, const MaybeCut& cut, bool is_experts = false);
  ValueId weight(const std::string& name, Shape shape, double scale, const MaybeCut& cut, bool is_experts);

  std::vector<Parameter> parameters_;
  Cuts cuts_, expert_cuts_;
  std::set<std::string, std::less<>> by_position_;
  std::set<std::string, std::less<>> trained_;  // all weights' sources, and their moments
  std::optional<ValueId> found_inf_;            // whether the optimizer is to leave everything as it is
};

struct Block {
  TensorSpec x;
  Shape y;  ///< of the result, whose gradient flows in
  Optimizer optimizer;
  std::function<ValueId(Layers&, ValueId x)> forward;
};
/// The training step of a block: forward, backward from a gradient of its result, and the optimizer. On the ranks of
/// the case, each with a batch of its own; gradients are summed. As that of a model it may have several micro-batches
/// (micro_batches()) and run its blocks again (recompute_mode).
[[nodiscard]] Program block_step(const Case& c, const Recipe& r, const Block& block);
/// Of a transformer: rows of tokens [tokens, width] as norms meet them, and AdamW.
[[nodiscard]] Block token_block(const Recipe& r, std::int64_t tokens, std::int64_t width,
                                std::function<ValueId(Layers&, ValueId x)> forward);
/// What a training step descends: a loss, a mean over the batch; or a value and the gradient of a loss by it, where no
/// op computes that loss: not for recipes that scale it.
struct Objective {
  ValueId value;
  std::optional<ValueId> gradient;
  Objective(ValueId value, std::optional<ValueId> gradient = {}) : value(value), gradient(gradient) {}
};
/// The training step of a whole model, whose `forward` returns its objective.
[[nodiscard]] Program train_step(const Case& c, const Recipe& r, Optimizer optimizer,
                                 const std::function<Objective(Layers&)>& forward);

}  // namespace gpubench::suites
