#include "reference/ops/transform/fuse.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace {

/// Whether the tensor has a separate storage, so that it can be produced earlier.
bool is_argument(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return !value.part_of && !value.updates;
}

bool is_like(const Program& program, ValueId id, const TensorSpec& model) {
  const TensorSpec& spec = program.spec(id);
  return spec.layout.is_row_major(spec.shape) && spec.shape == model.shape && spec.dtype == model.dtype &&
         spec.placement.rank == model.placement.rank && spec.placement.memory == model.placement.memory;
}

/// Whether these ops, ascending, can run at the first one's place: same phase and math, no dependency in between.
bool may_join(const Chain& chain, const std::vector<int>& ops) {
  const OpCall& first = chain.program.op(ops.front());
  return std::all_of(ops.begin() + 1, ops.end(), [&](int later) {
    const OpCall& op = chain.program.op(later);
    const std::vector<int>& waits = chain.dependencies[static_cast<std::size_t>(later)];
    return op.phase == first.phase && op.math == first.math &&
           std::all_of(waits.begin(), waits.end(), [&](int earlier) {
             return earlier < ops.front() || std::find(ops.begin(), ops.end(), earlier) != ops.end();
           });
  });
}

/// sum = x + r, y = norm(sum): op `index` is the add; the norm is the first reader of its sum.
std::optional<Rewrite> residual_norm(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& sum = program.op(index);
  if (sum.kind != add_kind) return std::nullopt;
  const ValueId s = sum.outputs[0];
  const TensorSpec& model = program.spec(s);
  if (!is_argument(program, s) || !is_like(program, s, model) || !is_like(program, sum.inputs[0], model) ||
      !is_like(program, sum.inputs[1], model))
    return std::nullopt;
  for (const int second : program.readers(s)) {
    const OpCall& norm = program.op(second);
    if (norm.kind != layer_norm_forward_kind || norm.inputs[0] != s) continue;
    const bool alone = std::all_of(norm.outputs.begin(), norm.outputs.end(),
                                   [&](ValueId output) { return is_argument(program, output); });
    if (!alone || !is_like(program, norm.outputs[0], model) || !may_join(chain, {index, second})) return std::nullopt;
    OpCall fused{residual_norm_forward_kind,
                 ResidualNorm{norm.attributes.as<LayerNorm>().epsilon},
                 norm.math,
                 {},
                 {},
                 sum.label + "+" + norm.label,
                 sum.phase};
    fused.inputs = {sum.inputs[0], sum.inputs[1], norm.inputs[1], norm.inputs[2]};
    fused.outputs = {s, norm.outputs[0], norm.outputs[1], norm.outputs[2]};
    return Rewrite{{index, second}, {std::move(fused)}};
  }
  return std::nullopt;
}

/// Op `index` is a cross_entropy_forward; the other is its gradient. In place it overwrites the logits, so it must
/// follow all other readers.
std::optional<Rewrite> cross_entropy(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& forward = program.op(index);
  if (forward.kind != cross_entropy_forward_kind) return std::nullopt;
  const ValueId logits = forward.inputs[0];
  const TensorSpec& model = program.spec(logits);
  if (!is_like(program, logits, model) || !is_argument(program, forward.outputs[0]) ||
      !is_argument(program, forward.outputs[1]))
    return std::nullopt;
  for (const int second : program.readers(forward.outputs[1])) {
    const OpCall& backward = program.op(second);
    if (backward.kind != cross_entropy_backward_kind || backward.inputs[0] != logits ||
        backward.inputs[1] != forward.inputs[1] || backward.inputs[2] != forward.outputs[1])
      continue;
    auto attributes = backward.attributes.as<CrossEntropy>();
    attributes.scaled = false;
    if (attributes != forward.attributes.as<CrossEntropy>()) continue;
    if (attributes.given_count && backward.input("count") != forward.input("count")) continue;
    const ValueId gradient = backward.outputs[0];
    const bool in_place = program.value(gradient).updates == logits;
    if (!(in_place || is_argument(program, gradient)) || !is_like(program, gradient, model) ||
        !may_join(chain, {index, second}))
      return std::nullopt;
    OpCall fused{cross_entropy_forward_backward_kind,
                 backward.attributes,
                 forward.math,
                 {logits, forward.inputs[1]},
                 {forward.outputs[0], forward.outputs[1], gradient},
                 forward.label + "+" + backward.label,
                 forward.phase};
    fused.inputs.insert(fused.inputs.end(), backward.inputs.begin() + 3, backward.inputs.end());
    return Rewrite{{index, second}, {std::move(fused)}};
  }
  return std::nullopt;
}

