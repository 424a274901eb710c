// Parts of the suites' models: parameters with f32 masters, layers, and the training step around them.
// Only forwards are written here; differentiate() derives the backwards.
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

/// A trained tensor: the weight that ops read, and its f32 master if the recipe trains in lower precision.
struct Parameter {
  ValueId weight;
  std::optional<ValueId> master;
  MaybeCut cut;             ///< how ranks share it, if they do
  bool is_experts = false;  ///< shared by expert-parallel ranks, not by tensor-parallel ones
};

/// How ranks share the weight [n, k] of a linear layer: by_columns cuts the outputs, each section by itself; by_rows
/// cuts the inputs.
[[nodiscard]] inline Cut by_columns(std::vector<std::int64_t> sections = {}) { return {0, std::move(sections)}; }
inline const Cut by_rows{1};
/// The cut of a table [count, ...], by its rows; none if the ranks cannot share them equally.
[[nodiscard]] inline MaybeCut by_tokens(const Case& c, std::int64_t count) {
  return count % c.parallel().tp == 0 ? MaybeCut(by_columns()) : MaybeCut();
}

inline constexpr Gemm no_bias{.transpose_b = true};
inline constexpr Gemm with_bias{.transpose_b = true, .bias = true};

struct Heads {
  std::int64_t b = 1, s = 1, heads = 1;
};

class Layers;
using Optimizer = void (Layers::*)(const std::vector<ValueId>& gradients);

/// Appends layers to a program, in the types of a recipe, and records their parameters. A `label` or `prefix` begins
/// the names of everything that a layer adds.
class Layers {
 public:
  Layers(Program& program, const Recipe& recipe) : program_(program), recipe_(recipe) {}

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// How ranks may share weights and moments: tensor-parallel ranks (cuts), and fully sharded ones of a `step` made of
  /// these layers (weight_cuts).
  [[nodiscard]] const Cuts& cuts() const { return cuts_; }
  [[nodiscard]] Cuts weight_cuts(const Program& step, int ranks) const;
  [[nodiscard]] const std::set<std::string, std::less<>>& by_position() const { return by_position_; }
  /// How expert-parallel ranks share weights and moments.
  [[nodiscard]] const Cuts& expert_cuts() const { return expert_cuts_; }

  /// A part of the batch, sharded over the ranks along its first axis.
  ValueId batch(TensorSpec spec);
  /// i32 [n], uniform in [0, classes): tokens, labels.
  ValueId classes(const std::string& name, std::int64_t n, std::int64_t classes);
  /// i32 [n], "labels"; in masked_mode most are ignored.
  ValueId labels(const Case& c, std::int64_t n, std::int64_t classes);
  /// i32 [n]: 0, step, ... (period - 1) step, 0, ...; the same on every rank unless ranks share sequences.
  ValueId sequence(const std::string& name, std::int64_t n, std::int64_t period, std::int64_t step = 1);

  /// A weight of the recipe's tensor type. If that is narrower than f32, the f32 master is filled, and the weight is
  /// its cast, made before timing, so that both agree as in training.
  ValueId matrix(const std::string& name, Shape shape, double scale, const MaybeCut& cut = {});
  /// [experts, n, k], shared by expert-parallel ranks.
  ValueId experts(const std::string& name, Shape shape, double scale);
  /// [n], f32 in every recipe and without a separate master; positive, about `offset`, or around 0.
  ValueId wide_parameter(const std::string& name, std::int64_t n, double offset);

  /// x [rows, k] -> [rows, n]. A quantizing recipe multiplies 8-bit copies of x and the weight, scaled by their largest
  /// elements (quantize_by_amax()); the backward's products do the same with gradients. `cut`: of the weight; column
  /// cuts also cut the bias.
  ValueId linear(const std::string& label, ValueId x, std::int64_t n, const Gemm& attributes = with_bias,
                 const MaybeCut& cut = {});
  ValueId layer_norm(const std::string& label, ValueId x, double epsilon = 1e-5);
  ValueId rms_norm(const std::string& label, ValueId x);
  ValueId sum(const std::string& label, ValueId a, ValueId b);
  ValueId relu(const std::string& label, ValueId x);
  /// x [n, h, w, c] -> [n, ceil(h / stride), ..., k]: a convolution of r x r (odd), no bias, padding r / 2; then batch
  /// normalization, which updates its running averages.
  ValueId conv_norm(const std::string& label, ValueId x, std::int64_t k, std::int64_t r, std::int64_t stride);
  /// Squares of an image [n, h, w, c] as rows of patch^2 c elements, image by image: the windows of a convolution whose
  /// stride is its window.
  ValueId patches(ValueId image, std::int64_t patch);
  ValueId reshaped(const std::string& name, ValueId x, Shape shape);
  /// Columns [first, first + n) of x [rows, width], where n is the last extent: as [rows, n], or as heads [b, s, heads,
  /// d] of rows that are b sequences. `per_head`: columns from one head to the next; 0: d.
  ValueId columns_of(const std::string& name, ValueId x, const Shape& shape, std::int64_t first,
                     std::int64_t per_head = 0);
  /// Attention of q [b, s, hq, d] to k [b, s, hkv, d] and v [b, s, hkv, dv] -> [b s, hq dv]
  ValueId attention(const std::string& prefix, ValueId q, ValueId k, ValueId v, bool causal);
  /// x [b s, h] -> [b s, h]: multi-head attention between two linear layers; the first computes q, k and v.
  ValueId self_attention(const std::string& prefix, ValueId x, const Heads& heads, bool causal);

