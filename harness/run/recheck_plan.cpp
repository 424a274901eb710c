#include "harness/run/recheck_plan.h"

#include <algorithm>
#include <optional>

namespace gpubench {
namespace {

/// Content that exists only while `first <= ops run < = last`, counted in op indices.
struct LiveRange {
  int first = 0;  ///< a pause before this op is the earliest that sees it
  int last = 0;   ///< and before this op (which overwrites it) the latest
  int storage = 0;
  ValueLocation* where = nullptr;
};

bool writes(const Program& program, int op, ValueId value) {
  const OpCall& call = program.op(op);
  return call.phase == Phase::timed && std::any_of(call.outputs.begin(), call.outputs.end(),
                                                   [&](ValueId output) { return program.overlaps(output, value); });
}

std::optional<int> first_writer(const Program& program, ValueId value, int from) {
  for (int op = from; op < static_cast<int>(program.ops().size()); ++op) {
    if (writes(program, op, value)) return op;
  }
  return std::nullopt;
}

std::optional<int> last_writer_before(const Program& program, ValueId value, int before) {
  for (int op = before - 1; op >= 0; --op) {
    if (writes(program, op, value)) return op;
  }
  return std::nullopt;
}

void locate(const Program& program, int op, OpLocations& where, std::vector<LiveRange>& needs) {
  const OpCall& call = program.op(op);
  where.inputs.resize(call.inputs.size());
  where.outputs.resize(call.outputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId input = call.inputs[i];
    const auto overwritten = first_writer(program, input, op);  // by this op itself, too
    if (!overwritten) continue;
    const auto written = last_writer_before(program, input, op);
    if (!written) {
      where.inputs[i].kind = ValueLocation::Kind::restored;
    } else {
      needs.push_back({*written + 1, *overwritten, program.value(input).storage.index, &where.inputs[i]});
    }
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const auto overwritten = first_writer(program, call.outputs[i], op + 1);
    if (!overwritten) continue;
    needs.push_back({op + 1, *overwritten, program.value(call.outputs[i]).storage.index, &where.outputs[i]});
  }
}

}  // namespace

bool OpLocations::all_at_end() const {
  const auto at_end = [](const ValueLocation& w) { return w.kind == ValueLocation::Kind::end; };
  return std::all_of(inputs.begin(), inputs.end(), at_end) && std::all_of(outputs.begin(), outputs.end(), at_end);
}

RecheckPlan plan_recheck(const Program& program) {
  RecheckPlan plan;
  plan.ops.resize(program.ops().size());
  std::vector<LiveRange> needs;
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    if (program.op(op).phase == Phase::timed) locate(program, op, plan.ops[static_cast<std::size_t>(op)], needs);
  }
  // Fewest points that meet all intervals: by rising right end, a new point at the right end of each that has none yet.
  std::stable_sort(needs.begin(), needs.end(), [](const LiveRange& a, const LiveRange& b) { return a.last < b.last; });
  for (const LiveRange& need : needs) {
    if (plan.pauses.empty() || plan.pauses.back().before_op < need.first) plan.pauses.push_back({need.last, {}});
    plan.pauses.back().storages.insert(need.storage);
    *need.where = {ValueLocation::Kind::pause, plan.pauses.back().before_op};
  }
  return plan;
}

}  // namespace gpubench