std::optional<int> only_reader(const Program& program, ValueId id) {
  const std::span<const int> readers = program.readers(id);
  if (program.values_in(program.value(id).storage).size() != 1 || readers.size() != 1) return std::nullopt;
  return readers.front();
}

/// y = max(norm(x) + r, 0) or max(norm(x), 0): op `index` is the batch_norm_forward.
std::optional<Rewrite> batch_norm_relu(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& norm = program.op(index);
  if (norm.kind != batch_norm_forward_kind) return std::nullopt;
  const TensorSpec& model = program.spec(norm.inputs[0]);
  Rewrite rewrite{{index}, {norm}};
  OpCall& fused = rewrite.fused.front();
  fused.kind = batch_norm_relu_forward_kind;
  BatchNormRelu attributes{norm.attributes.as<BatchNorm>()};
  const auto append = [&](int next) {
    rewrite.ops.push_back(next);
    fused.outputs[0] = program.op(next).outputs[0];
    fused.label += "+" + program.op(next).label;
  };
  std::optional<int> next = only_reader(program, fused.outputs[0]);
  if (next && program.op(*next).kind == add_kind) {
    const std::vector<ValueId>& summands = program.op(*next).inputs;
    if (summands[0] == summands[1]) return std::nullopt;
    fused.inputs.push_back(summands[summands[0] == fused.outputs[0] ? 1 : 0]);
    if (!is_like(program, fused.inputs.back(), model)) return std::nullopt;
    attributes.r = true;
    append(*next);
    next = only_reader(program, fused.outputs[0]);
  }
  if (!next || program.op(*next).kind != relu_forward_kind) return std::nullopt;
  append(*next);
  fused.attributes = attributes;
  if (!is_argument(program, fused.outputs[0]) || !is_like(program, norm.inputs[0], model) ||
      !is_like(program, fused.outputs[0], model) || !may_join(chain, rewrite.ops))
    return std::nullopt;
  return rewrite;
}

/// product = x * filter, y = norm(product), with the ops that batch_norm_relu() adds: op `index` is the conv2d_forward.
std::optional<Rewrite> conv2d_batch_norm(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& convolution = program.op(index);
  if (convolution.kind != conv2d_forward_kind) return std::nullopt;
  const ValueId product = convolution.outputs[0];
  const TensorSpec& model = program.spec(product);
  if (!is_argument(program, product) || !is_like(program, product, model)) return std::nullopt;
  for (const int second : program.readers(product)) {
    const OpCall& norm = program.op(second);
    if (norm.kind != batch_norm_forward_kind) continue;
    Conv2dBatchNorm attributes{convolution.attributes.as<Conv2d>(), norm.attributes.as<BatchNorm>()};
    std::optional<Rewrite> rewrite = batch_norm_relu(chain, second);
    if (rewrite) {
      attributes.relu = true;
      attributes.r = rewrite->fused.front().attributes.as<BatchNormRelu>().r;
    } else {
      rewrite = Rewrite{{second}, {norm}};
    }
    rewrite->ops.insert(rewrite->ops.begin(), index);
    OpCall& fused = rewrite->fused.front();
    if (!is_argument(program, fused.outputs[0]) || !is_like(program, fused.outputs[0], model) ||
        !may_join(chain, rewrite->ops))
      return std::nullopt;
    fused.kind = conv2d_batch_norm_forward_kind;
    fused.attributes = attributes;
    fused.inputs.front() = convolution.inputs[0];
    fused.inputs.insert(fused.inputs.begin() + 1, convolution.inputs[1]);
    fused.outputs.insert(fused.outputs.begin(), product);
    fused.label = convolution.label + "+" + fused.label;
    return rewrite;
  }
  return std::nullopt;
}

