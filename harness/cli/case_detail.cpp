#include "harness/cli/case_detail.h"

#include <fmt/format.h>

#include "harness/report/quantity.h"
#include "harness/report/text_table.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

struct OpFacts {
  std::string label, kind, attributes, phase, reads, writes, judged, math;
  Cost cost;
};

std::string names_of(const Program& program, std::span<const ValueId> ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(program.spec(id).name);
  return joined(names, " ");
}

// "786,432 units of 1", per output: what the textbook can judge alone.
std::string judged_text(const Program& program, const OpCall& op) {
  const std::vector<TensorSpec> inputs = specs_of(program, op.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, op.outputs);
  std::vector<std::string> texts;
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    const Units units = definition(op.kind).units(op, inputs, outputs, output);
    texts.push_back(units.elements == 1
                        ? fmt::format("{} elements", format_count(units.count))
                        : fmt::format("{} runs of {}", format_count(units.count), format_count(units.elements)));
  }
  return joined(texts);
}

std::string math_text(const Math& math) {
  std::string text = fmt::format("sums in {}", name(math.accumulate));
  if (math.inputs == Math::Inputs::tf32) text += ", inputs rounded to tf32";
  if (math.inputs == Math::Inputs::emulated) text += ", inputs split (emulated)";
  if (math.fast_accumulation) text += ", fast accumulation";
  if (math.split_k_in_output) text += ", split sums in the output's type";
  return text;
}

OpFacts facts_of(const Program& program, const OpCall& op) {
  return {op.label,
          std::string(op.kind.name),
          op.attributes.to_string(),
          op.phase == Phase::setup ? "set-up" : "timed",
          names_of(program, op.inputs),
          names_of(program, op.outputs),
          judged_text(program, op),
          math_text(op.math),
          cost_of(program, op)};
}

std::string origin_of(const Program& program, const Value& value) {
  std::string text;
  if (value.updates) text = "updates " + program.spec(*value.updates).name;
  if (value.part_of) text = "part of " + program.spec(*value.part_of).name;
  if (!text.empty()) return text;
  return value.source ? "filled" : value.producer ? "by " + program.op(*value.producer).label : "whole of its parts";
}

std::string tensors_table(const Program& program) {
  TextTable table({{"tensor"}, {"type"}, {"shape"}, {"role"}, {"bytes", Align::right}, {"layout"}, {"origin"}});
  for (const Value& value : program.values()) {
    const TensorSpec& s = value.spec;
    table.add({s.name, std::string(name(s.dtype)), s.shape.to_string(), std::string(name(s.role)),
               format_count(s.bytes()), s.layout.to_string(s.shape), origin_of(program, value)});
  }
  return table.text(2);
}

std::string ops_table(const Program& program) {
  TextTable table({{"op"}, {"kind"}, {"phase"}, {"work", Align::right}, {"bytes", Align::right}, {"reads -> writes"}});
  for (const OpCall& op : program.ops()) {
    const OpFacts f = facts_of(program, op);
    table.add({f.label, f.kind, f.phase, format_quantity(f.cost.flop, "FLOP"), format_quantity(f.cost.bytes, "B"),
               fmt::format("{} -> {}", f.reads, f.writes)});
  }
  return table.text(2);
}

std::string judging_table(const Program& program) {
  TextTable table({{"op"}, {"judged alone"}, {"bound assumes"}, {"attributes"}});
  for (const OpCall& op : program.ops()) {
    const OpFacts f = facts_of(program, op);
    table.add({f.label, f.judged, f.math, f.attributes});
  }
  return table.text(2);
}

}  // namespace

std::string case_detail(const PlannedCase& planned, const std::string& rerun) {
  const Program program = planned.workload->build(planned.c, {});
  const WorkloadInfo info = planned.workload->info();
  std::string text = fmt::format("{}\n{}{}\n\n", planned.id(), info.description,
                                 planned.c.label.empty() ? "" : fmt::format(" ({})", planned.c.label));
  TextTable facts({{""}, {""}});
  facts.add({"tier", fmt::format("{} and above", name(planned.c.tier))});
  facts.add({"caches", std::string(name(planned.c.cache))});
  facts.add({"work", fmt::format("{} per run, {} at least to move, {:.3g} FLOP/B",
                                 format_quantity(planned.cost.flop, "FLOP"), format_quantity(planned.cost.bytes, "B"),
                                 planned.cost.bytes > 0 ? planned.cost.flop / planned.cost.bytes : 0.0)});
  facts.add(
      {"items", fmt::format("{} {} per run",
                            format_count(static_cast<std::int64_t>(planned.workload->items(planned.c))), info.item)});
  facts.add({"memory", fmt::format("{} per copy at the peak (nothing is reused, so that every op can be judged)",
                                   format_quantity(static_cast<double>(program.bytes()), "B"))});
  facts.add({"rerun", rerun});
  text += facts.text(2);
  text += fmt::format(
      "\ntensors\n{}\nops\n{}\nchecks: every op against the fp64 textbook, each output within its bound\n{}",
      tensors_table(program), ops_table(program), judging_table(program));
  return text;
}

Json case_detail_json(const PlannedCase& planned, const std::string& rerun) {
  const Program program = planned.workload->build(planned.c, {});
  Json tensors = Json::array();
  for (const Value& value : program.values()) {
    const TensorSpec& s = value.spec;
    tensors.push_back({{"name", s.name},
                       {"type", name(s.dtype)},
                       {"shape", std::vector<std::int64_t>(s.shape.extents().begin(), s.shape.extents().end())},
                       {"role", name(s.role)},
                       {"bytes", s.bytes()},
                       {"layout", s.layout.to_string(s.shape)},
                       {"origin", origin_of(program, value)}});
  }
  Json ops = Json::array();
  for (const OpCall& op : program.ops()) {
    const OpFacts f = facts_of(program, op);
    ops.push_back({{"label", f.label},
                   {"kind", f.kind},
                   {"attributes", f.attributes},
                   {"phase", f.phase},
                   {"flop", f.cost.flop},
                   {"bytes", f.cost.bytes},
                   {"judged", f.judged},
                   {"math", f.math},
                   {"reads", f.reads},
                   {"writes", f.writes}});
  }
  return {{"id", planned.id()},
          {"suite", planned.c.suite},
          {"label", planned.c.label},
          {"tier", name(planned.c.tier)},
          {"cache", name(planned.c.cache)},
          {"description", planned.workload->info().description},
          {"flop", planned.cost.flop},
          {"bytes", planned.cost.bytes},
          {"memory_bytes", program.bytes()},
          {"tensors", std::move(tensors)},
          {"ops", std::move(ops)},
          {"rerun", rerun}};
}

}  // namespace gpubench
