#include "reference/ops/transform/fuse.h"

#include <algorithm>
#include <optional>

#include "harness/core/error.h"

namespace gpubench {
namespace {

const FusionClaim* claim_of(OpKind kind, std::span<const FusionClaim> claims) {
  const auto found =
      std::find_if(claims.begin(), claims.end(), [kind](const FusionClaim& claim) { return claim.kind == kind; });
  return found == claims.end() ? nullptr : &*found;
}

std::vector<Rewrite> find_rewrites(const Program& program, std::span<const FusionClaim> claims,
                                   std::vector<bool> taken) {
  const Chain chain{program, program.dependencies()};
  taken.resize(program.ops().size(), false);
  std::vector<Rewrite> found;
  for (const FusionRule& rule : fusion_rules()) {
    if (claim_of(rule.kind, claims) == nullptr) continue;
    for (int index = 0; index < static_cast<int>(program.ops().size()); ++index) {
      std::optional<Rewrite> rewrite = rule.find(chain, index);
      const auto is_taken = [&taken](int op) { return taken[static_cast<std::size_t>(op)]; };
      if (!rewrite || std::any_of(rewrite->ops.begin(), rewrite->ops.end(), is_taken)) continue;
      for (const int op : rewrite->ops) taken[static_cast<std::size_t>(op)] = true;
      found.push_back(std::move(*rewrite));
    }
  }
  std::sort(found.begin(), found.end(), [](const Rewrite& a, const Rewrite& b) { return a.ops < b.ops; });
  return found;
}

/// By value: whether only fused ops produced and read it.
std::vector<bool> left_over(const Program& program, const std::vector<Rewrite>& rewrites) {
  std::vector<bool> values(program.values().size());
  const auto mark = [&values](const OpCall& op, bool left) {
    for (const ValueId output : op.outputs) values[static_cast<std::size_t>(output.index)] = left;
  };
  for (const Rewrite& rewrite : rewrites) {
    for (const int op : rewrite.ops) mark(program.op(op), true);
    for (const OpCall& fused : rewrite.fused) mark(fused, false);
  }
  return values;
}

Program rewritten(const Program& program, const std::vector<Rewrite>& rewrites) {
  std::vector<const Rewrite*> of_op(program.ops().size(), nullptr);
  for (const Rewrite& rewrite : rewrites) {
    for (const int op : rewrite.ops) of_op[static_cast<std::size_t>(op)] = &rewrite;
  }
  std::map<ValueId, ValueId> updates;
  for (const Rewrite& rewrite : rewrites) updates.insert(rewrite.updates.begin(), rewrite.updates.end());
  Program result;
  const std::vector<ValueId> ids = copy_values(
      program, result, [](TensorSpec&) {}, left_over(program, rewrites), updates);
  const auto append = [&](OpCall op) {
    for (std::vector<ValueId>* list : {&op.inputs, &op.outputs}) {
      for (ValueId& id : *list) id = ids.at(static_cast<std::size_t>(id.index));
    }
    result.begin(op.phase);
    result.append(std::move(op));
  };
  for (int index = 0; index < static_cast<int>(program.ops().size()); ++index) {
    const Rewrite* rewrite = of_op[static_cast<std::size_t>(index)];
    if (rewrite == nullptr) append(program.op(index));
    if (rewrite == nullptr || rewrite->ops.front() != index) continue;
    for (const OpCall& fused : rewrite->fused) append(fused);
  }
  result.begin(Phase::timed);
  return result;
}

}  // namespace

Fused fuse(const Program& program, std::span<const FusionClaim> claims, std::vector<bool> kept) {
  const std::span<const FusionRule> rules = fusion_rules();
  for (const FusionClaim& claim : claims) {
    if (std::none_of(rules.begin(), rules.end(), [&](const FusionRule& rule) { return rule.kind == claim.kind; })) {
      throw ProgramError("fuse: no rewrite makes '" + std::string(claim.kind.name) +
                         "'; expected a fused op that has a rewrite");
    }
  }
  if (claims.empty()) return {program, {}};
  const std::vector<Rewrite> found = find_rewrites(program, claims, std::move(kept));
  Fused result{rewritten(program, found), {}};
  for (const Rewrite& rewrite : found) {
    for (const OpCall& fused : rewrite.fused) {
      const bool measured = claim_of(fused.kind, claims)->measured;
      result.rewrites.push_back(fused.label + " = " + std::string(fused.kind.name) +
                                (measured ? "" : " (gain not yet measured)"));
    }
  }
  return result;
}

}  // namespace gpubench
