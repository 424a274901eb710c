// How every value of a step is cut, and how every op is shared, when ranks take parts of it (partition.h): worked out
// before anything is built, since a packed gradient is there before its parts are.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/transform/cut_layout.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

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
