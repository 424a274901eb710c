// How every value of a step is cut, and how every op is shared, when ranks take parts of it (partition.h): worked out
// before anything is built, since a packed gradient is there before its parts are.
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

// Tensors that are cut, and the views into them: where the part of a packed tensor is once its whole is cut (q of a
// rank's qkv), and how the whole is cut once its parts are.
//
// A view is given by its spec and by the place of its first element in the row-major tensor that spans its storage, the
// whole. Each axis of a view is either within one axis of the whole (heads and their elements are both within columns)
// or covers several of them (rows of sequences times tokens).

struct View {
  const TensorSpec& spec;
  std::int64_t first = 0;  ///< of its elements, in the whole
};

/// The elements [start, start + sum of sections) along an axis of the whole, cut section by section.
struct CutRange {
  int axis = 0;
  std::int64_t start = 0;
  std::vector<std::int64_t> sections;
};

/// What a cut view means for the whole. None where that is no cut of one axis.
[[nodiscard]] std::optional<CutRange> range_of(const TensorSpec& whole, const View& view, const Cut& cut);
/// The cut whose ranges these are. None unless they are along one axis and make up all of it, each place once.
[[nodiscard]] std::optional<Cut> join(const TensorSpec& whole, std::vector<CutRange> ranges);
/// How a view is cut where its whole is. None where that is no cut of one axis.
[[nodiscard]] std::optional<Cut> cut_of_view(const TensorSpec& whole, const Cut& cut, const View& view);

/// Whether each section of the axis has as many elements for each of `parts` ranks.
[[nodiscard]] bool divides(const TensorSpec& spec, const Cut& cut, int parts);
/// What one rank has of it, dense: its shape and, with its axes in the same order, its layout.
void shrink(TensorSpec& whole, const Cut& cut, int parts);
/// The view of one rank's part of the whole: `view` with its new shape and strides. Returns its first element there.
/// `of_view`: cut_of_view().
std::int64_t shrink_view(const TensorSpec& whole, const Cut& cut, int parts, const Cut& of_view, std::int64_t first,
                         TensorSpec& view);

/// What the two ways of cutting a step differ in.
struct Partition {
  std::string axis;
  int ranks = 1;
  bool scatters_tokens = false;
  bool has_own_batches = false;              ///< ranks have a batch each; only what follows gradients is shared
  bool spreads_experts = false;              ///< and experts, to which the tokens of all ranks come
  Reduction reduction = Reduction::average;  ///< of gradients, over the batches
  Math math = {};
};

/// The value that spans the storage of `id`, and where `id` is in it.
[[nodiscard]] ValueId whole_of(const Program& step, ValueId id);
[[nodiscard]] View view_of(const Program& step, ValueId id);

class CutPlan {
 public:
  /// Step and options must outlive it. Throws ProgramError as the transforms do.
  CutPlan(const Program& step, const Partition& options, const Cuts& cuts, std::span<const ValueId> gradients);

  /// Of a value when an op reads it.
  [[nodiscard]] const MaybeCut& cut(ValueId id);
  [[nodiscard]] const OpSharding& sharding(int op) const { return ops_[static_cast<std::size_t>(op)]; }
  /// Whether each rank has a part of the sum of the addends, by rows; else all have all of it.
  [[nodiscard]] bool is_scattered(ValueId id) const { return scattered_.contains(id); }
  /// How its op leaves it on each rank: addends are as large as what they add up to, of which a rank may get a part.
  [[nodiscard]] MaybeCut as_made(ValueId id);
  [[nodiscard]] bool is_gradient(ValueId id) const { return gradients_.contains(id); }
  /// Whether each rank has an addend of it when its op has run.
  [[nodiscard]] bool is_addend(ValueId id) const { return addends_.contains(id); }
  /// Whether it is no part of what a rank has, but of the whole that is gathered: rows of samples, some of each.
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
  std::set<StorageId> final_;   // of gradients, and of what is made of them
  std::vector<MaybeCut> cuts_;  // by value
  std::vector<bool> known_;
  std::vector<OpSharding> ops_;
  std::set<ValueId> addends_, scattered_, gathered_views_;
};

}  // namespace gpubench
