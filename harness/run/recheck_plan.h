// The locations of each op's inputs and outputs after the timed launch. Most are still in memory. Those that were
// overwritten (gradients clipped in place, weights updated by AdamW, values in reused memory) come from the restored
// state, or from a second run in segments that keeps storages between segments.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "harness/core/program.h"
#include "harness/plan/memory_plan.h"

namespace gpubench {

struct ValueLocation {
  enum class Kind {
    end,       ///< in memory after the launch
    restored,  ///< content of the storage before the launch
    pause      ///< kept by the run in segments at its pause before op `pause`
  };
  Kind kind = Kind::end;
  int pause = -1;
  [[nodiscard]] bool at_end() const { return kind == Kind::end; }
  friend bool operator==(const ValueLocation&, const ValueLocation&) = default;
};

struct OpLocations {
  std::vector<ValueLocation> inputs;
  std::vector<ValueLocation> outputs;
  [[nodiscard]] bool outputs_at_end() const { return std::ranges::all_of(outputs, &ValueLocation::at_end); }
  [[nodiscard]] bool all_at_end() const {
    return outputs_at_end() && std::ranges::all_of(inputs, &ValueLocation::at_end);
  }
  /// The op is judged at the pause before this op; empty: after the launch.
  std::optional<int> judged_before{};
};

struct Checkpoint {
  int before_op = 0;                  ///< ops with a lower index have run
  std::set<int> storages;             ///< indices of the storages to keep, for ops that are judged later
  std::optional<int> needed_until{};  ///< the last pause at which one of these is needed; empty: after the launch
};

struct RecheckPlan {
  std::vector<OpLocations> ops;    ///< by op index; empty for set-up ops
  std::vector<Checkpoint> pauses;  ///< ascending; as few as possible
};

/// If memory is reused, an op with values that will be overwritten is judged at a pause, to keep little memory.
/// Otherwise ops are judged after the launch, on the results of the timed launch as far as possible.
[[nodiscard]] RecheckPlan plan_recheck(const Program& program, const MemoryPlan& memory);

}  // namespace gpubench
