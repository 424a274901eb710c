#include "tests/fakes/sim/sim_script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "harness/core/error.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench::sim {
namespace {

constexpr std::array<std::pair<std::string_view, FaultKind>, 24> fault_names{
    {{"wrong_element", FaultKind::wrong_element},
     {"wrong_last", FaultKind::wrong_last},
     {"unwritten", FaultKind::unwritten},
     {"transposed", FaultKind::transposed},
     {"last_bit", FaultKind::last_bit},
     {"nan", FaultKind::nan},
     {"inf", FaultKind::inf},
     {"guard", FaultKind::guard},
     {"changes_input", FaultKind::changes_input},
     {"out_of_memory", FaultKind::out_of_memory},
     {"bad_alloc", FaultKind::bad_alloc},
     {"unsupported", FaultKind::unsupported},
     {"unplanned", FaultKind::unplanned},
     {"kill_in_plan", FaultKind::kill_in_plan},
     {"kill", FaultKind::kill},
     {"segv", FaultKind::segv},
     {"abort", FaultKind::abort},
     {"exit", FaultKind::exit},
     {"lost", FaultKind::lost},
     {"hang", FaultKind::hang},
     {"stubborn", FaultKind::stubborn},
     {"drop", FaultKind::drop},
     {"early", FaultKind::early},
     {"stale", FaultKind::stale}}};

[[noreturn]] void refuse(std::string_view item) {
  throw UsageError("sim script: cannot understand '" + std::string(item) + "'");
}

/// Cuts the text after the last `mark` off `text`; empty without a mark.
std::string cut_off(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string behind(text.substr(at + 1));
  text = text.substr(0, at);
  return behind;
}

std::int64_t whole_number(std::string_view text, std::string_view item) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(item);
  return value;
}

Fault parse_fault(std::string_view item) {
  const std::size_t at = item.find('@');
  if (at == std::string_view::npos) refuse(item);
  std::string_view what = item.substr(0, at);
  std::string_view target = item.substr(at + 1);
  Fault fault;
  if (const std::string number = cut_off(target, '#'); !number.empty())
    fault.nth = static_cast<int>(whole_number(number, item));
  fault.extents = cut_off(target, ':');
  fault.label = target;
  if (const std::string scope = cut_off(what, '/'); !scope.empty()) {
    if (scope != "sequence" && scope != "graph") refuse(item);
    fault.in_sequence_only = true;
    fault.in_graph_only = scope == "graph";
  }
  for (const auto& [name, kind] : fault_names) {
    if (name != what) continue;
    fault.kind = kind;
    return fault;
  }
  refuse(item);
}

/// An op kind views its name, so it must be an existing kind.
OpKind kind_of(std::string_view name, std::string_view item) {
  for (const FusionRule& rule : fusion_rules()) {
    if (rule.kind.name == name) return rule.kind;
  }
  refuse(item);
}

}  // namespace

Script parse_script(std::string_view text) {
  Script script;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto value_of = [&](std::string_view key) { return whole_number(item.substr(key.size()), item); };
    if (item == "opaque") {
      script.opaque = true;
    } else if (item == "examines") {
      script.examines = true;
    } else if (item.starts_with("name=")) {
      script.name = item.substr(5);
    } else if (item.starts_with("clock=")) {
      script.clock_ns = static_cast<double>(value_of("clock="));
    } else if (item.starts_with("uneven=")) {
      script.uneven = 0.01 * static_cast<double>(value_of("uneven="));
    } else if (item == "wanders") {
      script.wanders = true;
    } else if (item.starts_with("memory=")) {
      script.memory_bytes = value_of("memory=");
    } else if (item.starts_with("cache=")) {
      script.cache_bytes = value_of("cache=");
    } else if (item.starts_with("plan_ms=")) {
      script.plan_ms = value_of("plan_ms=");
    } else if (item.starts_with("lacks=")) {
      script.lacks = item.substr(std::string_view("lacks=").size());
    } else if (item.starts_with("copy_bytes_per_s=")) {
      script.copy_bytes_per_s = value_of("copy_bytes_per_s=");
    } else if (item.starts_with("fastest=")) {
      script.fastest = item.substr(8);
      if (script.fastest != "a" && script.fastest != "b" && script.fastest != "c") refuse(item);
    } else if (item.starts_with("fuse=")) {
      script.claims.push_back({kind_of(item.substr(5), item), true});
    } else if (item.starts_with("fuse_unmeasured=")) {
      script.claims.push_back({kind_of(item.substr(16), item), false});
    } else if (!item.empty()) {
      script.faults.push_back(parse_fault(item));
    }
  }
  return script;
}

void expect_types_of_device(const Script& script, std::span<const TensorSpec> tensors) {
  for (const TensorSpec& tensor : tensors) {
    if (name(tensor.dtype) == script.lacks) throw Unsupported("sim: no " + script.lacks + ": " + tensor.to_string());
  }
}

}  // namespace gpubench::sim
