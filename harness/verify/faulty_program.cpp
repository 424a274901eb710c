#include "harness/verify/parallel_faults.h"

#include <algorithm>
#include <map>
#include <string>

#include "reference/ops/collective.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/token_groups.h"

namespace gpubench::faulty {

Program edited(const Program& step, const Edits& edits) {
  Program result(step.mesh());
  (void)copy_values(step, result, edits.place);
  std::map<ValueId, ValueId> instead;
  const auto now = [&](ValueId id) {
    for (auto found = instead.find(id); found != instead.end(); found = instead.find(id)) id = found->second;
    return id;
  };
  for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
    OpCall call = step.op(index);
    result.begin(call.phase);
    for (ValueId& id : call.inputs) id = now(id);
    if (index == edits.moved) continue;
    if (edits.edit(index, call)) {
      result.append(std::move(call));
      for (OpCall& more : edits.behind(index, result)) result.append(std::move(more));
      continue;
    }
    for (const ValueId output : step.op(index).outputs) instead[output] = *step.value(output).updates;
  }
  result.begin(Phase::timed);
  return result;
}

std::string_view axis_of(const Program& step, const OpCall& call) {
  const std::optional<int> axis = step.mesh().axis_of(call.group);
  return axis ? std::string_view(step.mesh().axes()[static_cast<std::size_t>(*axis)].name) : std::string_view();
}

Program changed(const Program& step, int op, const std::function<void(OpCall& call)>& change) {
  return edited(step, {.edit = [&](int index, OpCall& call) {
                  if (index == op) change(call);
                  return true;
                }});
}

Program without(const Program& step, int op) {
  return edited(step, {.edit = [=](int index, OpCall&) { return index != op; }});
}

Program reduced_otherwise(const Program& step, int op) {
  return with<AllReduce>(step, op, [](AllReduce& all) {
    all.reduction = all.reduction == Reduction::sum ? Reduction::average : Reduction::sum;
  });
}

std::optional<Program> softmax_of_own_classes(const Program& step, int op) {
  const ValueId logits = step.op(op).input("logits");
  for (const OpCall& partial : step.ops()) {
    if (partial.kind != cross_entropy_partial_kind || partial.input("logits") != logits) continue;
    const ValueId own = partial.output("lse");
    return changed(step, op, [&](OpCall& call) { call.inputs[2] = own; });
  }
  return std::nullopt;
}

std::optional<Program> bias_twice(const Program& step, int op) {
  const OpCall& first = step.op(op);
  const auto bias = position_of(gemm_kind.inputs, first.attributes, "bias");
  const std::string_view name = step.spec(first.inputs[*bias]).global_name();
  const int rank = step.spec(first.outputs.front()).placement.rank;
  for (int other = op + 1; other < static_cast<int>(step.ops().size()); ++other) {
    const OpCall& product = step.op(other);
    const int its = step.spec(product.outputs.front()).placement.rank;
    if (product.kind != gemm_kind || product.attributes.as<Gemm>().bias || its == rank ||
        step.spec(product.outputs.front()).global_name() != step.spec(first.outputs.front()).global_name())
      continue;
    for (int index = 0; index < static_cast<int>(step.values().size()); ++index) {
      const TensorSpec& spec = step.spec({index});
      if (spec.global_name() != name || spec.placement.rank != its) continue;
      return changed(step, other, [&](OpCall& call) {
        call.attributes = first.attributes;
        call.inputs.insert(call.inputs.begin() + static_cast<std::ptrdiff_t>(*bias), ValueId{index});
      });
    }
  }
  return std::nullopt;
}

Program reduced_twice(const Program& step, int op) {
  return edited(step, {.behind = [=, &step](int index, Program& program) {
                  if (index != op) return std::vector<OpCall>();
                  OpCall again = step.op(op);
                  again.label += ".again";
                  again.inputs = again.outputs;
                  for (ValueId& id : again.outputs) id = program.update(id, program.spec(id).name + ".again");
                  return std::vector{again};
                }});
}

std::optional<Program> norm_of_own_parts(const Program& step, int op) {
  const OpCall& norm = step.op(op);
  const int rank = step.spec(norm.outputs.front()).placement.rank;
  for (const OpCall& parts : step.ops()) {
    if (parts.kind != gradient_norm_kind || parts.label == norm.label ||
        step.spec(parts.outputs.front()).placement.rank != rank)
      continue;
    const ValueId own = parts.outputs.front();
    return changed(step, op, [&](OpCall& call) { call.inputs.front() = own; });
  }
  return std::nullopt;
}

std::optional<Program> norm_counts_all_ranks(const Program& step, int op) {
  if (step.op(op).inputs.size() < 2) return std::nullopt;
  return changed(step, op, [&](OpCall& call) {
    call.inputs.insert(call.inputs.end(), call.inputs.begin() + 1, call.inputs.end());
  });
}

