#include "harness/cli/case_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/parity/exact_data.h"
#include "harness/plan/memory_plan.h"
#include "harness/report/json.h"
#include "harness/run/case_record.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

ConsoleStyle narrowed(ConsoleStyle style) {
  style.width = width_up_to(120, style);
  return style;
}

struct OpFacts {
  std::string label, kind, attributes, phase, reads, writes, math;
  Cost cost;
};

std::string names_of(const Program& program, std::span<const ValueId> ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(program.spec(id).name);
  return joined(names, " ");
}

// All names, or the first few: an optimizer update has hundreds of inputs. --format json lists all.
std::string listed(const std::vector<std::string>& names, std::string_view what) {
  constexpr std::size_t most = 8;
  constexpr std::size_t shown = 4;
  if (names.size() <= most) return joined(names);
  return fmt::format("{} {}: {}, ...", names.size(), what, joined(std::span(names).first(shown)));
}

std::string tensors_text(const Program& program, std::span<const ValueId> ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(program.spec(id).name);
  return listed(names, "tensors");
}

std::string judged_text(std::int64_t count, std::int64_t elements) {
  if (elements == 1) return fmt::format("{} element{}", format_count(count), count == 1 ? "" : "s");
  return fmt::format("{} run{} of {}", format_count(count), count == 1 ? "" : "s", format_count(elements));
}

// How one output is judged; one entry for outputs of one kind of op that differ only in their tensor, such as the
// layers of a model or the parameters of one call.
struct OutputFacts {
  OpKind kind;
  TensorSpec spec;  // of the first
  std::int64_t units, elements;
  std::string bound;
  int tensors = 1;

  [[nodiscard]] bool judged_as(const OutputFacts& other) const {
    return kind.name == other.kind.name && bound == other.bound && elements == other.elements &&
           spec.role == other.spec.role && spec.dtype == other.spec.dtype;
  }
};

std::vector<OutputFacts> output_facts(const Program& program, const OpCall& op) {
  const std::vector<TensorSpec> inputs = specs_of(program, op.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, op.outputs);
  const OpDefinition& meaning = definition(op.kind);
  std::vector<OutputFacts> facts;
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    const CheckUnits units = meaning.units({op, inputs, outputs}, output);
    facts.push_back({op.kind, outputs[static_cast<std::size_t>(output)], units.count, units.elements,
                     meaning.bound({op, inputs, outputs}, output)});
  }
  return facts;
}

// In the order of the ops; outputs judged alike are counted together.
std::vector<OutputFacts> judged_outputs(const Program& program) {
  std::vector<OutputFacts> groups;
  for (const OpCall& op : program.ops()) {
    for (OutputFacts& one : output_facts(program, op)) {
      const auto same =
          std::find_if(groups.begin(), groups.end(), [&one](const OutputFacts& group) { return group.judged_as(one); });
      if (same == groups.end()) {
        groups.push_back(std::move(one));
      } else {
        same->tensors += 1;
        same->units += one.units;
      }
    }
  }
  return groups;
}

std::string math_text(const Math& math) {
  std::string text = fmt::format("sums in {}", name(math.accumulate));
  if (math.inputs == Math::Inputs::tf32) text += ", inputs rounded to tf32";
  if (math.inputs == Math::Inputs::emulated) text += ", inputs split (emulated)";
  if (math.inputs == Math::Inputs::bf16) text += ", inputs rounded to bf16";
  if (math.inputs == Math::Inputs::two_bf16) text += ", inputs split into two bf16";
  if (math.fast_accumulation) text += ", fast accumulation";
  if (math.split_k_in_output) text += ", split sums in the output's type";
  if (math.approximate_tanh) text += ", approximate tanh";
  return text;
}

OpFacts facts_of(const Program& program, const OpCall& op) {
  return {op.label,
          std::string(op.kind.name),
          op.attributes.to_string(),
          op.phase == Phase::setup ? "set-up" : "timed",
          names_of(program, op.inputs),
          names_of(program, op.outputs),
          math_text(op.math),
          cost_of(program, op)};
}

std::string origin_of(const Program& program, const Value& value) {
  std::string text;
  if (value.updates) text = "updates " + program.spec(*value.updates).name;
  if (value.part_of) text = "part of " + program.spec(*value.part_of).name;
  if (!text.empty()) return text;
  text = value.source ? "filled" : value.producer ? "by " + program.op(*value.producer).label : "whole of its parts";
  const Memory memory = value.spec.placement.memory;
  return memory == Memory::device ? text : text + ", in " + std::string(name(memory));
}

std::string layout_text(const TensorSpec& spec) {
  const std::string layout = spec.layout.to_string(spec.shape);
  return layout == "row_major" ? "" : ", " + layout;
}

