// A program: training ops over named tensors, as data, built by free functions (reference/ops/*.h), then only read.
//
// Ops read and write values; storages are the memory behind them. Most values have a separate storage. A *part* is a
// view into another value's storage (q, k, v of packed qkv; dq, dk, dv of dqkv). An *update* is a newer version of a
// value in the same storage (AdamW's weights, C with beta = 1). Each value is produced at most once.
//
// A program holds the work of all ranks, or of those of one process. Every storage is on one rank, and an op runs on
// the rank of its tensors. A collective is an op that names its members; its inputs and outputs are the tensors of all
// of them. Collectives of disjoint groups may run concurrently; those with a common rank run in program order on every
// rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "harness/core/mesh.h"
#include "harness/core/op_kind.h"
#include "harness/core/recipe.h"
#include "harness/core/tensor.h"

namespace gpubench {

struct ValueId {
  int index = -1;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

struct StorageId {
  int index = -1;
  friend auto operator<=>(const StorageId&, const StorageId&) = default;
};

struct Storage {
  std::string name;
  std::int64_t bytes = 0;
  Memory memory = Memory::device;
  int rank = 0;
};

struct Value {
  TensorSpec spec;
  StorageId storage;
  std::int64_t offset_bytes = 0;   ///< of the first element in its storage
  std::optional<int> producer;     ///< index of the op that writes it
  std::optional<ValueId> updates;  ///< the older version whose storage this overwrites
  std::optional<ValueId> part_of;  ///< the value whose storage this is a view into
  bool source = false;             ///< filled by the harness, not produced by an op
};

/// Set-up ops (reordering weights once) run and are checked before timing, outside the timed launch.
enum class Phase { setup, timed };

struct OpCall {
  OpKind kind;
  Attributes attributes;
  Math math;
  std::vector<ValueId> inputs;  ///< in the order of the op's header; lists are several values
  std::vector<ValueId> outputs;
  std::string label;  ///< unique in its program: "qkv.forward", "block0.ln1.backward"
  Phase phase = Phase::timed;
  RankGroup group{};  ///< members of a collective, in order; empty for other ops, which run on their tensors' rank
  RankGroup held{};   ///< members that the program holds, in that order: its tensors are theirs, one by one

  /// Throws ProgramError if this call lacks the operand.
  [[nodiscard]] ValueId input(std::string_view name, std::size_t i = 0) const;
  [[nodiscard]] ValueId output(std::string_view name, std::size_t i = 0) const;
};

class Program {
 public:
  /// Planning time and memory grow with ops: a gigabyte for this many.
  static constexpr std::size_t max_ops = 400'000;

  Program() = default;
  /// `held`: the ranks whose tensors it has, in any order; empty: all of the mesh. Throws ProgramError for a rank
  /// outside the mesh.
  explicit Program(Mesh mesh, std::vector<int> held = {});

  /// A source: the harness fills it. Throws ProgramError if the name is taken or its rank is not held.
  ValueId add(TensorSpec spec);

  ValueId reserve(TensorSpec spec);

  /// A view into `whole`: `spec.layout` has the strides of the whole's storage, `first_element` counts elements. Throws
  /// ProgramError if it reaches outside.
  ValueId part(ValueId whole, TensorSpec spec, std::int64_t first_element);

  /// The next version of `old` in the same storage; `name` must be new ("w'").
  ValueId update(ValueId old, std::string name);
  /// With another spread than the old one.
  ValueId update(ValueId old, std::string name, std::vector<AxisSpread> spread);

  /// Appends an op whose outputs are reserved, parts of reserved, or updates. Returns its outputs. Throws ProgramError
  /// if an output already has a producer, an input is not yet available, the label is taken, its tensors are on several
  /// ranks without a group, or there are `max_ops` already.
  std::span<const ValueId> append(OpCall call);

  void begin(Phase phase) { phase_ = phase; }

  /// `wanted`, with a number appended if a tensor or op has that name.
  [[nodiscard]] std::string unique_name(std::string_view wanted);

  /// One rank if the program has no mesh.
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] bool holds(int rank) const { return is_held_.empty() || is_held_.at(static_cast<std::size_t>(rank)); }
  [[nodiscard]] const Value& value(ValueId id) const;
  [[nodiscard]] const TensorSpec& spec(ValueId id) const { return value(id).spec; }
  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Storage> storages() const { return storages_; }
  [[nodiscard]] const Storage& storage(StorageId id) const { return storages_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] std::span<const OpCall> ops() const { return ops_; }
  [[nodiscard]] const OpCall& op(int index) const { return ops_.at(static_cast<std::size_t>(index)); }

