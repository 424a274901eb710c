#include "harness/run/recheck_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace gpubench {
namespace {

/// A value that exists only from the pause before op `first` to the pause before op `last`, which overwrites it.
struct LiveRange {
  int first = 0;
  int last = 0;
  int storage = 0;
  int op = 0;
  ValueLocation* where = nullptr;
};

class Writes {
 public:
  Writes(const Program& program, const MemoryPlan& memory)
      : program_(program), memory_(memory), in_slot_(memory.slots.size()) {
    for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
      if (program.op(op).phase != Phase::timed) continue;
      for (const ValueId output : program.op(op).outputs) in_slot_[slot_of(output)].push_back({op, output});
    }
  }

  /// The first op >= `from` that overwrites part of the value.
  [[nodiscard]] std::optional<int> first_after(ValueId value, int from) const {
    for (const Write& write : in_slot_[slot_of(value)]) {
      if (write.op >= from && meets(write.output, value)) return write.op;
    }
    return std::nullopt;
  }
  /// The last op < `before` that wrote part of the value.
  [[nodiscard]] std::optional<int> last_before(ValueId value, int before) const {
    std::optional<int> last;
    for (const Write& write : in_slot_[slot_of(value)]) {
      if (write.op < before && program_.overlaps(write.output, value)) last = write.op;
    }
    return last;
  }

 private:
  struct Write {
    int op;
    ValueId output;
  };
  [[nodiscard]] std::size_t slot_of(ValueId value) const {
    return static_cast<std::size_t>(memory_.slot_of[static_cast<std::size_t>(program_.value(value).storage.index)]);
  }
  [[nodiscard]] bool meets(ValueId output, ValueId value) const {
    return program_.value(output).storage != program_.value(value).storage || program_.overlaps(output, value);
  }

  const Program& program_;
  const MemoryPlan& memory_;
  std::vector<std::vector<Write>> in_slot_;
};

// If memory is reused, inputs are taken at a pause after the op, as outputs are. So nothing is kept, and there is a
// pause between the last op that uses a storage and the next storage in its place.
void locate(const Program& program, const Writes& writes, bool reuses, int op, OpLocations& where,
            std::vector<LiveRange>& needs) {
  const OpCall& call = program.op(op);
  where.inputs.resize(call.inputs.size());
  where.outputs.resize(call.outputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId input = call.inputs[i];
    const auto overwritten = writes.first_after(input, op);  // may be this op
    if (!overwritten) continue;
    const auto written = writes.last_before(input, op);
    if (!written) {
      where.inputs[i].kind = ValueLocation::Kind::restored;
    } else {
      const int first = reuses && *overwritten > op ? op + 1 : *written + 1;
      needs.push_back({first, *overwritten, program.value(input).storage.index, op, &where.inputs[i]});
    }
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const auto overwritten = writes.first_after(call.outputs[i], op + 1);
    if (!overwritten) continue;
    needs.push_back({op + 1, *overwritten, program.value(call.outputs[i]).storage.index, op, &where.outputs[i]});
  }
}

// The first pause after the op at which all its values are available. A value in memory at the end is available at
// every pause after the op.
std::optional<int> pause_to_judge_at(int op, const RecheckPlan& plan) {
  int latest = -1;
  const OpLocations& where = plan.ops[static_cast<std::size_t>(op)];
  for (const std::vector<ValueLocation>* list : {&where.inputs, &where.outputs}) {
    for (const ValueLocation& one : *list) latest = std::max(latest, one.pause);
  }
  if (latest < 0) return std::nullopt;
  const auto pause = std::find_if(plan.pauses.begin(), plan.pauses.end(),
                                  [&](const Checkpoint& one) { return one.before_op >= std::max(latest, op + 1); });
  return pause == plan.pauses.end() ? std::nullopt : std::optional(pause->before_op);
}

}  // namespace

RecheckPlan plan_recheck(const Program& program, const MemoryPlan& memory) {
  const Writes writes(program, memory);
  RecheckPlan plan;
  plan.ops.resize(program.ops().size());
  std::vector<LiveRange> needs;
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    if (program.op(op).phase == Phase::timed)
      locate(program, writes, memory.reuses(), op, plan.ops[static_cast<std::size_t>(op)], needs);
  }
  // The fewest points that hit all intervals: by ascending right end, the right end of each interval without a point.
  std::stable_sort(needs.begin(), needs.end(), [](const LiveRange& a, const LiveRange& b) { return a.last < b.last; });
  for (const LiveRange& need : needs) {
    if (plan.pauses.empty() || plan.pauses.back().before_op < need.first) plan.pauses.push_back({need.last, {}});
    *need.where = {ValueLocation::Kind::pause, plan.pauses.back().before_op};
  }
  for (int op = 0; memory.reuses() && op < static_cast<int>(plan.ops.size()); ++op)
    plan.ops[static_cast<std::size_t>(op)].judged_before = pause_to_judge_at(op, plan);
  constexpr int never = std::numeric_limits<int>::max();
  std::map<int, int> until;  // by pause
  for (const LiveRange& need : needs) {
    const std::optional<int> judged = plan.ops[static_cast<std::size_t>(need.op)].judged_before;
    if (judged == need.where->pause) continue;
    const auto pause = std::ranges::find(plan.pauses, need.where->pause, &Checkpoint::before_op);
    pause->storages.insert(need.storage);
    int& last = until[pause->before_op];
    last = std::max(last, judged.value_or(never));
  }
  for (Checkpoint& pause : plan.pauses) {
    if (const int last = until[pause.before_op]; last != never) pause.needed_until = last;
  }
  return plan;
}

}  // namespace gpubench
