// Where, after one run of the timed launch, the values that each op read and wrote can still be found.
//
// Most values still stand in memory when the launch ends. Those that were overwritten (gradients clipped in place,
// weights that AdamW updates) are taken from what was restored before the run, or from a second run that pauses: it
// runs the same ops in segments, and keeps the storage between two of them. Pure; made from the program alone.
#pragma once

#include <set>
#include <vector>

#include "harness/core/program.h"

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
};

struct Checkpoint {
  int before_op = 0;       ///< ops with a lower index have run
  std::set<int> storages;  ///< indices of the storages to keep
};

struct RecheckPlan {
  std::vector<OpLocations> ops;    ///< by op index; empty for set-up ops
  std::vector<Checkpoint> pauses;  ///< ascending; as few as possible
};

[[nodiscard]] RecheckPlan plan_recheck(const Program& program);

}  // namespace gpubench
