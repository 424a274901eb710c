// `list CASE` for a program of several ops: work by kind and layer, memory by kind, recomputation.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/cli/case_listing.h"
#include "harness/core/error.h"
#include "harness/core/step_parts.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/plan/memory_plan.h"
#include "harness/report/json.h"
#include "reference/ops/definition.h"
#include "reference/ops/transform/checkpoint.h"

namespace gpubench {
namespace {

// The timed ops, each with its work. Empty for a case of one op.
std::vector<OpShare> parts_of(const Program& program) {
  std::vector<OpShare> ops;
  for (const OpCall& op : program.ops()) {
    if (op.phase != Phase::timed) continue;
    const Cost cost = cost_of(program, op);
    ops.push_back({op.label, std::string(op.kind.name), "", 0.0, 0.0, cost.flop, cost.bytes});
  }
  if (ops.size() < 2) ops.clear();
  return ops;
}

struct Recomputed {
  const RecomputePolicy* policy = nullptr;
  std::string refusal{};  // why the policy cannot be applied; else empty
  std::size_t ops_again = 0;
  Cost cost{};
  std::int64_t bytes = 0;  // minimum, with reuse of memory between ops
};

// The step without recomputation, then each policy that recomputes something; none for a program without a backward.
std::vector<Recomputed> recomputed(const Program& program) {
  std::vector<Recomputed> all;
  for (const RecomputePolicy& policy : recompute_policies()) {
    try {
      const Program step = policy.rule ? checkpoint(program, policy.rule) : program;
      const std::size_t again = step.ops().size() - program.ops().size();
      if (again > 0 || !policy.rule) all.push_back({&policy, "", again, cost_of(step), minimal_memory(step).bytes()});
    } catch (const ProgramError& error) {
      all.push_back({.policy = &policy, .refusal = error.what()});
    }
  }
  if (all.size() == 1) all.clear();
  return all;
}

std::string share_text(double fraction) { return fmt::format("{:.1f}%", 100.0 * fraction); }

}  // namespace

std::string step_detail(const Program& program, const ConsoleStyle& style) {
  const std::vector<OpShare> ops = parts_of(program);
  if (ops.empty()) return "";
  const auto size = [](double bytes) { return format_quantity(bytes, "B"); };
  std::string text;
  const auto add_work = [&](const char* by, const std::vector<StepPart>& parts) {
    TextTable table({{by}, {"ops", Align::right}, {"work", Align::right}, {"bytes", Align::right}, {"most work"}});
    for (const StepPart& part : parts)
      table.add(
          {part.name, fmt::format("{}", part.ops), format_quantity(part.flop, "FLOP"), size(part.bytes), part.largest});
    text += fmt::format("\nwork by {}\n{}", by, table.text(style, 2));
  };
  add_work("kind", parts_by_kind(ops));
  add_work("layer", parts_by_layer(ops));
  TextTable memory({{"memory"}, {"with every value kept", Align::right}});
  for (const MemoryPart& part : memory_by_kind(program)) memory.add({part.kind, size(static_cast<double>(part.bytes))});
  text += fmt::format("\nmemory by kind\n{}", memory.text(style, 2));
  const std::vector<Recomputed> policies = recomputed(program);
  if (policies.empty()) return text;
  TextTable table(columns_titled({"policy", "memory at least>", "saves>", "work>", "costs>", "runs again"}));
  const Recomputed& plain = policies.front();
  for (const Recomputed& one : policies) {
    const std::string name(one.policy->name);
    if (!one.refusal.empty()) {
      table.add({name, "", "", "", "", one.refusal});
      continue;
    }
    std::vector<std::string> row{
        name, size(static_cast<double>(one.bytes)), "", format_quantity(one.cost.flop, "FLOP"), "", "nothing"};
    if (one.ops_again > 0) {
      row[2] = share_text(1.0 - static_cast<double>(one.bytes) / static_cast<double>(plain.bytes));
      row[4] = share_text(one.cost.flop / plain.cost.flop - 1.0);
      row[5] = fmt::format("{} ({} ops)", one.policy->what, one.ops_again);
    }
    table.add(std::move(row));
  }
  return text + fmt::format("\nrecomputation, as it would be\n{}", table.text(style, 2));
}

void add_step_detail(Json& detail, const Program& program) {
  const std::vector<OpShare> ops = parts_of(program);
  if (ops.empty()) return;
  const auto work = [](const std::vector<StepPart>& parts) {
    Json list = Json::array();
    for (const StepPart& part : parts)
      list.push_back({{"name", part.name}, {"ops", part.ops}, {"flop", part.flop}, {"bytes", part.bytes}});
    return list;
  };
  detail["kinds"] = work(parts_by_kind(ops));
  detail["layers"] = work(parts_by_layer(ops));
  Json memory = Json::array();
  for (const MemoryPart& part : memory_by_kind(program)) memory.push_back({{"kind", part.kind}, {"bytes", part.bytes}});
  detail["memory"] = std::move(memory);
  Json policies = Json::array();
  for (const Recomputed& one : recomputed(program)) {
    if (one.refusal.empty()) {
      policies.push_back({{"policy", one.policy->name},
                          {"flop", one.cost.flop},
                          {"bytes", one.cost.bytes},
                          {"least_memory_bytes", one.bytes},
                          {"ops_again", one.ops_again}});
    } else {
      policies.push_back({{"policy", one.policy->name}, {"refusal", one.refusal}});
    }
  }
  detail["recomputation"] = std::move(policies);
}

}  // namespace gpubench
