#include "harness/cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "harness/cli/selection.h"
#include "reference/ops/collective.h"
#include "reference/ops/transform/differentiate.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench {
namespace {

std::vector<OpOperand> operands_of(const OpKind& kind, const OpDoc& doc) {
  std::vector<OpOperand> all;
  const auto add = [&](std::string_view operands, const std::string& role) {
    for (const DeclaredOperand& operand : declared_operands(operands)) {
      OpOperand& one = all.emplace_back(OpOperand{std::string(operand.name), role, ""});
      if (operand.list) one.role += ", a list";
      if (operand.optional) one.role += ", where attributes ask for it";
      for (const OpDoc::Operand& said : doc.operands) {
        if (said.name == operand.name) one.what = said.text;
      }
    }
  };
  add(kind.inputs, "input");
  add(kind.outputs, "output");
  return all;
}

std::vector<std::vector<std::string>> attributes_of(const OpKind& kind) {
  constexpr const char* kinds[] = {"bool", "whole", "real", "word", "list"};
  std::vector<std::vector<std::string>> rows;
  for (const Attribute& attribute : make_attributes(kind).list()) {
    const bool* set = std::get_if<bool>(&attribute.value);
    const std::string value = set != nullptr && *set ? "true" : value_text(attribute.value);
    rows.push_back({std::string(attribute.name), kinds[attribute.value.index()], value.empty() ? "none" : value,
                    with_commas(attribute.words)});
  }
  return rows;
}

// The call alone in a program: its inputs are sources, its outputs have separate storage.
Program alone(const Program& program, const OpCall& call) {
  Program one(program.mesh());
  std::map<ValueId, ValueId> ids;
  OpCall copy = call;
  copy.phase = Phase::timed;
  const auto plain = [&](ValueId id) {
    TensorSpec spec = program.spec(id);
    spec.layout = Layout::row_major(spec.shape);
    return spec;
  };
  for (ValueId& id : copy.inputs) {
    const auto [at, is_new] = ids.try_emplace(id);
    if (is_new) at->second = one.add(plain(id));
    id = at->second;
  }
  for (ValueId& id : copy.outputs) id = one.reserve(plain(id));
  (void)one.append(std::move(copy));
  return one;
}

// Adds the ops that compute the gradient of one input from that of the outputs.
void add_gradient(const Program& forward, std::size_t input, bool of_all_outputs, std::set<std::string>& kinds) {
  try {
    Program program = forward;
    const OpCall call = program.op(0);
    std::vector<Seed> seeds;
    for (const ValueId output : call.outputs) {
      if (!is_float(program.spec(output).dtype) || (!seeds.empty() && !of_all_outputs)) continue;
      TensorSpec gradient = program.spec(output);
      gradient.name = "gradient of " + gradient.name;
      seeds.push_back({output, program.add(std::move(gradient))});
    }
    (void)differentiate(program, seeds, std::vector<ValueId>{call.inputs[input]});
    for (std::size_t op = 1; op < program.ops().size(); ++op) kinds.emplace(program.ops()[op].kind.name);
  } catch (const ProgramError&) {
    // The op has no derivative with respect to this input.
  }
}

std::set<std::string> gradient_ops(const Program& program, const OpCall& call) {
  std::set<std::string> kinds;
  const Program forward = alone(program, call);
  const std::size_t inputs = is_collective(call.kind) ? 1 : call.inputs.size();
  for (std::size_t input = 0; input < inputs; ++input) {
    if (is_float(program.spec(call.inputs[input]).dtype)) add_gradient(forward, input, is_collective(call.kind), kinds);
  }
  return kinds;
}

std::string tensor_text(const TensorSpec& spec) {
  return fmt::format("{} {}", name(spec.dtype), spec.shape.to_string());
}

OpExample example_of(const PlannedCase& planned, const Program& program, const OpCall& call) {
  OpExample example{planned.id(),
                    rerun_line(Options{}, planned) + " --impl FILE",
                    false,
                    call.attributes.to_string(),
                    {},
                    {},
                    cost_of(program, call),
                    program.ops().size()};
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);
  const auto add = [&](std::string_view operands, std::span<const TensorSpec> tensors) {
    const std::vector<OperandName> names = operand_names(operands, call.attributes, tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (names[i].item == 0) example.tensors.emplace_back(names[i].name, tensor_text(tensors[i]));
    }
  };
  add(call.kind.inputs, inputs);
  add(call.kind.outputs, outputs);
  const std::vector<OperandName> names = operand_names(call.kind.outputs, call.attributes, outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (names[i].item > 0) continue;
    example.bounds.emplace_back(names[i].name,
                                definition(call.kind).bound({call, inputs, outputs}, static_cast<int>(i)));
  }
  return example;
}

// Collects what a program shows of its ops; `fused`: only of ops inserted by fuse().
void look_at(const PlannedCase& planned, const Program& program, bool fused,
             std::map<std::string_view, OpExplanation*>& by_name) {
  for (const OpCall& call : program.ops()) {
    OpExplanation& op = *by_name.at(call.kind.name);
    const bool is_first = op.example.case_id.empty();
    if (fused && !is_first && !op.example.fused) continue;
    op.workloads.insert(planned.c.suite + "/" + planned.c.workload);
    if (!is_first && program.ops().size() >= op.example.program_ops) continue;
    op.example = example_of(planned, program, call);
    op.example.fused = fused;
    op.gradient_by = gradient_ops(program, call);
  }
}

}  // namespace

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDefinition* op : definitions()) names.emplace_back(op->kind().name);
  return names;
}

std::vector<OpExplanation> explain_ops(std::span<const Suite> suites) {
  std::vector<OpExplanation> all;
  for (const OpDefinition* op : definitions()) {
    const OpDoc doc = doc_of(op->kind());
    all.push_back({op->kind(), doc, operands_of(op->kind(), doc), attributes_of(op->kind()), {}, {}, {}, {}});
  }
  std::map<std::string_view, OpExplanation*> by_name;
  for (OpExplanation& op : all) by_name.emplace(op.kind.name, &op);

  Selection everything;
  everything.tier = Tier::quick;
  everything.ranks = {1};
  bool has_rings = false;
  for (const Suite& suite : suites) {
    for (const auto& workload : suite.workloads) {
      if (workload->info().max_ranks > 1) everything.ranks = {1, 2};
      has_rings = has_rings || workload->info().shares_sequences;
    }
  }
  std::vector<PlannedCase> cases = declared_cases(suites, everything);
  Selection in_a_ring;  // has ops that other layouts lack
  in_a_ring.tier = Tier::smoke;
  in_a_ring.layouts = {{.parallel = {.cp = 2, .passes_keys = true}}};
  if (has_rings) std::ranges::move(declared_cases(suites, in_a_ring), std::back_inserter(cases));
  // Three passes: as declared; with all fused ops; with each fused op alone that another one replaced.
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<FusionClaim> claims;
    for (const FusionRule& rule : fusion_rules()) {
      if (pass > 0 && by_name.at(rule.kind.name)->example.case_id.empty()) claims.push_back({rule.kind, true});
    }
    if (pass > 0 && claims.empty()) break;
    for (const PlannedCase& planned : cases) {
      const Program program = planned.workload->build(planned.c);
      look_at(planned, pass > 0 ? fuse(program, claims).program : program, pass > 0, by_name);
    }
  }
  for (const OpExplanation& op : all) {
    for (const std::string& by : op.gradient_by) by_name.at(by)->gradient_of.emplace(op.kind.name);
  }
  return all;
}

}  // namespace gpubench
