#include "harness/run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/hash.h"
#include "harness/parity/precision_probe.h"
#include "reference/ops/quantize.h"

namespace gpubench {
namespace {

// Cost per pair of positions of k: to write, read and sort it into the tree.
constexpr double ordered_pair_flop = 64.0;

class PlanProbe {
 public:
  PlanProbe(PreparedCase& prepared, const RunOptions& options, const OpJudge& judge)
      : prepared_(prepared), options_(options), judge_(judge) {}

  /// Empty without a readable product or a choice of results.
  std::optional<PlanArithmetic> probe(int op) {
    const Program& program = prepared_.program();
    const OpCall& call = program.op(op);
    const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
    const CallSpecs specs{call, inputs, outputs};
    std::optional<PlanArithmetic> told;
    if (call.kind == quantize_blocks_kind) {
      told = open_result(specs, left_by(op, open_result_launch(specs)).front());
    } else {
      const std::optional<OpProduct> product = definition(call.kind).product(specs);
      if (!product || !is_readable(specs, *product) || shares_an_operand(call, *product)) return std::nullopt;
      const auto most = static_cast<std::int64_t>(std::sqrt(judge_.budget(op) / ordered_pair_flop));
      PrecisionProbe probe(specs, *product, hash("probe", hash(call.label, mix(options_.seed))), most);
      while (const std::optional<ProbeLaunch> launch = probe.next()) probe.take(left_by(op, *launch));
      told = probe.arithmetic(options_.arithmetic);
    }
    told->label = call.label;
    told->implementation = prepared_.implementation(op);
    return told;
  }

  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  // Factors in the same memory (x x^T) cannot hold different data.
  [[nodiscard]] bool shares_an_operand(const OpCall& call, const OpProduct& product) const {
    for (const std::size_t factor : {product.a, product.b}) {
      for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        if (i != factor && prepared_.program().overlaps(call.inputs[factor], call.inputs[i])) return true;
      }
    }
    return false;
  }

  std::vector<double> left_by(int op, const ProbeLaunch& launch) {
    if (options_.alive) options_.alive();
    run(op, launch);
    StorageReader reader(prepared_);
    const OpCall& call = prepared_.program().op(op);
    const ValueId output = call.outputs[static_cast<std::size_t>(launch.output)];
    const StorageBytes bytes = reader.output(call, output);
    const std::vector<TensorView> view = views_of(prepared_.program(), std::span(&output, 1), std::span(&bytes, 1));
    std::vector<double> values(launch.wanted.size());
    view.front().gather(launch.wanted, 1, values);
    return values;
  }

  void run(int op, const ProbeLaunch& launch) {
    const Program& program = prepared_.program();
    const OpCall& call = program.op(op);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) prepared_.give(call.inputs[i], launch.inputs[i]);
    prepared_.begin_outputs(op);
    prepared_.backend().run(prepared_.launch(0, op));
    for (const auto* list : {&call.inputs, &call.outputs}) {
      for (const ValueId id : *list) {
        const std::string found = prepared_.memory(0).check_guards(program.value(id).storage);
        if (damage_.empty() && !found.empty())
          damage_ = fmt::format("op '{}' ({}) in probe {}", call.label, call.kind.name, found);
      }
    }
    const std::string found = prepared_.check_workspace_guards();
    if (damage_.empty() && !found.empty())
      damage_ = fmt::format("op '{}' ({}) in probe {}", call.label, call.kind.name, found);
  }

  PreparedCase& prepared_;
  const RunOptions& options_;
  const OpJudge& judge_;
  std::string damage_;
};

}  // namespace

void probe_plans(PreparedCase& prepared, const RunOptions& options, const OpJudge& judge, CaseRecord& record) {
  PlanProbe probe(prepared, options, judge);
  std::vector<PlanArithmetic> all;
  std::map<std::string, std::optional<std::size_t>> probed;  // by plan: index in `all`
  for (const int op : prepared.ops(Phase::timed)) {
    if (!judge.has_further_launches(op)) continue;
    const auto [at, fresh] = probed.try_emplace(prepared.plan_key(op));
    if (!fresh) {
      if (at->second) ++all[*at->second].ops;
      continue;
    }
    std::optional<PlanArithmetic> told = probe.probe(op);
    if (!probe.damage().empty()) return blame(record, Verdict::fail, probe.damage());
    if (!told) continue;
    at->second = all.size();
    if (told->verdict != Verdict::pass)
      blame(record, told->verdict,
            fmt::format("op '{}' ({}) was downgraded in probe: {}", told->label, told->kind, told->reason));
    all.push_back(std::move(*told));
  }
  if (!all.empty()) record.parity.arithmetic = std::move(all);
}

}  // namespace gpubench