/// dx of dr = dy where y > 0: op `index` is the relu_backward; the norm's backward is the first reader of dr. If dy is
/// a sum that nothing else reads, its add is included if possible.
std::optional<Rewrite> batch_norm_relu_gradient(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& relu = program.op(index);
  if (relu.kind != relu_backward_kind) return std::nullopt;
  const ValueId dy = relu.inputs[1], dr = relu.outputs[0];
  const std::span<const int> readers = program.readers(dr);
  const auto found = std::find_if(readers.begin(), readers.end(), [&](int reader) {
    return program.op(reader).kind == batch_norm_backward_kind && program.op(reader).inputs[0] == dr;
  });
  if (found == readers.end()) return std::nullopt;
  Rewrite rewrite{{index, *found}, {program.op(*found)}};
  OpCall& fused = rewrite.fused.front();
  const ValueId x = fused.inputs[1], dx = fused.outputs[0];
  const auto fits = [&](std::initializer_list<ValueId> data) {
    return std::all_of(data.begin(), data.end(), [&](ValueId id) { return is_like(program, id, program.spec(x)); });
  };
  const bool alone = std::all_of(fused.outputs.begin(), fused.outputs.end(),
                                 [&](ValueId output) { return is_argument(program, output); });
  if (!alone || !fits({relu.inputs[0], dy, dr, x, dx}) || !may_join(chain, rewrite.ops)) return std::nullopt;
  BatchNormReluBackward attributes{.dr = !only_reader(program, dr)};
  fused.kind = batch_norm_relu_backward_kind;
  fused.inputs[0] = dy;
  fused.inputs.push_back(relu.inputs[0]);
  const std::optional<int> sum = program.value(dy).producer;
  if (only_reader(program, dy) && sum && program.op(*sum).kind == add_kind &&
      fits({program.op(*sum).inputs[0], program.op(*sum).inputs[1]}) && may_join(chain, {*sum, index, *found})) {
    rewrite.ops.insert(rewrite.ops.begin(), *sum);
    fused.inputs[0] = program.op(*sum).inputs[0];
    fused.inputs.push_back(program.op(*sum).inputs[1]);
    attributes = {.dy2 = true, .dr = true};
  }
  if (attributes.dr) {
    if (!is_argument(program, dr)) return std::nullopt;
    fused.outputs.push_back(dr);
  }
  fused.attributes = attributes;
  fused.label.clear();
  for (const int op : rewrite.ops) fused.label += (fused.label.empty() ? "" : "+") + program.op(op).label;
  return rewrite;
}

std::optional<int> column_sum_of(const Program& program, ValueId id) {
  for (const int index : program.readers(id)) {
    const OpCall& op = program.op(index);
    const bool sums_all = op.kind == column_sum_kind && program.spec(op.outputs[0]).shape.rank() == 1;
    if (sums_all && op.inputs[0] == id) return index;
  }
  return std::nullopt;
}

/// Joins ops if all tensors are rows of one type on one device, and outputs have separate storages.
std::optional<Rewrite> joined(const Chain& chain, std::vector<int> ops, OpCall fused) {
  const Program& program = chain.program;
  const auto fits = [&](ValueId id) {
    TensorSpec model = program.spec(fused.outputs[0]);
    model.shape = program.spec(id).shape;
    return is_like(program, id, model);
  };
  std::sort(ops.begin(), ops.end());
  if (!std::all_of(fused.inputs.begin(), fused.inputs.end(), fits) ||
      !std::all_of(fused.outputs.begin(), fused.outputs.end(),
                   [&](ValueId id) { return fits(id) && is_argument(program, id); }) ||
      !may_join(chain, ops))
    return std::nullopt;
  const OpCall& first = program.op(ops.front());
  fused.math = first.math;
  fused.phase = first.phase;
  for (const int index : ops) fused.label += (fused.label.empty() ? "" : "+") + program.op(index).label;
  return Rewrite{std::move(ops), {std::move(fused)}};
}

