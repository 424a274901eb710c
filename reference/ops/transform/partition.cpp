#include "reference/ops/transform/partition.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/row_view.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/token_exchange.h"
#include "reference/ops/token_groups.h"
#include "reference/ops/transform/cut_plan.h"

namespace gpubench {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

class Shares {
 public:
  Shares(const Program& step, const Partition& options, const Cuts& cuts, std::span<const ValueId> gradients)
      : step_(step),
        options_(options),
        axis_(step, options.axis, options.ranks),
        plan_(step, options, cuts, gradients),
        program_(axis_.mesh()),
        now_(static_cast<std::size_t>(options.ranks)) {
    for (int index = 0; index < static_cast<int>(step.values().size()); ++index) {
      for (int rank = 0; rank < options.ranks; ++rank) of_rank(rank).push_back(value_on(rank, {index}));
    }
    for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) append(index);
    program_.begin(Phase::timed);
  }

  [[nodiscard]] PartitionedStep take(std::span<const ValueId> gradients) && {
    std::vector<ValueId> of_all;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      for (const ValueId id : gradients) of_all.push_back(of_rank(rank)[at(id)]);
    }
    return {std::move(program_), std::move(of_all)};
  }

 private:
  /// A value, and the axis of its cut; -1: whole, -2: of the ranks' experts.
  using Conversion = std::pair<ValueId, int>;
  static Conversion conversion(ValueId id, const MaybeCut& wanted) {
    return {id, !wanted ? -1 : wanted->of_experts ? -2 : wanted->axis};
  }

  [[nodiscard]] std::vector<ValueId>& of_rank(int rank) { return now_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::string label_of(ValueId id, const char* suffix) {
    const TensorSpec& spec = step_.spec(id);
    return program_.unique_name(
        name_on_rank(std::string(spec.global_name()) + suffix, spec.placement.rank, axis_.each()));
  }
  [[nodiscard]] RankGroup group_of(ValueId id) const { return axis_.across(step_.spec(id).placement.rank); }
  [[nodiscard]] std::vector<ValueId> on_all(ValueId id) {
    std::vector<ValueId> all;
    for (int rank = 0; rank < options_.ranks; ++rank) all.push_back(of_rank(rank)[at(id)]);
    return all;
  }
  [[nodiscard]] AxisSpread part(int rank, const Cut& cut) const {
    return {AxisSpread::Kind::sharded, 0, cut.axis, rank, options_.ranks, cut.sections};
  }

  /// The counterpart of a value of the step before any op has run.
  ValueId value_on(int rank, ValueId id) {
    const Value& value = step_.value(id);
    if (plan_.is_gathered_view(id)) return {};
    TensorSpec spec = value.spec;
    axis_.move(spec, rank);
    spec.name = program_.unique_name(spec.name);
    const MaybeCut cut = plan_.as_made(id);
    if (cut && !cut->of_experts) spec.placement.spread.push_back(part(rank, *cut));
    if (plan_.is_addend(id))
      spec.placement.spread.push_back({AxisSpread::Kind::partial, 0, -1, rank, options_.ranks, {}});
    const auto replicas = std::ranges::find(spec.placement.spread, AxisSpread::no_axis_yet, &AxisSpread::mesh_axis);
    if (options_.has_own_batches && value.source && !cut && replicas != spec.placement.spread.end())
      spec.placement.spread.insert(replicas + 1, part(rank, {replicas->tensor_axis}));
    if (value.updates) {
      const ValueId older = of_rank(rank)[at(*value.updates)];
      // If the older version will be scattered, this one is made then.
      if (plan_.is_scattered(*value.updates) || older.index < 0) return {};
      return program_.update(older, spec.name, std::move(spec.placement.spread));
    }
    if (value.part_of) {
      const std::int64_t first = first_in_whole(id, &spec) - first_in_whole(*value.part_of, nullptr);
      return program_.part(of_rank(rank)[at(*value.part_of)], std::move(spec), first);
    }
    if (cut) {
      const bool has_views = step_.values_in(value.storage).size() > 1;  // which cut_plan.h places by rows
      if (has_views ? !is_row_major(spec) : !is_dense(spec) || !spec.layout.blocks.empty())
        throw ProgramError("partition: " + step_.spec(id).to_string() + " is cut but not row-major");
      shrink(spec, *cut, options_.ranks);
    }
    return value.source ? program_.add(std::move(spec)) : program_.reserve(std::move(spec));
  }

  /// The first element of a view in a rank's part of its whole; changes `spec` to that view's.
  std::int64_t first_in_whole(ValueId id, TensorSpec* spec) {
    const ValueId whole = whole_of(step_, id);
    const std::int64_t first = view_of(step_, id).first;
    const MaybeCut cut = plan_.as_made(whole);
    if (id == whole || !cut) return first;
    TensorSpec view = step_.spec(id);
    const std::int64_t there = shrink_view(step_.spec(whole), *cut, options_.ranks, *plan_.cut(id), first, view);
    if (spec != nullptr) {
      spec->shape = view.shape;
      spec->layout = view.layout;
    }
    return there;
  }

  void append(int index) {
    const OpCall& call = step_.op(index);
    const OpSharding& sharding = plan_.sharding(index);
    program_.begin(call.phase);
    if (call.kind == gradient_norm_kind) return append_norm(call);
    if (call.kind == cross_entropy_forward_kind && sharding.inputs[0]) return append_cross_entropy(call, sharding);
    std::vector<std::vector<ValueId>> inputs;
    if (options_.spreads_experts) exchange_tokens(call, sharding);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) inputs.push_back(as(call.inputs[i], sharding.inputs[i]));
    for (int rank = 0; rank < options_.ranks; ++rank) {
      OpCall mine = call;
      for (std::size_t i = 0; i < inputs.size(); ++i) mine.inputs[i] = inputs[i][static_cast<std::size_t>(rank)];
      for (ValueId& id : mine.outputs) {
        ValueId& there = of_rank(rank)[at(id)];
        if (there.index < 0) there = newer_version(rank, id);
        id = there;
      }
      if (sharding.bias_on_first && rank > 0) leave_out_bias(mine);
      if (call.kind == embedding_forward_kind && sharding.inputs[0]) keep_own_rows(mine, call.inputs[0], rank);
      if (call.kind == embedding_backward_kind && sharding.outputs[0]) keep_own_rows(mine, call.outputs[0], rank);
      if (call.kind == cross_entropy_backward_kind && sharding.inputs[0]) mine.attributes = own_classes(call, rank);
      if (const std::optional<int> of_step = rank_of(step_, call)) {
        mine.label = axis_.label(call.label, *of_step, rank);
      } else {
        mine.group = mine.held = axis_.group(call.group, rank);
        mine.label = axis_.label(call.label, rank);
      }
      program_.append(std::move(mine));
    }
    for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum})
      reduce(call, sharding, reduction);
    if (options_.spreads_experts && options_.reduction == Reduction::average) average_over_batches(call);
  }

  ValueId newer_version(int rank, ValueId id) {
    const ValueId older = of_rank(rank)[at(*step_.value(id).updates)];
    TensorSpec spec = step_.spec(id);
    axis_.move(spec, rank);
    return program_.update(older, program_.unique_name(spec.name));
  }

  static void leave_out_bias(OpCall& product) {
    Gemm gemm = product.attributes.as<Gemm>();
    const auto bias = position_of(gemm_kind.inputs, product.attributes, "bias");
    product.inputs.erase(product.inputs.begin() + static_cast<std::ptrdiff_t>(*bias));
    gemm.bias = false;
    product.attributes = gemm;
  }

  void keep_own_rows(OpCall& embedding, ValueId table, int rank) const {
    const std::int64_t rows = step_.spec(table).shape[0];
    TableRows own = embedding.attributes.as<TableRows>();
    own.first = rank * (rows / options_.ranks);
    own.vocabulary = rows;
    embedding.attributes = own;
  }

  [[nodiscard]] CrossEntropy own_classes(const OpCall& call, int rank) const {
    CrossEntropy own = call.attributes.as<CrossEntropy>();
    own.classes = step_.spec(call.inputs[0]).shape[1];
    own.first = rank * (own.classes / options_.ranks);
    return own;
  }

  /// Gradients of experts are sums over the batches of all ranks.
  void average_over_batches(const OpCall& call) {
    for (const ValueId id : call.outputs) {
      if (!plan_.is_gradient(id) || !plan_.cut(id)) continue;
      for (int rank = 0; rank < options_.ranks; ++rank) {
        ValueId& gradient = of_rank(rank)[at(id)];
        const std::string label = program_.unique_name(program_.spec(gradient).name + ".average");
        const ValueId averaged = program_.update(gradient, label);
        program_.append({scale_kind, Scale{1.0 / options_.ranks}, options_.math, {gradient}, {averaged}, label});
        gradient = averaged;
      }
    }
  }

  /// Whether it is quantize's largest element of a part that no op reads, as when amax computed the scale before.
  [[nodiscard]] bool is_unread_candidate(ValueId id, Reduction reduction) const {
    return reduction == Reduction::maximum && step_.readers(id).empty();
  }

  void reduce(const OpCall& call, const OpSharding& sharding, Reduction reduction) {
    std::map<int, std::vector<ValueId>> together;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (sharding.addends[i] != reduction || is_unread_candidate(call.outputs[i], reduction)) continue;
      if (plan_.is_scattered(call.outputs[i])) {
        scatter(call, call.outputs[i], reduction);
      } else {
        together[step_.spec(call.outputs[i]).placement.rank].push_back(call.outputs[i]);
      }
    }
    for (const auto& [of_step, ids] : together) {
      std::vector<ValueId> all;
      for (int rank = 0; rank < options_.ranks; ++rank) {
        for (const ValueId id : ids) all.push_back(of_rank(rank)[at(id)]);
      }
      const std::vector<ValueId> reduced =
          all_reduce(program_, {options_.ranks, reduction}, options_.math,
                     program_.unique_name(call.label + ".all_reduce"), all, /*in_place=*/true, axis_.across(of_step));
      auto next = reduced.begin();
      for (int rank = 0; rank < options_.ranks; ++rank) {
        for (const ValueId id : ids) of_rank(rank)[at(id)] = *next++;
      }
    }
  }

  void scatter(const OpCall& call, ValueId id, Reduction reduction) {
    TensorSpec rows = step_.spec(id);
    if (const MaybeCut& cut = plan_.cut(id)) shrink(rows, *cut, options_.ranks);
    const std::vector<ValueId> made = reduce_scatter(program_, {options_.ranks, reduction}, options_.math,
                                                     program_.unique_name(call.label + ".reduce_scatter"), on_all(id),
                                                     /*in_place=*/false, group_of(id), rows.shape);
    for (int rank = 0; rank < options_.ranks; ++rank) of_rank(rank)[at(id)] = made[static_cast<std::size_t>(rank)];
  }

  std::vector<ValueId> as(ValueId id, const MaybeCut& wanted) {
    const MaybeCut& cut = plan_.cut(id);
    if (plan_.is_gathered_view(id) && of_rank(0)[at(id)].index < 0) view_gathered(id);
    if (cut == wanted) return on_all(id);
    const auto [made, is_new] = converted_.try_emplace(conversion(id, wanted));
    if (!is_new) return made->second;
    if (!cut && !wanted->of_experts && wanted->sections.empty()) return made->second = sliced(id, *wanted);
    if (!wanted && *cut == Cut{0} && is_row_major(step_.spec(id))) return made->second = gathered(id);
    throw ProgramError("partition: '" + step_.spec(id).name + "' is " + text(cut) + " where an op needs it " +
                       text(wanted));
  }

  static bool is_row_major(const TensorSpec& spec) { return spec.layout.is_row_major(spec.shape); }

  static std::string text(const MaybeCut& cut) {
    if (!cut) return "whole";
    if (cut->of_experts) return "of the ranks' experts";
    std::string in = cut->sections.empty() ? "" : " in " + std::to_string(cut->sections.size()) + " sections";
    return "cut along axis " + std::to_string(cut->axis) + in;
  }

  std::vector<ValueId> sliced(ValueId id, const Cut& cut) {
    if (!divides(step_.spec(id), cut, options_.ranks))
      throw ProgramError("partition: " + step_.spec(id).to_string() + " cannot be cut along axis " +
                         std::to_string(cut.axis) + " for " + std::to_string(options_.ranks) + " ranks");
    std::vector<ValueId> slices;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      TensorSpec spec = step_.spec(id);
      std::vector<std::int64_t> extents(spec.shape.extents().begin(), spec.shape.extents().end());
      const auto axis = static_cast<std::size_t>(cut.axis);
      extents[axis] /= options_.ranks;
      const std::int64_t first = rank * extents[axis] * spec.layout.strides[axis];
      spec.shape = Shape(std::move(extents));
      axis_.move(spec, rank);
      spec.name = program_.unique_name(
          name_on_rank(std::string(spec.global_name()) + ".part", spec.placement.rank, axis_.ranks()));
      spec.placement.spread.push_back(part(rank, cut));
      slices.push_back(program_.part(of_rank(rank)[at(id)], std::move(spec), first));
    }
    return slices;
  }

  void view_gathered(ValueId id) {
    const std::vector<ValueId> whole = as(whole_of(step_, id), {});
    for (int rank = 0; rank < options_.ranks; ++rank) {
      TensorSpec spec = step_.spec(id);
      axis_.move(spec, rank);
      of_rank(rank)[at(id)] =
          program_.part(whole[static_cast<std::size_t>(rank)], std::move(spec), view_of(step_, id).first);
    }
  }

  std::vector<ValueId> gathered(ValueId id) {
    return all_gather(program_, {options_.ranks}, label_of(id, ".all_gather"), on_all(id), group_of(id),
                      step_.spec(id).shape);
  }

  // For rows between group_tokens and their return: dispatches rows, with sizes, that an op needs on the experts'
  // ranks, and returns those it needs on the tokens' ranks.
  void exchange_tokens(const OpCall& call, const OpSharding& sharding) {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const ValueId id = call.inputs[i];
      const MaybeCut &cut = plan_.cut(id), &wanted = sharding.inputs[i];
      if (wanted == cut || converted_.contains(conversion(id, wanted))) continue;
      if (!cut && wanted->of_experts) {
        const ValueId sizes = call.input("sizes");
        DispatchedTokens made = dispatch_tokens(program_, {options_.ranks}, label_of(id, ".dispatch"), on_all(id),
                                                on_all(sizes), group_of(id));
        converted_[conversion(id, wanted)] = std::move(made.y);
        converted_.emplace(conversion(sizes, rows_of_experts), std::move(made.own_sizes));
      } else if (cut && cut->of_experts && !wanted && position_of(call.kind.inputs, call.attributes, "places")) {
        converted_[conversion(id, wanted)] = return_tokens(program_, {options_.ranks}, label_of(id, ".return"),
                                                           on_all(id), on_all(sizes_of(call)), group_of(id));
      }
    }
  }

  /// The sizes of the groups whose places the call reads.
  [[nodiscard]] ValueId sizes_of(const OpCall& call) const {
    const std::optional<int> grouping = step_.value(call.input("places")).producer;
    if (!grouping || step_.op(*grouping).kind != group_tokens_kind)
      throw ProgramError("partition: '" + step_.spec(call.input("places")).name + "' of op '" + call.label +
                         "' is not made by group_tokens; expected the places that it makes");
    return step_.op(*grouping).output("sizes");
  }

  // Each rank's norm of its cut gradients is gathered and counts as one more gradient, so that the norm of norms covers
  // all parts, and gradients that all ranks have count once.
  void append_norm(const OpCall& call) {
    std::vector<ValueId> cut, alike;
    for (const ValueId id : call.inputs) (plan_.cut(id) ? cut : alike).push_back(id);
    std::vector<ValueId> norms;
    const int of_step = step_.spec(call.outputs[0]).placement.rank;
    for (int rank = 0; rank < options_.ranks && !cut.empty(); ++rank) {
      std::vector<ValueId> own;
      for (const ValueId id : cut) own.push_back(of_rank(rank)[at(id)]);
      const std::string label = program_.unique_name(axis_.label(call.label, of_step, rank, ".parts"));
      norms.push_back(gradient_norm(program_, call.math, label, own));
    }
    if (!cut.empty())
      norms = all_gather(program_, {options_.ranks}, program_.unique_name(call.label + ".of_ranks"), norms,
                         axis_.across(of_step));
    for (int rank = 0; rank < options_.ranks; ++rank) {
      OpCall mine = call;
      mine.inputs.clear();
      if (!cut.empty()) mine.inputs.push_back(norms[static_cast<std::size_t>(rank)]);
      for (const ValueId id : alike) mine.inputs.push_back(of_rank(rank)[at(id)]);
      mine.outputs = {of_rank(rank)[at(call.outputs[0])]};
      mine.label = axis_.label(call.label, of_step, rank);
      program_.append(std::move(mine));
    }
  }

  // Gathers the ranks' partial results; every rank then computes the same loss.
  void append_cross_entropy(const OpCall& call, const OpSharding& sharding) {
    const std::vector<ValueId> logits = as(call.inputs[0], sharding.inputs[0]), labels = as(call.inputs[1], {});
    const int of_step = step_.spec(call.outputs[0]).placement.rank;
    std::vector<ValueId> lses, scores;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const auto at_rank = static_cast<std::size_t>(rank);
      const CrossEntropyPartial part = cross_entropy_partial(
          program_, call.math, program_.unique_name(axis_.label(call.label, of_step, rank, ".partial")),
          logits[at_rank], labels[at_rank], own_classes(call, rank));
      lses.push_back(part.lse);
      scores.push_back(part.score);
    }
    const Shape of_all{options_.ranks, step_.spec(call.inputs[1]).shape[0]};
    const auto gather = [&](const char* suffix, std::vector<ValueId>& parts) {
      parts = all_gather(program_, {options_.ranks}, program_.unique_name(call.label + suffix), parts,
                         axis_.across(of_step), of_all);
    };
    gather(".lse.all_gather", lses);
    gather(".score.all_gather", scores);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const auto at_rank = static_cast<std::size_t>(rank);
      OpCall mine = call;
      mine.kind = cross_entropy_combine_kind;
      mine.inputs = {lses[at_rank], scores[at_rank], labels[at_rank]};
      for (ValueId& id : mine.outputs) id = of_rank(rank)[at(id)];
      mine.label = axis_.label(call.label, of_step, rank);
      program_.append(std::move(mine));
    }
  }

  const Program& step_;
  const Partition& options_;
  OuterAxis axis_;
  CutPlan plan_;
  Program program_;
  std::vector<std::vector<ValueId>> now_;  // by rank: the latest version of each value of the step
  std::map<Conversion, std::vector<ValueId>> converted_;
};

