// A program: training ops over named tensors, as data.
//
// Values are what ops read and write; storages are the memory behind them. Most values have a storage of their own.
// A value may instead be a *part* of another's storage (q, k, v of packed qkv; dq, dk, dv of dqkv), or an *update*: a
// newer version of a value in the same storage (AdamW's weights, C of beta = 1). Each value is produced at most once.
// A program is built by free builder functions (reference/ops/*.h), then only read.
//
// A program holds the work of several ranks: of all, or of those of one process. Every storage is on one rank, and an
// op runs on the rank of its tensors; a collective names its members, which run it together. So a collective is an op
// like any other: its inputs are what it reads on every rank, its outputs what it writes there. Collectives of groups
// without a common rank may run side by side; those that share one run in the order of the program, the same on every
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

/// Set-up ops (reordering weights once) run and are checked before timing; they are not part of the timed launch.
enum class Phase { setup, timed };

struct OpCall {
  OpKind kind;
  Attributes attributes;
  Math math;
  std::vector<ValueId> inputs;  ///< in the order the op's header documents; lists are simply several
  std::vector<ValueId> outputs;
  std::string label;  ///< unique in its program: "qkv.forward", "block0.ln1.backward"
  Phase phase = Phase::timed;
  RankGroup group{};  ///< of a collective: its members, in an order; else empty: the op runs on its tensors' rank
  RankGroup held{};   ///< of these, in that order, those that the program holds: its tensors are theirs, one by one

  /// The operand of that name; throws ProgramError where this call lacks it.
  [[nodiscard]] ValueId input(std::string_view name, std::size_t i = 0) const;
  [[nodiscard]] ValueId output(std::string_view name, std::size_t i = 0) const;
};

class Program {
 public:
  /// Ops that a program may have. Planning takes time and memory in proportion: a gigabyte for this many.
  static constexpr std::size_t max_ops = 400'000;

  /// Holds all ranks.
  Program() = default;
  /// `held`: the ranks whose tensors it has, in any order; empty: all of the mesh. Throws ProgramError for one that the
  /// mesh does not have.
  explicit Program(Mesh mesh, std::vector<int> held = {});

  // --- building ---

  /// A source: the harness fills it. Throws ProgramError when the name is taken, and where its rank is
  /// not held.
  ValueId add(TensorSpec spec);

  /// Storage with nothing in it yet, for an op to produce (whole, or by parts).
  ValueId reserve(TensorSpec spec);

  /// A view into `whole`, in the same memory: `spec.layout` strides are those of the whole's storage, `first_element`
  /// counts in elements. Throws ProgramError where it would reach outside.
  ValueId part(ValueId whole, TensorSpec spec, std::int64_t first_element);

  /// The next version of `old` in the same storage; `name` must be new ("w'").
  ValueId update(ValueId old, std::string name);
  /// The same, with another spread than the old one.
  ValueId update(ValueId old, std::string name, std::vector<AxisSpread> spread);

  /// Appends an op whose outputs were reserved, parts of reserved, or updates. Returns its outputs.
  /// Throws ProgramError when an output has a producer already, an input is not yet available, the label is taken, its
  /// tensors are on several ranks and no group is named, or there are `max_ops` already.
  std::span<const ValueId> append(OpCall call);

  /// Ops appended from now on belong to `phase` (a program starts in Phase::timed).
  void begin(Phase phase) { phase_ = phase; }

  /// `wanted`, with a number appended where a tensor or op has that name already.
  [[nodiscard]] std::string unique_name(std::string_view wanted);

  // --- reading ---

  /// How the ranks are arranged; one rank for a program that was given no mesh.
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  /// Whether the tensors of a rank are part of the program.
  [[nodiscard]] bool holds(int rank) const { return is_held_.empty() || is_held_.at(static_cast<std::size_t>(rank)); }
  [[nodiscard]] const Value& value(ValueId id) const;
  [[nodiscard]] const TensorSpec& spec(ValueId id) const { return value(id).spec; }
  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Storage> storages() const { return storages_; }
  [[nodiscard]] const Storage& storage(StorageId id) const { return storages_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] std::span<const OpCall> ops() const { return ops_; }
  [[nodiscard]] const OpCall& op(int index) const { return ops_.at(static_cast<std::size_t>(index)); }

