// Memory reuse, for programs that do not fit with every value kept. Memory is reused only across segments of timed ops,
// so a replay that pauses between segments finds all values of its segment (harness/run/recheck_plan.h).
//
// Never shared: sources, outputs of set-up ops, state, and values that no later op reads, except activations and
// statistics of an op that has another output that is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Memory that several storages occupy in turn.
struct MemorySlot {
  std::int64_t bytes = 0;  ///< of the largest storage
  Memory memory = Memory::device;
  int rank = 0;
  std::vector<StorageId> storages;  ///< in the order of their turns
};

struct MemoryPlan {
  int segments = 1;
  std::vector<MemorySlot> slots;
  std::vector<int> slot_of;                       ///< by storage
  std::vector<std::optional<StorageId>> follows;  ///< by storage: the previous one in its slot
  std::vector<int> born;                          ///< by storage: the first timed op that writes it; -1: none

  [[nodiscard]] const MemorySlot& slot(StorageId id) const {
    return slots[static_cast<std::size_t>(slot_of[static_cast<std::size_t>(id.index)])];
  }
  [[nodiscard]] bool is_shared(StorageId id) const { return slot(id).storages.size() > 1; }
  /// Whether its values are intact after the timed ops.
  [[nodiscard]] bool keeps_memory(StorageId id) const { return slot(id).storages.back() == id; }
  [[nodiscard]] bool reuses() const { return slots.size() < slot_of.size(); }
  /// Sum of all slots, without guards.
  [[nodiscard]] std::int64_t bytes() const;
};

/// Cuts the ops into `segments` (clamped to 1 .. number of ops) that produce about equal bytes; 1: no reuse. Assigns
/// storages from the largest down, each to the smallest free slot.
[[nodiscard]] MemoryPlan plan_memory(const Program& program, int segments);

/// plan_memory() with one segment per op: its least memory.
[[nodiscard]] MemoryPlan minimal_memory(const Program& program);

/// Program::dependencies(), plus, for each op that writes reused memory, every earlier op that used its previous
/// storage.
[[nodiscard]] std::vector<std::vector<int>> dependencies(const Program& program, const MemoryPlan& memory,
                                                         std::span<const int> ops);

}  // namespace gpubench
