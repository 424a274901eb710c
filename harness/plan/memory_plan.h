// Which storages of a program lie in the same memory, for a program that doesn't fit with every value kept.
//
// The timed ops are cut into segments. Within a segment nothing is reused; what no later op needs makes room from the
// next segment on. So a replay that pauses between segments finds every value that a segment's ops read and wrote
// (harness/run/recheck_plan.h). One segment means that everything is kept, a segment per op that as little is taken as
// possible.
//
// Never shared: what the harness fills, what set-up ops leave, state, and what no later op reads (but for activations
// and statistics of an op of which another output is read).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Memory that storages take turns in.
struct MemorySlot {
  std::int64_t bytes = 0;  ///< of the largest of them
  Memory memory = Memory::device;
  int rank = 0;
  std::vector<StorageId> storages;  ///< in the order of their turns
};

struct MemoryPlan {
  int segments = 1;
  std::vector<MemorySlot> slots;
  std::vector<int> slot_of;                       ///< by storage
  std::vector<std::optional<StorageId>> follows;  ///< by storage: which has its memory before it
  std::vector<int> born;                          ///< by storage: the first timed op that writes it; -1: none

  [[nodiscard]] const MemorySlot& slot(StorageId id) const {
    return slots[static_cast<std::size_t>(slot_of[static_cast<std::size_t>(id.index)])];
  }
  [[nodiscard]] bool is_shared(StorageId id) const { return slot(id).storages.size() > 1; }
  /// Whether it has its memory when the timed ops have run.
  [[nodiscard]] bool keeps_memory(StorageId id) const { return slot(id).storages.back() == id; }
  /// Whether some memory is used twice.
  [[nodiscard]] bool reuses() const { return slots.size() < slot_of.size(); }
  /// Of all slots, without guards.
  [[nodiscard]] std::int64_t bytes() const;
};

/// Cuts the timed ops into `segments` of about equal shares of what they produce, or into as many as there are ops;
/// `segments` is 1 at least. Larger storages choose their slot first, each the smallest that is free.
[[nodiscard]] MemoryPlan plan_memory(const Program& program, int segments);

/// As little memory as plan_memory() comes to.
[[nodiscard]] MemoryPlan minimal_memory(const Program& program);

/// Program::dependencies(), and for each op that writes reused memory every earlier op that touched what was there.
[[nodiscard]] std::vector<std::vector<int>> dependencies(const Program& program, const MemoryPlan& memory,
                                                         std::span<const int> ops);

}  // namespace gpubench