  /// Whether an op produces the value and none overwrites it later, by a version of it or of what it is a part of.
  [[nodiscard]] bool survives(ValueId id) const;
  /// The ops that read a value, in order; an op that reads it twice is there twice.
  [[nodiscard]] std::span<const int> readers(ValueId id) const {
    return readers_.at(static_cast<std::size_t>(id.index));
  }
  /// The values of a storage; the first spans it.
  [[nodiscard]] std::span<const ValueId> values_in(StorageId id) const {
    return in_storage_.at(static_cast<std::size_t>(id.index));
  }

  /// True once every op that makes up the value (itself, or all its parts) has been appended, or it is a source.
  [[nodiscard]] bool available(ValueId id) const;
  /// Whether the value is a part as declared, not a newer version of one: it shares bytes with another part of the same
  /// whole only where both are in the same place.
  [[nodiscard]] bool is_proper_part(ValueId id) const;
  /// Identifies the bytes of a value: of a proper part the first part in its place, of all others the value that spans
  /// their storage.
  [[nodiscard]] ValueId region(ValueId id) const { return region_.at(static_cast<std::size_t>(id.index)); }
  /// Whether two values share bytes.
  [[nodiscard]] bool overlaps(ValueId a, ValueId b) const;
  /// For each op the earlier ops it must wait for: it reads what they write, or overwrites what they read or wrote.
  /// Where another of these overwrote the same bytes in between, only that one is listed, which waits for the rest.
  [[nodiscard]] std::vector<std::vector<int>> dependencies() const;
  /// The same for a program of these ops only, ascending; ops are named by their place among them.
  [[nodiscard]] std::vector<std::vector<int>> dependencies(std::span<const int> ops) const;
  /// Bytes of all storages: nothing is reused, so that every value can be judged after a run.
  [[nodiscard]] std::int64_t bytes() const;
  /// True when a timed op overwrites what was there before it ran: storage filled by the harness or produced by a
  /// set-up op. A replay of the timed ops must restore it first.
  [[nodiscard]] bool is_state(StorageId id) const;

  /// One line per tensor and op, as `gpubench list CASE` shows it.
  [[nodiscard]] std::string to_string() const;

 private:
  ValueId add_value(Value value);
  [[nodiscard]] ValueId first_in_place(ValueId part);

  Mesh mesh_;
  RankGroup held_;             // empty: all
  std::vector<bool> is_held_;  // by rank; empty: all are
  std::vector<Value> values_;
  std::vector<Storage> storages_;
  std::vector<OpCall> ops_;
  // Indexes into the above, so that appending an op searches nothing.
  std::unordered_set<std::string> names_, labels_;    // of values, of ops
  std::unordered_map<std::string, int> next_number_;  // by wanted name: no smaller one is free
  std::vector<std::vector<ValueId>> in_storage_;      // by storage: its values
  std::vector<std::vector<int>> readers_;             // by value
  std::vector<ValueId> region_;                       // by value, see region()
  std::map<std::pair<ValueId, std::int64_t>, std::vector<ValueId>> regions_at_;  // by whole and offset in bytes
  std::vector<std::int64_t> elements_made_by_parts_;  // by value: of it, by the producers of its parts
  Phase phase_ = Phase::timed;
};

/// Specs of the values, in order: what a backend plans an op from.
[[nodiscard]] std::vector<TensorSpec> specs_of(const Program& program, std::span<const ValueId> ids);
/// Of a call's inputs, then its outputs.
[[nodiscard]] std::vector<TensorSpec> specs_of_call(const Program& program, const OpCall& call);

/// The rank that runs an op of these tensors; none for a collective, which has several members.
[[nodiscard]] std::optional<int> rank_of(const OpCall& call, std::span<const TensorSpec> tensors);
[[nodiscard]] std::optional<int> rank_of(const Program& program, const OpCall& call);

// Copies of programs.

/// Adds the values of `from` to `to`, without the ops that produce them: sources, reservations, parts and updates.
/// `edit` may change each spec (a rank's name and place, a wider type). Returns the new ids, in order.
/// `drop`, by value, where not empty: those to leave out. They get no id; nothing may be a part or an update of them.
/// `updates`: values with a storage of their own in `from`, each with the earlier value that it becomes an update of.
std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::vector<bool>& drop = {}, const std::map<ValueId, ValueId>& updates = {});

/// What `program` would compute without rounding, for end-to-end comparisons: every floating-point tensor is stored as
/// f64, and every op accumulates in f64; integers stay. Values, ops and their indices correspond one to one.
[[nodiscard]] Program widen(const Program& program);

}  // namespace gpubench
