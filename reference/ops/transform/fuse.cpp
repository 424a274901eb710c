#include "reference/ops/transform/fuse.h"

#include <algorithm>
#include <array>
#include <optional>

#include "harness/core/error.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/elementwise.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/residual_norm.h"
#include "reference/ops/transform/copy_values.h"

namespace gpubench {
namespace {

/// Two ops of a program, and the one to run in the place of the first.
struct Rewrite {
  int first = 0;
  int second = 0;
  OpCall fused;
};

/// A program while it is rewritten: its ops as they are now, and which wait for which.
struct Chain {
  const Program& program;
  std::vector<std::vector<int>> dependencies;
};

/// A tensor with a storage of its own, so that producing it earlier is in nobody's way.
bool stands_alone(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return !value.part_of && !value.updates;
}

bool is_like(const Program& program, ValueId id, const TensorSpec& model) {
  const TensorSpec& spec = program.spec(id);
  return spec.layout.is_row_major(spec.shape) && spec.shape == model.shape && spec.dtype == model.dtype &&
         spec.placement.rank == model.placement.rank && spec.placement.memory == model.placement.memory;
}

/// Whether op `second` could run right after op `first`: the same phase, and no wait for an op between them.
bool may_follow(const Chain& chain, int first, int second) {
  if (chain.program.op(first).phase != chain.program.op(second).phase) return false;
  const std::vector<int>& waits = chain.dependencies[static_cast<std::size_t>(second)];
  return std::none_of(waits.begin(), waits.end(), [first](int earlier) { return earlier > first; });
}

/// sum = x + r, y = norm(sum): op `index` is the add, and the norm is the first that reads its sum.
std::optional<Rewrite> residual_norm(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& sum = program.op(index);
  if (sum.kind != add_kind) return std::nullopt;
  const ValueId s = sum.outputs[0];
  const TensorSpec& model = program.spec(s);
  if (!stands_alone(program, s) || !is_like(program, s, model) || !is_like(program, sum.inputs[0], model) ||
      !is_like(program, sum.inputs[1], model))
    return std::nullopt;
  for (int second = index + 1; second < static_cast<int>(program.ops().size()); ++second) {
    const OpCall& norm = program.op(second);
    if (norm.kind != layer_norm_forward_kind || norm.inputs[0] != s) continue;
    const bool alone = std::all_of(norm.outputs.begin(), norm.outputs.end(),
                                   [&](ValueId output) { return stands_alone(program, output); });
    if (!alone || !(norm.math == sum.math) || !is_like(program, norm.outputs[0], model) ||
        !may_follow(chain, index, second))
      return std::nullopt;
    OpCall fused{residual_norm_forward_kind,
                 ResidualNorm{norm.attributes.as<LayerNorm>().epsilon},
                 norm.math,
                 {},
                 {},
                 sum.label + "+" + norm.label,
                 sum.phase};
    fused.inputs = {sum.inputs[0], sum.inputs[1], norm.inputs[1], norm.inputs[2]};
    fused.outputs = {s, norm.outputs[0], norm.outputs[1], norm.outputs[2]};
    return Rewrite{index, second, std::move(fused)};
  }
  return std::nullopt;
}

/// Op `index` is a cross_entropy_forward; the other is its gradient. One in place overwrites the logits, so that it
/// waits for whatever else reads them before it.
std::optional<Rewrite> cross_entropy(const Chain& chain, int index) {
  const Program& program = chain.program;
  const OpCall& forward = program.op(index);
  if (forward.kind != cross_entropy_forward_kind) return std::nullopt;
  const ValueId logits = forward.inputs[0];
  const TensorSpec& model = program.spec(logits);
  if (!is_like(program, logits, model) || !stands_alone(program, forward.outputs[0]) ||
      !stands_alone(program, forward.outputs[1]))
    return std::nullopt;
  const std::vector<ValueId> read{logits, forward.inputs[1], forward.outputs[1]};
  for (int second = index + 1; second < static_cast<int>(program.ops().size()); ++second) {
    const OpCall& backward = program.op(second);
    if (backward.kind != cross_entropy_backward_kind || backward.inputs != read) continue;
    const ValueId gradient = backward.outputs[0];
    const bool in_place = program.value(gradient).updates == logits;
    if (!(in_place || stands_alone(program, gradient)) || !(backward.math == forward.math) ||
        !is_like(program, gradient, model) || !may_follow(chain, index, second))
      return std::nullopt;
    OpCall fused{cross_entropy_forward_backward_kind,
                 CrossEntropy{},
                 forward.math,
                 {logits, forward.inputs[1]},
                 {forward.outputs[0], forward.outputs[1], gradient},
                 forward.label + "+" + backward.label,
                 forward.phase};
    return Rewrite{index, second, std::move(fused)};
  }
  return std::nullopt;
}

/// Every rewrite there is: the op that it puts in, and how it is found from the first of the ops that it replaces.
struct Rule {
  OpKind kind;
  std::optional<Rewrite> (*find)(const Chain& chain, int index);
};
constexpr std::array rules{Rule{residual_norm_forward_kind, residual_norm},
                           Rule{cross_entropy_forward_backward_kind, cross_entropy}};

const FusionClaim* claim_of(OpKind kind, std::span<const FusionClaim> claims) {
  const auto found =
      std::find_if(claims.begin(), claims.end(), [kind](const FusionClaim& claim) { return claim.kind == kind; });
  return found == claims.end() ? nullptr : &*found;
}

Program rewritten(const Program& program, const std::vector<Rewrite>& rewrites) {
  std::vector<std::optional<OpCall>> ops(program.ops().begin(), program.ops().end());
  for (const Rewrite& rewrite : rewrites) {
    ops[static_cast<std::size_t>(rewrite.first)] = rewrite.fused;
    ops[static_cast<std::size_t>(rewrite.second)].reset();
  }
  Program result;
  (void)copy_values(program, result, [](TensorSpec&) {});  // under the same ids
  for (std::optional<OpCall>& op : ops) {
    if (!op) continue;
    result.begin(op->phase);
    result.append(std::move(*op));
  }
  result.begin(Phase::timed);
  return result;
}

}  // namespace

Fused fuse(const Program& program, std::span<const FusionClaim> claims) {
  for (const FusionClaim& claim : claims) {
    if (std::none_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.kind == claim.kind; })) {
      throw ProgramError("fuse: no rewrite puts in '" + std::string(claim.kind.name) +
                         "'; expected only fused ops that a rewrite is known for");
    }
  }
  if (claims.empty()) return {program, {}};
  const Chain chain{program, program.dependencies()};
  std::vector<Rewrite> found;
  for (int index = 0; index < static_cast<int>(program.ops().size()); ++index) {
    for (const Rule& rule : rules) {
      if (claim_of(rule.kind, claims) == nullptr) continue;
      if (auto rewrite = rule.find(chain, index)) found.push_back(std::move(*rewrite));
    }
  }
  Fused result{rewritten(program, found), {}};
  for (const Rewrite& rewrite : found) {
    const OpKind kind = rewrite.fused.kind;
    const bool measured = claim_of(kind, claims)->measured;
    result.rewrites.push_back(rewrite.fused.label + " = " + std::string(kind.name) +
                              (measured ? "" : " (gain not yet measured)"));
  }
  return result;
}

}  // namespace gpubench