PartitionedStep partitioned(const Program& step, const Partition& options, const Cuts& cuts,
                            std::span<const ValueId> gradients) {
  if (options.ranks == 1) return {step, {gradients.begin(), gradients.end()}};
  if (step.mesh().ranks() != 1 && !options.has_own_batches)
    throw ProgramError("partition: the step has " + std::to_string(step.mesh().ranks()) + " ranks; expected one");
  if (options.has_own_batches) (void)mask_offsets(step, "partition");
  return Shares(step, options, cuts, gradients).take(gradients);
}

}  // namespace

PartitionedStep tensor_parallel(const Program& step, const TensorParallel& options, const Cuts& cuts,
                                std::span<const ValueId> gradients) {
  return partitioned(
      step, {.axis = "tp", .ranks = options.ranks, .scatters_tokens = options.scatters_tokens, .math = options.math},
      cuts, gradients);
}

PartitionedStep fully_sharded(const Program& step, const FullySharded& options, const Cuts& cuts,
                              std::span<const ValueId> gradients) {
  return partitioned(step,
                     {.axis = "fsdp",
                      .ranks = options.ranks,
                      .has_own_batches = true,
                      .reduction = options.reduction,
                      .math = options.math},
                     cuts, gradients);
}

PartitionedStep expert_parallel(const Program& step, const ExpertParallel& options, const Cuts& cuts,
                                std::span<const ValueId> gradients) {
  return partitioned(step,
                     {.axis = "ep",
                      .ranks = options.ranks,
                      .has_own_batches = true,
                      .spreads_experts = true,
                      .reduction = options.reduction,
                      .math = options.math},
                     cuts, gradients);
}

}  // namespace gpubench
