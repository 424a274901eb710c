// How ranks cut each value of a step and share each op (partition.h). Planned before building, because a packed
// gradient is created before its parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

// Cut tensors and views of them: where a part of a packed tensor (q of qkv) is after its whole is cut, and the reverse.
// A view is given by its spec and the place of its first element in the whole, the row-major tensor that spans its
// storage. Each axis of a view lies within one axis of the whole (heads and their elements: within columns) or covers
// several of them (rows: sequences times tokens).

struct View {
  const TensorSpec& spec;
  std::int64_t first = 0;  ///< first element's place in the whole
};

/// The elements [start, start + sum of sections) along an axis of the whole, cut section by section.
struct CutRange {
  int axis = 0;
  std::int64_t start = 0;
  std::vector<std::int64_t> sections;
};

/// The range of the whole that a cut view covers; none if that is not along one axis.
[[nodiscard]] std::optional<CutRange> range_of(const TensorSpec& whole, const View& view, const Cut& cut);
/// The cut with these ranges; none unless they cover one axis, each place once.
[[nodiscard]] std::optional<Cut> join(const TensorSpec& whole, std::vector<CutRange> ranges);
/// The cut of a view of a cut whole; none if that is not along one axis.
[[nodiscard]] std::optional<Cut> cut_of_view(const TensorSpec& whole, const Cut& cut, const View& view);

[[nodiscard]] bool divides(const TensorSpec& spec, const Cut& cut, int parts);
/// Reduces the spec to one rank's part: shape, and a dense layout with the same order of axes.
void shrink(TensorSpec& whole, const Cut& cut, int parts);
/// Reduces `view` to one rank's part; returns its first element in the rank's part of the whole. `of_view`:
/// cut_of_view().
std::int64_t shrink_view(const TensorSpec& whole, const Cut& cut, int parts, const Cut& of_view, std::int64_t first,
                         TensorSpec& view);

struct Partition {
  std::string axis;
  int ranks = 1;
  bool scatters_tokens = false;
  bool has_own_batches = false;              ///< each rank has a batch; only ops after the gradients are shared
  bool spreads_experts = false;              ///< ranks also have experts, which receive the tokens of all ranks
  Reduction reduction = Reduction::average;  ///< of gradients, over the batches
  Math math = {};
};

/// The value that spans the storage of `id`, and the place of `id` in it.
[[nodiscard]] ValueId whole_of(const Program& step, ValueId id);
[[nodiscard]] View view_of(const Program& step, ValueId id);

class CutPlan {
 public:
  /// Step and options must outlive it. Throws ProgramError as the transforms do.
  CutPlan(const Program& step, const Partition& options, const Cuts& cuts, std::span<const ValueId> gradients);

  /// The cut when ops read the value.
  [[nodiscard]] const MaybeCut& cut(ValueId id);
  [[nodiscard]] const OpSharding& sharding(int op) const { return ops_[static_cast<std::size_t>(op)]; }
  /// Whether ranks get a part each of the addends' sum, by rows; else all get the whole.
  [[nodiscard]] bool is_scattered(ValueId id) const { return scattered_.contains(id); }
  /// The cut as the value's op leaves it: addends are as large as their sum.
  [[nodiscard]] MaybeCut as_made(ValueId id);
  [[nodiscard]] bool is_gradient(ValueId id) const { return gradients_.contains(id); }
  [[nodiscard]] bool is_addend(ValueId id) const { return addends_.contains(id); }
  /// Whether it is a view of the gathered whole, not of a rank's part: rows of each sample.
  [[nodiscard]] bool is_gathered_view(ValueId id) const { return gathered_views_.contains(id); }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }
  void set(ValueId id, MaybeCut cut);
  void share(const OpCall& call);
  [[nodiscard]] OpSharding on_own_batch(const OpCall& call, std::span<const MaybeCut> inputs);
  [[nodiscard]] MaybeCut cut_of_table(const OpCall& embedding_backward);
  [[nodiscard]] bool scatters_gradient(ValueId id) const;
  [[nodiscard]] bool scatters_well(const OpCall& call, ValueId id) const;
  [[nodiscard]] MaybeCut derived(ValueId id);
  [[noreturn]] void refuse(ValueId id) const;

  const Program& step_;
  const Partition& options_;
  std::set<ValueId> gradients_;
  std::set<StorageId> final_;   // storages of gradients, and of all that is made from them
  std::vector<MaybeCut> cuts_;  // by value
  std::vector<bool> known_;
  std::vector<OpSharding> ops_;
  std::set<ValueId> addends_, scattered_, gathered_views_;
};

}  // namespace gpubench