  /// x [rows, h] -> [rows, h]: down(gelu(up x))
  ValueId gelu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden, GeluForm form);
  /// Tables for s positions, random (Fill), so that x keeps about its magnitude.
  RotaryTables rotary_tables(std::int64_t s, std::int64_t head_width);
  /// x [rows, h] -> [rows, h]: down(swiglu(gate x, up x)), no biases; one product computes gate and up.
  ValueId swiglu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden);
  /// Rows of a new table [count, width]; indices i32 [n] -> [n, width].
  ValueId embedding(const std::string& label, ValueId indices, std::int64_t count, std::int64_t width,
                    const MaybeCut& cut = {});

  /// The mean loss of `logits` for labels().
  ValueId loss(const Case& c, ValueId logits, ValueId labels);
  /// The factor on the loss in f16, whose gradients would underflow without: 2^10, typical of f16 training and too
  /// small for overflow in the suites' steps. None in other recipes.
  [[nodiscard]] std::optional<ValueId> loss_scale();
  /// Appends the backward from the loss `value`, or from `seed_gradient`; returns the gradients of the parameters.
  /// `further_values`: further values whose gradients are computed (the input of a block).
  std::vector<ValueId> backward(ValueId value, std::optional<ValueId> seed_gradient = {},
                                const std::vector<ValueId>& further_values = {});
  /// Appends the optimizer. With the `scale` of the loss, gradients are unscaled first; the optimizer skips the step if
  /// one of them is infinite or NaN; and the scale is adapted.
  void update(Optimizer optimizer, const std::vector<ValueId>& gradients, std::optional<ValueId> scale);
  /// Appends the gradients' norm, their clip at 1, and AdamW in place.
  void adamw(const std::vector<ValueId>& gradients);
  /// Appends SGD in place: momentum 0.9, weight decay 1e-4 (He et al., arXiv 1512.03385).
  void sgd(const std::vector<ValueId>& gradients);

 private:
  ValueId moment(const Parameter& parameter, const char* suffix, const Fill& fill);
  void adamw(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr, ValueId step);
  void sgd(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr);

  Program& program_;
  const Recipe& recipe_;
  ValueId source(TensorSpec spec, const MaybeCut& cut, bool is_experts = false);
  ValueId weight(const std::string& name, Shape shape, double scale, const MaybeCut& cut, bool is_experts);

  std::vector<Parameter> parameters_;
  Cuts cuts_, expert_cuts_;
  std::set<std::string, std::less<>> by_position_;
  std::set<std::string, std::less<>> trained_;
  std::optional<ValueId> found_inf_;  // nonzero: the optimizer skips the step
};

struct Block {
  TensorSpec x;
  Shape y;  ///< the result's shape, and that of its incoming gradient
  Optimizer optimizer;
  std::function<ValueId(Layers&, ValueId x)> forward;
};
/// The training step of a block on the case's ranks: forward, backward from a gradient of its result, and optimizer.
/// Each rank has its own batch; gradients are summed. Supports micro_batches() and recompute_mode, as train_step()
/// does.
[[nodiscard]] Program block_step(const Case& c, const Recipe& r, const Block& block);
/// A transformer block on rows [tokens, width] of norm about 1, trained with AdamW.
[[nodiscard]] Block token_block(const Recipe& r, std::int64_t tokens, std::int64_t width,
                                std::function<ValueId(Layers&, ValueId x)> forward);
/// The loss that a training step descends, a mean over the batch. If no op computes it: some value and the loss's
/// gradient by it; not for recipes that scale the loss.
struct Objective {
  ValueId value;
  std::optional<ValueId> gradient;
  Objective(ValueId value, std::optional<ValueId> gradient = {}) : value(value), gradient(gradient) {}
};
[[nodiscard]] Program train_step(const Case& c, const Recipe& r, Optimizer optimizer,
                                 const std::function<Objective(Layers&)>& forward);

}  // namespace gpubench::suites