Program in_opposite_order(const Program& step, int op) {
  return changed(step, op, [&](OpCall& call) {
    std::vector<int> members(call.group.members().begin(), call.group.members().end());
    std::ranges::reverse(members);
    call.group = call.held = RankGroup(std::move(members));
    const auto reverse_members = [&](std::vector<ValueId>& tensors) {
      const auto each = static_cast<std::ptrdiff_t>(tensors.size()) / call.group.size();
      std::ranges::reverse(tensors);
      for (auto first = tensors.begin(); first != tensors.end(); first += each) std::reverse(first, first + each);
    };
    reverse_members(call.inputs);
    reverse_members(call.outputs);
  });
}

std::optional<Program> by_counts_of_another_layer(const Program& step, int op) {
  std::map<ValueId, ValueId> others;  // by the op's input
  for (std::size_t i = 1; i < step.op(op).inputs.size(); i += 2) {
    const ValueId sizes = step.op(op).inputs[i];
    for (int before = 0; before < op && !others.contains(sizes); ++before) {
      const OpCall& call = step.op(before);
      if (call.kind == group_tokens_kind && call.output("sizes") != sizes &&
          step.spec(call.output("sizes")).placement.rank == step.spec(sizes).placement.rank)
        others.emplace(sizes, call.output("sizes"));
    }
    if (!others.contains(sizes)) return std::nullopt;
  }
  return changed(step, op, [&](OpCall& call) {
    for (std::size_t i = 1; i < call.inputs.size(); i += 2) call.inputs[i] = others.at(call.inputs[i]);
  });
}

Program mean_of_own_labels(const Program& step, int op) {
  return changed(step, op, [](OpCall& call) {
    CrossEntropy attributes = call.attributes.as<CrossEntropy>();
    attributes.given_count = false;
    call.attributes = attributes;
    call.inputs.pop_back();
  });
}

std::optional<Program> of_the_last_micro_batch(const Program& step, int op) {
  const std::string_view mark = ".micro1";
  std::string before = step.op(op).label;
  const std::size_t found = before.find(mark);
  if (found == before.npos) return std::nullopt;
  before.replace(found, mark.size(), ".micro0");
  for (const OpCall& sent : step.ops()) {
    if (sent.label != before) continue;
    const ValueId stale = sent.inputs.front();
    return changed(step, op, [&](OpCall& call) { call.inputs.front() = stale; });
  }
  return std::nullopt;
}

Program of_one_use(const Program& step, int op) {
  return changed(step, op, [&](OpCall& call) {
    call.kind = scale_kind;
    call.attributes = Scale{};
    call.inputs.resize(1);
  });
}

std::optional<Program> over_the_wrong_ranks(const Program& step, int op) {
  const OpCall& first = step.op(op);
  const std::size_t each = first.inputs.size() / 2;
  for (int other = op + 1; other < static_cast<int>(step.ops().size()); ++other) {
    const OpCall& second = step.op(other);
    if (second.kind != first.kind || first.group.size() != 2 || second.group.size() != 2 ||
        second.inputs.size() != first.inputs.size() || axis_of(step, second) != axis_of(step, first) ||
        second.group[0] != first.group[0] + 1)
      continue;
    const auto pair = [&](std::size_t place, const char* suffix) {
      OpCall crossed = first;
      crossed.label += suffix;
      crossed.group = crossed.held =
          RankGroup({first.group[static_cast<int>(place)], second.group[static_cast<int>(place)]});
      for (std::vector<ValueId> OpCall::*list : {&OpCall::inputs, &OpCall::outputs}) {
        for (std::size_t i = 0; i < each; ++i) {
          (crossed.*list)[i] = (first.*list)[place * each + i];
          (crossed.*list)[each + i] = (second.*list)[place * each + i];
        }
      }
      return crossed;
    };
    const OpCall lower = pair(0, ".crossed"), upper = pair(1, ".crossed.too");
    return edited(
        step,
        {.edit =
             [=](int index, OpCall& call) {
               if (index == other) call = lower;
               return true;
             },
         .behind = [=](int index, Program&) { return index == other ? std::vector{upper} : std::vector<OpCall>(); },
         .moved = op});
  }
  return std::nullopt;
}

Program before_exchange(const Program& step, int op) {
  return changed(step, op, [&](OpCall& call) {
    for (ValueId& id : call.inputs) {
      const std::optional<int> producer = step.value(id).producer;
      if (!producer || step.op(*producer).kind != send_recv_kind) continue;
      const OpCall& pass = step.op(*producer);
      id = pass.inputs[static_cast<std::size_t>(std::ranges::find(pass.outputs, id) - pass.outputs.begin())];
    }
  });
}

}  // namespace gpubench::faulty