std::string tensors_table(const Program& program, const ConsoleStyle& style) {
  TextTable table(
      {{"tensor"}, {"type"}, {"shape"}, {"role"}, {"bytes", Align::right}, {"origin, layout unless row-major"}});
  for (const Value& value : program.values()) {
    const TensorSpec& s = value.spec;
    table.add({s.name, std::string(name(s.dtype)), s.shape.to_string(), std::string(name(s.role)),
               format_count(s.bytes()), origin_of(program, value) + layout_text(s)});
  }
  return table.text(style, 2);
}

std::string ops_table(const Program& program, const ConsoleStyle& style) {
  TextTable table({{"op"}, {"kind"}, {"phase"}, {"work", Align::right}, {"bytes", Align::right}, {"attributes"}});
  for (const OpCall& op : program.ops()) {
    const OpFacts f = facts_of(program, op);
    table.add({f.label, f.kind, f.phase, format_quantity(f.cost.flop, "FLOP"), format_quantity(f.cost.bytes, "B"),
               f.attributes});
  }
  return table.text(style, 2);
}

std::string flow_table(const Program& program, const ConsoleStyle& style) {
  TextTable table({{"op"}, {"reads -> writes"}});
  for (const OpCall& op : program.ops()) {
    table.add({op.label, fmt::format("{} -> {}", tensors_text(program, op.inputs), tensors_text(program, op.outputs))});
  }
  return table.text(style, 2);
}

std::string judging_table(const Program& program, const ConsoleStyle& style) {
  TextTable table({{"output"}, {"judged in"}, {"bound"}});
  for (const OutputFacts& group : judged_outputs(program)) {
    table.add(
        {group.tensors == 1 ? group.spec.name : fmt::format("{} ... ({} tensors)", group.spec.name, group.tensors),
         judged_text(group.units, group.elements), group.bound});
  }
  return table.text(style, 2);
}

struct CheckFacts {
  std::vector<std::string> launches;  ///< in addition to those on the case's data
  std::string whole;                  ///< how elements not judged one by one are checked
  std::string unseen;
};

CheckFacts check_facts(const Program& program, const OpCall& op) {
  const std::vector<TensorSpec> inputs = specs_of(program, op.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, op.outputs);
  const CallSpecs specs{op, inputs, outputs};
  const OpDefinition& meaning = definition(op.kind);
  CheckFacts facts;
  const Exactness exact = exactness(specs);
  if (exact == Exactness::results) facts.launches.emplace_back("exact data: any wrong bit of any element shows");
  if (exact == Exactness::sums) facts.launches.emplace_back("exact data, whose results are rounded once");
  for (const RevealingData& data : meaning.revealing_data(specs)) facts.launches.emplace_back(data.name);
  if (!meaning.linear_axes(specs, 0).empty()) facts.whole = "sums of all elements";
  facts.unseen = meaning.unseen(specs);
  return facts;
}

// A row per kind of op that has more than bounds; ops with equal facts are counted together.
std::string further_checks_table(const Program& program, const ConsoleStyle& style) {
  TextTable table({{"op"}, {"large outputs whole by"}, {"further launches on"}, {"known not to be seen"}});
  std::set<std::string> told;
  for (const OpCall& op : program.ops()) {
    const CheckFacts facts = check_facts(program, op);
    const std::string launches = joined(facts.launches, "; ");
    if (facts.launches.empty() && facts.whole.empty() && facts.unseen.empty()) continue;
    if (told.insert(fmt::format("{}|{}|{}|{}", op.kind.name, facts.whole, launches, facts.unseen)).second)
      table.add({std::string(op.kind.name), facts.whole, launches, facts.unseen});
  }
  return told.empty() ? "" : table.text(style, 2);
}

std::string types_of(const Recipe& r) {
  std::string text = fmt::format("tensors in {}", name(r.tensor));
  if (r.wide != r.tensor) text += fmt::format(", statistics and master weights in {}", name(r.wide));
  if (r.quantizes())
    text += fmt::format(", products of {}, with gradients in {}", name(r.operand), name(r.gradient_operand));
  return text;
}

// The arithmetic that the ops must use and the bounds assume; usually the same for all.
std::string arithmetic_text(const Program& program) {
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;
  for (const OpCall& op : program.ops()) {
    const std::string text = math_text(op.math);
    const auto same =
        std::find_if(labels.begin(), labels.end(), [&text](const auto& one) { return one.first == text; });
    if (same == labels.end()) {
      labels.push_back({text, {op.label}});
    } else {
      same->second.push_back(op.label);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [text, ops] : labels) {
    parts.push_back(labels.size() == 1 ? text : fmt::format("{} ({})", text, listed(ops, "ops")));
  }
  return joined(parts, "; ");
}

}  // namespace