/// dy = a b, dz = dy gelu'(pre), db = column sums of dz: op `index` is the gemm. gelu' is its epilogue, or a separate
/// op that must be the only reader of dy, which is not stored.
std::optional<Rewrite> gelu_bias_gradient(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& product = program.op(index);
  if (product.kind != gemm_kind || program.spec(product.outputs[0]).shape.rank() != 2) return std::nullopt;
  Gemm gemm = product.attributes.as<Gemm>();
  std::vector<int> ops{index};
  std::vector<ValueId> inputs = product.inputs;
  if (is_plain(gemm, Gemm::Epilogue::none)) {
    const std::optional<int> slope = only_reader(program, product.outputs[0]);
    if (!slope) return std::nullopt;
    const OpCall& backward = program.op(*slope);
    if (backward.kind != gelu_backward_kind || backward.inputs[1] != product.outputs[0]) return std::nullopt;
    gemm.epilogue = Gemm::Epilogue::gelu_gradient;
    gemm.gelu_form = backward.attributes.as<Gelu>().form;
    inputs.push_back(backward.inputs[0]);
    ops.push_back(*slope);
  } else if (!is_plain(gemm, Gemm::Epilogue::gelu_gradient)) {
    return std::nullopt;
  }
  const ValueId dz = program.op(ops.back()).outputs[0];
  const std::optional<int> sum = column_sum_of(program, dz);
  if (!sum) return std::nullopt;
  ops.push_back(*sum);
  return joined(chain, std::move(ops),
                {gemm_gelu_bias_gradient_kind, gemm, {}, std::move(inputs), {dz, program.op(*sum).outputs[0]}, {}});
}

/// dw = a b, db = column sums of dy, the factor whose rows lie along k: op `index` is the gemm.
std::optional<Rewrite> weight_bias_gradient(const Chain& chain, int index) {
  using Operand = GemmWeightBiasGradient::Operand;
  const Program& program = chain.program;
  const OpCall& product = program.op(index);
  if (product.kind != gemm_kind || program.spec(product.outputs[0]).shape.rank() != 2) return std::nullopt;
  for (const Operand operand : {Operand::a, Operand::b}) {
    const GemmWeightBiasGradient attributes{product.attributes.as<Gemm>(), operand};
    if (!is_plain(attributes.gemm, Gemm::Epilogue::none) || !sums_along_k(attributes)) continue;
    const std::optional<int> sum = column_sum_of(program, product.inputs[operand == Operand::a ? 0 : 1]);
    if (!sum) continue;
    return joined(chain, {index, *sum},
                  {gemm_weight_bias_gradient_kind,
                   attributes,
                   {},
                   product.inputs,
                   {product.outputs[0], program.op(*sum).outputs[0]},
                   {}});
  }
  return std::nullopt;
}

/// `step` fused with clip `index`, if `step` is an adamw whose gradients all come from the clip. `clipped`: these
/// gradients.
std::optional<OpCall> clipped_step(const Program& program, int index, const OpCall& step,
                                   std::vector<ValueId>& clipped) {
  const OpCall& clipping = program.op(index);
  if (step.kind != adamw_kind) return std::nullopt;
  const AdamWCall places = adamw_call(step);
  std::vector<ValueId> inputs = step.inputs;
  for (std::size_t gradient = places.first() + 1; gradient < inputs.size(); gradient += places.inputs) {
    const ValueId read = inputs[gradient];
    if (program.value(read).producer != index) return std::nullopt;
    clipped.push_back(read);
    inputs[gradient] = program.value(read).updates.value();
  }
  inputs.insert(inputs.begin(), clipping.inputs[0]);
  return OpCall{clip_adamw_kind, ClipAdamW{places.adamw, clipping.attributes.as<Clip>().limit},
                clipping.math,   std::move(inputs),
                step.outputs,    clipping.label + "+" + step.label,
                clipping.phase};
}

