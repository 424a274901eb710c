// Where, after one run of the timed launch, the values that each op read and wrote can still be found.
//
// Most values still stand in memory when the launch ends. Those that were overwritten (gradients clipped in place,
// weights that AdamW updates, whatever lay where memory is reused) are taken from what was restored before the run, or
// from a second run that pauses: it runs the same ops in segments, and keeps the storage between two of them. Pure;
// made from the program and its memory plan alone.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "harness/core/program.h"
#include "harness/plan/memory_plan.h"

namespace gpubench {

/// Where the content of one operand is found.
struct ValueLocation {
  enum class Kind {
    end,       ///< in memory after the launch
    restored,  ///< what the storage held before the launch
    pause      ///< kept when the run in segments paused before op `pause`
  };
  Kind kind = Kind::end;
  int pause = -1;
  friend bool operator==(const ValueLocation&, const ValueLocation&) = default;
};

struct OpLocations {
  std::vector<ValueLocation> inputs;
  std::vector<ValueLocation> outputs;
  /// Whether all of it is in memory after the launch.
  [[nodiscard]] bool all_at_end() const;
  /// When the op is judged: after the run that has paused before this op; none: after the launch.
  std::optional<int> judged_before{};
};

struct Checkpoint {
  int before_op = 0;                  ///< ops with a lower index have run
  std::set<int> storages;             ///< indices of the storages to keep, for ops that are judged later
  std::optional<int> needed_until{};  ///< the last pause at which one of these is judged; none: after the launch
};

struct RecheckPlan {
  std::vector<OpLocations> ops;    ///< by op index; empty for set-up ops
  std::vector<Checkpoint> pauses;  ///< ascending; as few as possible
};

/// With memory that is reused, an op of which something will be overwritten is judged at a pause, so that nothing is
/// kept for long; else after the launch, so that as much as possible is what the timed launch left.
[[nodiscard]] RecheckPlan plan_recheck(const Program& program, const MemoryPlan& memory);

}  // namespace gpubench