std::string case_detail(const PlannedCase& planned, const std::string& rerun, const ConsoleStyle& console) {
  const ConsoleStyle style = narrowed(console);
  const Program program = planned.workload->build(planned.c);
  const WorkloadInfo info = planned.workload->info();
  const std::string what = info.description + (planned.c.label.empty() ? "" : fmt::format(" ({})", planned.c.label));
  std::string text = fmt::format("{}\n{}\n\n", planned.id(), fitted(what, style.width, 0));
  TextTable facts({{""}, {""}});
  facts.add({"tier", fmt::format("{} and above", name(planned.c.tier))});
  facts.add({"caches", std::string(name(planned.c.cache))});
  facts.add({"work", fmt::format("{} per run, at least {} to move, {:.3g} FLOP/B",
                                 format_quantity(planned.cost.flop, "FLOP"), format_quantity(planned.cost.bytes, "B"),
                                 planned.cost.bytes > 0 ? planned.cost.flop / planned.cost.bytes : 0.0)});
  const double items = planned.workload->items(planned.c);
  std::string count = fmt::format("{} {} per run", format_count(static_cast<std::int64_t>(items)), info.item);
  if (items > 1.0 && planned.cost.flop > 0.0)
    count += fmt::format(", {} each", format_quantity(planned.cost.flop / items, "FLOP"));
  facts.add({"items", std::move(count)});
  facts.add({"memory", fmt::format("{} per copy with every value kept, at least {} if that doesn't fit",
                                   format_quantity(static_cast<double>(program.bytes()), "B"),
                                   format_quantity(static_cast<double>(minimal_memory(program).bytes()), "B"))});
  facts.add({"precision", fmt::format("{}: {}", planned.c.recipe, types_of(recipe(planned.c.recipe)))});
  facts.add({"arithmetic", arithmetic_text(program)});
  facts.add(
      {"definition", fmt::format("{} (def_hash: the same in every report of this case)", definition_hash(planned))});
  text += facts.text(style, 2);
  text += fmt::format("  {}  {}\n", padded("rerun", 10), rerun);  // on one line, to be copied; 10: "arithmetic"
  text += step_detail(program, style);
  const char* checks =
      "checks: every op against the fp64 textbook, each output within its bound (then rounded once to its type)";
  const char* letters = "C: the exact sum, Q: the root of its summed squares, u: half a unit in the last place of sums";
  text += fmt::format("\ntensors\n{}\nops\n{}\ndata flow\n{}\n{}\n  {}\n{}", tensors_table(program, style),
                      ops_table(program, style), flow_table(program, style), fitted(checks, style.width, 2),
                      fitted(letters, style.width, 2), judging_table(program, style));
  const char* not_seen =
      "not detected: faults that move no judged element out of its bound; gpubench selftest -v with the case's "
      "--filter lists them";
  text += fmt::format("\n{}{}\n", further_checks_table(program, style), fitted(not_seen, style.width, 2));
  return text;
}

Json case_detail_json(const PlannedCase& planned, const std::string& rerun) {
  const Program program = planned.workload->build(planned.c);
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
    Json outputs = Json::array();
    for (const OutputFacts& output : output_facts(program, op)) {
      outputs.push_back({{"name", output.spec.name},
                         {"judged", judged_text(output.units, output.elements)},
                         {"bound", output.bound}});
    }
    const CheckFacts checks = check_facts(program, op);
    ops.push_back({{"label", f.label},
                   {"kind", f.kind},
                   {"attributes", f.attributes},
                   {"phase", f.phase},
                   {"flop", f.cost.flop},
                   {"bytes", f.cost.bytes},
                   {"outputs", std::move(outputs)},
                   {"further_launches", checks.launches},
                   {"known_unseen", checks.unseen},
                   {"math", f.math},
                   {"reads", f.reads},
                   {"writes", f.writes}});
  }
  Json detail = {{"id", planned.id()},
                 {"suite", planned.c.suite},
                 {"label", planned.c.label},
                 {"tier", name(planned.c.tier)},
                 {"cache", name(planned.c.cache)},
                 {"def_hash", definition_hash(planned)},
                 {"description", planned.workload->info().description},
                 {"flop", planned.cost.flop},
                 {"bytes", planned.cost.bytes},
                 {"memory_bytes", program.bytes()},
                 {"least_memory_bytes", minimal_memory(program).bytes()},
                 {"tensors", std::move(tensors)},
                 {"ops", std::move(ops)},
                 {"rerun", rerun}};
  add_step_detail(detail, program);
  return detail;
}

}  // namespace gpubench