  /// Whether an op produces the value and no later update overwrites it or what it is a part of.
  [[nodiscard]] bool survives(ValueId id) const;
  /// The ops that read a value, in order; once per operand.
  [[nodiscard]] std::span<const int> readers(ValueId id) const {
    return readers_.at(static_cast<std::size_t>(id.index));
  }
  [[nodiscard]] std::span<const ValueId> values_in(StorageId id) const {
    return in_storage_.at(static_cast<std::size_t>(id.index));
  }

  /// True if the value is a source or every op that produces it (or all its parts) has been appended.
  [[nodiscard]] bool available(ValueId id) const;
  /// Whether the value is a declared part, not a newer version of one: it overlaps another part of the same whole only
  /// if both have the same place.
  [[nodiscard]] bool is_proper_part(ValueId id) const;
  /// Identifies the bytes of a value: for a proper part the first part in its place, else the value that spans the
  /// storage.
  [[nodiscard]] ValueId region(ValueId id) const { return region_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] bool overlaps(ValueId a, ValueId b) const;
  /// For each op the earlier ops it must wait for, by reads and writes of the same bytes. Transitive waits are omitted
  /// where one of these overwrote the bytes in between.
  [[nodiscard]] std::vector<std::vector<int>> dependencies() const;
  /// The same for these ops only, ascending; indices count among them.
  [[nodiscard]] std::vector<std::vector<int>> dependencies(std::span<const int> ops) const;
  /// Bytes of all storages. Nothing is reused, so that every value can be judged after a run.
  [[nodiscard]] std::int64_t bytes() const;
  /// True if a timed op overwrites content from before the timed ops: a source or the result of a set-up op. A replay
  /// of the timed ops must restore it first.
  [[nodiscard]] bool is_state(StorageId id) const;

  [[nodiscard]] std::string to_string() const;

 private:
  ValueId add_value(Value value);
  [[nodiscard]] ValueId first_in_place(ValueId part);

  Mesh mesh_;
  RankGroup held_;             // empty: all
  std::vector<bool> is_held_;  // by rank; empty: all
  std::vector<Value> values_;
  std::vector<Storage> storages_;
  std::vector<OpCall> ops_;
  // Indexes, so that appending an op needs no search.
  std::unordered_set<std::string> names_, labels_;    // of values, of ops
  std::unordered_map<std::string, int> next_number_;  // by wanted name: no smaller one is free
  std::vector<std::vector<ValueId>> in_storage_;      // by storage: its values
  std::vector<std::vector<int>> readers_;             // by value
  std::vector<ValueId> region_;                       // by value, see region()
  std::map<std::pair<ValueId, std::int64_t>, std::vector<ValueId>> regions_at_;  // by whole and offset in bytes
  std::vector<std::int64_t> elements_made_by_parts_;  // by value: elements that the producers of its parts make
  Phase phase_ = Phase::timed;
};

[[nodiscard]] std::vector<TensorSpec> specs_of(const Program& program, std::span<const ValueId> ids);
[[nodiscard]] std::vector<TensorSpec> specs_of_call(const Program& program, const OpCall& call);

/// The rank that runs an op on these tensors; none for a collective.
[[nodiscard]] std::optional<int> rank_of(const OpCall& call, std::span<const TensorSpec> tensors);
[[nodiscard]] std::optional<int> rank_of(const Program& program, const OpCall& call);

/// Adds the values of `from` to `to`, without their ops. `edit` may change each spec (a rank's name and place, a wider
/// type). Returns the new ids, in order. `drop`, by value, if not empty: values without a copy (id none); no part or
/// update of them may be copied. `updates`: values with a separate storage in `from`, each with the earlier value that
/// it becomes an update of.
std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::vector<bool>& drop = {}, const std::map<ValueId, ValueId>& updates = {});

/// The program without rounding, for end-to-end comparisons: floating-point tensors are stored as f64, and ops
/// accumulate in f64; integers stay. Values and ops correspond one to one.
[[nodiscard]] Program widen(const Program& program);

}  // namespace gpubench
