#include "harness/cli/implementations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/tuning_cache.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

/// The call as the check sees it: arithmetic that changes no bound, such as tf32 of a norm, is not a different call.
std::string key_of(const Program& program, const OpCall& call) {
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
  OpCall plain = call;
  plain.math = {.accumulate = call.math.accumulate};
  const OpDefinition& meaning = definition(call.kind);
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    if (meaning.bound({call, inputs, outputs}, output) != meaning.bound({plain, inputs, outputs}, output))
      return choice_key(call, specs_of_call(program, call));
  }
  return choice_key(plain, specs_of_call(program, call));
}

class Collector {
 public:
  explicit Collector(const std::function<bool(const Program&, const OpCall&)>& takes) : takes_(takes) {}

  /// The accepted calls of the program, by position.
  std::vector<std::size_t> add(const Program& program, const std::string& recipe) {
    std::vector<std::size_t> own;
    for (const OpCall& call : program.ops()) {
      if (!takes_(program, call)) continue;
      const auto [at, is_first] = known_.try_emplace(key_of(program, call), found.calls.size());
      if (is_first) found.calls.push_back({std::string(call.kind.name), recipe});
      own.push_back(at->second);
    }
    return own;
  }

  OfferedCalls found;

 private:
  const std::function<bool(const Program&, const OpCall&)>& takes_;
  std::map<std::string, std::size_t> known_;
};

/// Cases that only run if their suite is named: small programs that combine the attributes of an op.
std::vector<PlannedCase> for_the_check_alone(std::span<const Suite> suites) {
  Selection selection;
  selection.tier = Tier::smoke;
  for (const Suite& suite : suites) {
    if (suite.only_by_name) selection.suites.push_back(suite.name);
  }
  return selection.suites.empty() ? std::vector<PlannedCase>{} : declared_cases(suites, selection);
}

}  // namespace

OfferedCalls offered_calls(std::span<const PlannedCase> planned, std::span<const Suite> suites,
                           const std::function<bool(const Program&, const OpCall&)>& takes) {
  Collector collector(takes);
  for (const PlannedCase& one : planned)
    collector.found.of_cases[one.id()] = collector.add(one.workload->build(one.c), one.c.recipe);
  std::set<std::string> asked;
  for (const PlannedCase& one : for_the_check_alone(suites)) {
    for (const Recipe& recipe : recipes()) {
      Case c = one.c;
      c.recipe = recipe.name;
      if (!asked.insert(c.id()).second) continue;
      try {
        collector.add(one.workload->build(c), c.recipe);
      } catch (const ProgramError&) {
        // not declared in this precision
      }
    }
  }
  return std::move(collector.found);
}

std::vector<std::string> untried(const OfferedCalls& offered, const std::set<std::string>& tried_cases) {
  std::vector<bool> tried(offered.calls.size(), false);
  for (const std::string& id : tried_cases) {
    const auto found = offered.of_cases.find(id);
    if (found == offered.of_cases.end()) continue;
    for (const std::size_t call : found->second) tried[call] = true;
  }
  std::map<std::string, std::vector<std::pair<std::string, int>>> left;  // by op: precisions in order, and calls
  for (std::size_t i = 0; i < offered.calls.size(); ++i) {
    if (tried[i]) continue;
    auto& of_op = left[offered.calls[i].op];
    const auto known = std::ranges::find(of_op, offered.calls[i].recipe, &std::pair<std::string, int>::first);
    if (known == of_op.end()) {
      of_op.emplace_back(offered.calls[i].recipe, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [op, recipes] : left) {
    std::string line = op + ":";
    for (const auto& [recipe, calls] : recipes) {
      const bool is_first = line.ends_with(':');
      line += is_first ? fmt::format(" {} call{} in {}", calls, calls == 1 ? "" : "s", recipe)
                       : fmt::format(", {} in {}", calls, recipe);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Json to_json(const OfferedCalls& offered) {
  Json calls = Json::array(), cases = Json::array();
  for (const OfferedCalls::Call& call : offered.calls) calls.push_back({{"op", call.op}, {"recipe", call.recipe}});
  for (const auto& [id, own] : offered.of_cases) cases.push_back({{"id", id}, {"calls", own}});
  return {{"calls", std::move(calls)}, {"cases", std::move(cases)}};
}

OfferedCalls read_offered_calls(const Node& node) {
  OfferedCalls offered;
  const Node calls = node.at("calls"), cases = node.at("cases");
  for (std::size_t i = 0; i < calls.length(); ++i) {
    const Node op = calls.at(i).at("op"), precision = calls.at(i).at("recipe");
    if (find_definition(op.text()) == nullptr) op.refuse("is no op");
    if (std::ranges::find(recipes(), precision.text(), &Recipe::name) == recipes().end())
      precision.refuse("is no precision");
    offered.calls.push_back({op.text(), precision.text()});
  }
  for (std::size_t i = 0; i < cases.length(); ++i) {
    const Node own = cases.at(i).at("calls");
    std::vector<std::size_t>& positions = offered.of_cases[cases.at(i).at("id").text()];
    for (std::size_t j = 0; j < own.length(); ++j) {
      positions.push_back(static_cast<std::size_t>(own.at(j).integer(0, std::ssize(offered.calls) - 1)));
    }
  }
  return offered;
}

}  // namespace gpubench