/// Op `index` is a clip; the others are adamws, together the only readers of its results, each of them once. Without
/// the clip, gradients stay unclipped.
std::optional<Rewrite> clip_and_steps(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& clipping = program.op(index);
  if (clipping.kind != clip_kind) return std::nullopt;
  Rewrite rewrite{{index}, {}};
  std::vector<ValueId> clipped;
  std::set<int> readers;
  for (const ValueId output : clipping.outputs) {
    const std::span<const int> its = program.readers(output);
    readers.insert(its.begin(), its.end());
  }
  for (const int later : readers) {
    std::optional<OpCall> fused = clipped_step(program, index, program.op(later), clipped);
    if (!fused) return std::nullopt;
    rewrite.ops.push_back(later);
    rewrite.fused.push_back(std::move(*fused));
  }
  std::vector<ValueId> all = clipping.outputs;
  std::sort(all.begin(), all.end());
  std::sort(clipped.begin(), clipped.end());
  if (clipped != all || !may_join(chain, rewrite.ops)) return std::nullopt;
  return rewrite;
}

/// The add that is a gradient's only reader, and its other operand: an earlier gradient like it.
struct GradientSum {
  int op;
  ValueId other, sum;
};
std::optional<GradientSum> sum_with(const Program& program, ValueId gradient) {
  const std::optional<int> index = only_reader(program, gradient);
  if (!index || program.op(*index).kind != add_kind) return std::nullopt;
  const OpCall& op = program.op(*index);
  const GradientSum found{*index, op.inputs[op.inputs[0] == gradient ? 1 : 0], op.outputs[0]};
  const TensorSpec& model = program.spec(gradient);
  if (!is_argument(program, found.sum) || !is_like(program, gradient, model) || !is_like(program, found.other, model) ||
      !is_like(program, found.sum, model))
    return std::nullopt;
  return found;
}

/// dx = dr + the norm's: op `index` is the layer_norm_backward.
std::optional<Rewrite> residual_norm_gradient(const Chain& chain, int index) {
  const OpCall& norm = chain.program.op(index);
  if (norm.kind != layer_norm_backward_kind) return std::nullopt;
  const std::optional<GradientSum> sum = sum_with(chain.program, norm.outputs[0]);
  if (!sum || !may_join(chain, {index, sum->op})) return std::nullopt;
  OpCall fused = norm;
  fused.kind = residual_norm_backward_kind;
  fused.inputs.push_back(sum->other);
  fused.outputs[0] = sum->sum;
  fused.label += "+" + chain.program.op(sum->op).label;
  return Rewrite{{index, sum->op}, {std::move(fused)}};
}

/// dtable' = dtable + the embedding's: op `index` is the embedding_backward. Nothing else reads dtable, so the sum is
/// in place.
std::optional<Rewrite> embedding_gradient(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& scatter = program.op(index);
  if (scatter.kind != embedding_backward_kind) return std::nullopt;
  const std::optional<GradientSum> sum = sum_with(program, scatter.outputs[0]);
  if (!sum || !only_reader(program, sum->other) || program.value(sum->other).source || sum->sum < sum->other ||
      program.spec(sum->sum).placement != program.spec(sum->other).placement || !may_join(chain, {index, sum->op}))
    return std::nullopt;
  OpCall fused = scatter;
  fused.kind = embedding_backward_add_kind;
  fused.inputs.push_back(sum->other);
  fused.outputs = {sum->sum};
  fused.label += "+" + program.op(sum->op).label;
  return Rewrite{{index, sum->op}, {std::move(fused)}, {{sum->sum, sum->other}}};
}

constexpr std::array rules{FusionRule{residual_norm_forward_kind, residual_norm},
                           FusionRule{cross_entropy_forward_backward_kind, cross_entropy},
                           FusionRule{gemm_gelu_bias_gradient_kind, gelu_bias_gradient},
                           FusionRule{gemm_weight_bias_gradient_kind, weight_bias_gradient},
                           FusionRule{clip_adamw_kind, clip_and_steps},
                           FusionRule{conv2d_batch_norm_forward_kind, conv2d_batch_norm},
                           FusionRule{batch_norm_relu_forward_kind, batch_norm_relu},
                           FusionRule{batch_norm_relu_backward_kind, batch_norm_relu_gradient},
                           FusionRule{residual_norm_backward_kind, residual_norm_gradient},
                           FusionRule{embedding_backward_add_kind, embedding_gradient}};

}  // namespace

std::span<const FusionRule> fusion_rules() { return rules; }

}  // namespace gpubench
