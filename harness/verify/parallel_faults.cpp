#include "harness/verify/parallel_faults.h"

#include <algorithm>
#include <functional>
#include <set>

#include "reference/ops/attention.h"
#include "reference/ops/collective.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

using namespace faulty;

bool has_axis(const Program& step, std::string_view name) {
  return std::ranges::any_of(step.mesh().axes(),
                             [&](const MeshAxis& axis) { return axis.name == name && axis.ranks > 1; });
}

bool is_in_place(const Program& step, const OpCall& call) {
  return std::ranges::all_of(call.outputs, [&](ValueId id) { return step.value(id).updates.has_value(); });
}

using Picks = std::function<bool(const Program& step, int op)>;

/// Whether the op writes a gradient that the optimizer reads.
bool is_of_parameters(const Program& step, const OpCall& call) {
  const StorageId storage = step.value(call.outputs.front()).storage;
  return std::ranges::any_of(step.values_in(storage), [&](ValueId id) {
    return std::ranges::any_of(step.readers(id),
                               [&](int reader) { return step.op(reader).kind == gradient_norm_kind; });
  });
}

/// By op: whether it depends on the gradient of the loss.
std::vector<bool> follows_loss(const Program& step) {
  std::vector<bool> behind;
  std::set<StorageId> made;
  for (const OpCall& call : step.ops()) {
    behind.push_back(call.kind == cross_entropy_backward_kind || std::ranges::any_of(call.inputs, [&](ValueId id) {
                       return made.contains(step.value(id).storage);
                     }));
    if (!behind.back()) continue;
    for (const ValueId id : call.outputs) made.insert(step.value(id).storage);
  }
  return behind;
}

/// By op: whether the losses depend on it; not for ops that the backward recomputes.
std::vector<bool> before_the_loss(const Program& step) {
  std::vector<bool> before(step.ops().size());
  std::set<StorageId> needed;
  for (std::size_t at = step.ops().size(); at-- > 0;) {
    const OpCall& call = step.ops()[at];
    before[at] = makes_cross_entropy(call.kind) ||
                 std::ranges::any_of(call.outputs, [&](ValueId id) { return needed.contains(step.value(id).storage); });
    if (!before[at]) continue;
    for (const ValueId id : call.inputs) needed.insert(step.value(id).storage);
  }
  return before;
}

enum class Of { activations, their_gradients, parameters };

bool is_of(const Program& step, int op, Of what) {
  if (!follows_loss(step)[static_cast<std::size_t>(op)])
    return what == Of::activations && before_the_loss(step)[static_cast<std::size_t>(op)];
  return is_of_parameters(step, step.op(op)) ? what == Of::parameters : what == Of::their_gradients;
}

Picks reductions(std::string_view axis, Of what) {
  return [=](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == all_reduce_kind && axis_of(step, call) == axis && is_in_place(step, call) &&
           is_of(step, op, what);
  };
}

struct FaultMaker {
  ParallelFaultClass described;
  Picks picks;  ///< ops where the fault is possible; none for faults of sources
  std::function<std::optional<Program>(const Program& step, int op)> make;
};

bool reads_passed_on(const Program& step, const OpCall& call) {
  return std::ranges::any_of(call.inputs, [&](ValueId id) {
    const std::optional<int> producer = step.value(id).producer;
    return producer && step.op(*producer).kind == send_recv_kind;
  });
}

std::vector<FaultMaker> makers() {
  const auto left_out = [](const Program& step, int op) { return std::optional(without(step, op)); };
  const auto otherwise = [](const Program& step, int op) { return std::optional(reduced_otherwise(step, op)); };
  const auto opposite = [](const Program& step, int op) { return std::optional(in_opposite_order(step, op)); };
  const auto twice = [](const Program& step, int op) { return std::optional(reduced_twice(step, op)); };
  const auto moves = [](const OpKind& kind, std::string_view axis, Of what) -> Picks {
    return [=](const Program& step, int op) {
      const OpCall& call = step.op(op);
      const auto in_any_order = [&](int reader) { return step.op(reader).kind == cross_entropy_combine_kind; };
      return call.kind == kind && axis_of(step, call) == axis && is_of(step, op, what) &&
             std::ranges::none_of(step.readers(call.outputs.front()), in_any_order);
    };
  };
  const auto masks = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == attention_forward_kind && call.attributes.as<Attention>().causal && has_axis(step, "cp") &&
           is_of(step, op, Of::activations);
  };
  const auto zeros = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == scale_kind && call.attributes.as<Scale>().factor == 0.0;
  };
  // Queries see later keys too.
  const auto no_mask = [](const Program& step, int op) {
    return std::optional(with<Attention>(step, op, [](Attention& attention) { attention.causal = false; }));
  };
  // The first rank's keys or values instead of zeros.
  const auto no_zeros = [](const Program& step, int op) {
    return std::optional(with<Scale>(step, op, [](Scale& scale) { scale = {}; }));
  };
  const auto look_ups = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == embedding_forward_kind && call.attributes.as<TableRows>().first > 0;
  };
  const auto first_rows = [](const Program& step, int op) {
    return std::optional(as_on_the_first_rank<TableRows>(step, op));
  };
  const auto class_gradients = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == cross_entropy_backward_kind && call.attributes.as<CrossEntropy>().classes > 0;
  };
  const auto other_class_gradients = [class_gradients](const Program& step, int op) {
    return class_gradients(step, op) && step.op(op).attributes.as<CrossEntropy>().first > 0;
  };
  const auto first_classes = [](const Program& step, int op) {
    return std::optional(as_on_the_first_rank<CrossEntropy>(step, op));
  };
  const auto in_a_ring = [](const Program& step, int op) {
    return step.op(op).kind == attention_forward_kind && reads_passed_on(step, step.op(op)) &&
           is_of(step, op, Of::activations);
  };
  const auto back_from_a_ring = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return (call.kind == copy_kind || call.kind == reorder_kind) && has_axis(step, "cp") &&
           reads_passed_on(step, call) && is_of(step, op, Of::their_gradients);
  };
  const auto not_passed_on = [](const Program& step, int op) { return std::optional(before_exchange(step, op)); };
  const auto sends = [](Of what) -> Picks {
    return [=](const Program& step, int op) {
      return step.op(op).kind == broadcast_kind && has_axis(step, "pp") && is_of(step, op, what);
    };
  };
  const auto of_tied_weights = [](const Program& step, int op) {
    return step.op(op).kind == add_kind && has_axis(step, "pp") && is_of(step, op, Of::parameters);
  };
  const auto one_use = [](const Program& step, int op) { return std::optional(of_one_use(step, op)); };
  const auto averages = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == scale_kind && is_in_place(step, call) && is_of(step, op, Of::parameters);
  };
  const auto with_bias = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == gemm_kind && call.attributes.as<Gemm>().bias && is_of(step, op, Of::activations) &&
           std::ranges::any_of(step.spec(call.outputs.front()).placement.spread,
                               [](const AxisSpread& spread) { return spread.kind == AxisSpread::Kind::partial; });
  };
  // The norm of all gradients, after those of the ranks' parts.
  const auto norms = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    if (call.kind != gradient_norm_kind) return false;
    const std::optional<int> producer =
        step.value(step.values_in(step.value(call.inputs.front()).storage).front()).producer;
    return producer && step.op(*producer).kind == all_gather_kind;
  };
  const auto optimizers = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return (call.kind == adamw_kind || call.kind == sgd_kind) && step.spec(call.outputs.front()).placement.rank > 0;
  };
  const auto sums = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == triad_kind && is_in_place(step, call);
  };
  const auto losses = [](const Program& step, int op) {
    const OpCall& call = step.op(op);
    return call.kind == cross_entropy_backward_kind && call.attributes.as<CrossEntropy>().given_count;
  };
  const auto by_own_count = [](const Program& step, int op) { return std::optional(mean_of_own_labels(step, op)); };
  using enum StepStage;
  using enum DivergenceKind;
  // Several kinds for a fault in all replicas, and for a fault in one, which is averaged with correct replicas.
  return {
      {{"activations not reduced", "tp", loss, {other}}, reductions("tp", Of::activations), left_out},
      {{"activations averaged, not summed", "tp", loss, {other}}, reductions("tp", Of::activations), otherwise},
      {{"activations reduced twice", "tp", loss, {other}}, reductions("tp", Of::activations), twice},
      {{"gradients of activations not reduced", "tp", gradient, {unalike, addend, other}},
       reductions("tp", Of::their_gradients),
       left_out},
      {{"bias added by two ranks", "tp", loss, {other}}, with_bias, bias_twice},
      {{"tokens looked up in the rows of another rank", "tp", loss, {other}}, look_ups, first_rows},
      {{"softmax of the classes that a rank has", "tp", gradient, {other, addend, unalike}},
       class_gradients,
       softmax_of_own_classes},
      {{"labels taken for classes of another rank", "tp", gradient, {other, addend, unalike}},
       other_class_gradients,
       first_classes},
      {{"clipped by the norm of a rank's parts", "tp", norm, {other}}, norms, norm_of_own_parts},
      {{"what all ranks have counted into the norm twice", "tp", norm, {other}}, norms, norm_counts_all_ranks},
      {{"gradients of norms not reduced", "sp", gradient, {addend, unalike}},
       reductions("tp", Of::parameters),
       left_out},
      {{"gradients of norms averaged, not summed", "sp", gradient, {times, other}},
       reductions("tp", Of::parameters),
       otherwise},
      {{"gradients of norms reduced twice", "sp", gradient, {times, other}}, reductions("tp", Of::parameters), twice},
      {{"tokens gathered in another order", "sp", loss, {other}},
       moves(all_gather_kind, "tp", Of::activations),
       opposite},
      {{"tokens scattered in another order", "sp", loss, {other}},
       moves(reduce_scatter_kind, "tp", Of::activations),
       opposite},
      {{"gradients not reduced", "dp", gradient, {addend}}, reductions("dp", Of::parameters), left_out},
      {{"gradients summed, not averaged", "dp", gradient, {times, unalike, other}},
       reductions("dp", Of::parameters),
       otherwise},
      {{"gradients reduced over the ranks of another axis", "dp, tp", gradient, {addend, other, unalike}},
       reductions("dp", Of::parameters),
       over_the_wrong_ranks},
      {{"mean over the labels that a part has", "dp, micro-batches", gradient, {other, unalike}}, losses, by_own_count},
      {{"a micro-batch left out on one rank", "dp, micro-batches", gradient, {other, unalike}}, sums, left_out},
      {{"optimizer left out on one rank", "dp, tp", weight, {unalike, other}}, optimizers, left_out},
      {{"tokens sent to the experts of another rank", "ep", loss, {other}},
       moves(dispatch_tokens_kind, "ep", Of::activations),
       opposite},
      {{"tokens back from the experts of another rank", "ep", loss, {other}},
       moves(return_tokens_kind, "ep", Of::activations),
       opposite},
      {{"tokens back by the counts of another layer", "ep", loss, {other}},
       moves(return_tokens_kind, "ep", Of::activations),
       by_counts_of_another_layer},
      {{"gradients sent to the experts of another rank", "ep", gradient, {other, unalike}},
       moves(dispatch_tokens_kind, "ep", Of::their_gradients),
       opposite},
      {{"gradients back from the experts of another rank", "ep", gradient, {other, unalike}},
       moves(return_tokens_kind, "ep", Of::their_gradients),
       opposite},
      {{"gradients of experts summed, not averaged", "ep", gradient, {times, other}}, averages, left_out},
      {{"gradients of what all ranks have not reduced", "ep", gradient, {addend}},
       reductions("ep", Of::parameters),
       left_out},
      {{"activations of another micro-batch sent", "pp", loss, {other}},
       sends(Of::activations),
       of_the_last_micro_batch},
      {{"gradients of another micro-batch sent", "pp", gradient, {other, unalike}},
       sends(Of::their_gradients),
       of_the_last_micro_batch},
      {{"gradient of one use of tied weights", "pp", gradient, {other, addend, unalike}}, of_tied_weights, one_use},
      {{"keys and values gathered in another order", "cp", loss, {other}},
       moves(all_gather_kind, "cp", Of::activations),
       opposite},
      {{"gradients of keys and values in another order", "cp", gradient, {other}},
       moves(reduce_scatter_kind, "cp", Of::their_gradients),
       opposite},
      {{"queries that see later keys", "cp", loss, {other}}, masks, no_mask},
      {{"gradients of keys that a rank does not see", "cp", gradient, {other}}, zeros, no_zeros},
      {{"gradients of parts of sequences not reduced", "cp", gradient, {addend}},
       reductions("cp", Of::parameters),
       left_out},
      {{"gradients of parts of sequences summed, not averaged", "cp", gradient, {times, unalike, other}},
       reductions("cp", Of::parameters),
       otherwise},
      {{"every part of a sequence begins at the first position", "cp", loss, {other}}, {}, {}},
      {{"keys of the step before in a ring", "cp", loss, {other}}, in_a_ring, not_passed_on},
      {{"gradients of keys a step away from home", "cp", gradient, {other}}, back_from_a_ring, not_passed_on},
      {{"packed weight cut in one piece", "tp", loss, {other}}, {}, {}},
      {{"the same batch on all replicas", "dp", loss, {other}}, {}, {}},
      {{"a replica begins with other weights", "dp", loss, {other}}, {}, {}},
  };
}

struct SourceFault {
  std::string_view fault_class;
  std::function<bool(const Program& step, const TensorSpec& spec)> picks;
  std::function<void(const Program& step, TensorSpec& spec)> change;
  bool on_all_ranks = true;
};

/// Whether an op other than an optimizer reads it. The bias that one rank adds exists on all ranks.
bool is_computed_with(const Program& step, ValueId source) {
  return std::ranges::any_of(step.readers(source), [&](int reader) {
    const OpKind& kind = step.op(reader).kind;
    return kind != adamw_kind && kind != sgd_kind;
  });
}

std::vector<SourceFault> source_faults() {
  const auto is_over = [](const Program& step, const AxisSpread& spread, std::string_view axis) {
    return spread.mesh_axis >= 0 && step.mesh().axes()[static_cast<std::size_t>(spread.mesh_axis)].name == axis;
  };
  const auto over_dp = [=](const Program& step, const AxisSpread& spread) { return is_over(step, spread, "dp"); };
  return {
      {"packed weight cut in one piece",
       [](const Program&, const TensorSpec& spec) {
         return spec.role == Role::parameter &&
                std::ranges::any_of(spec.placement.spread, [](const AxisSpread& s) { return !s.sections.empty(); });
       },
       [](const Program&, TensorSpec& spec) {
         for (AxisSpread& spread : spec.placement.spread) spread.sections.clear();
       }},
      {"the same batch on all replicas",
       [over_dp](const Program& step, const TensorSpec& spec) {
         return spec.role == Role::input &&
                std::ranges::any_of(spec.placement.spread, [&](const AxisSpread& s) { return over_dp(step, s); });
       },
       [over_dp](const Program& step, TensorSpec& spec) {
         for (AxisSpread& spread : spec.placement.spread) {
           if (over_dp(step, spread)) spread.part = 0;
         }
       }},
      {"every part of a sequence begins at the first position",
       [is_over](const Program& step, const TensorSpec& spec) {
         const std::vector<AxisSpread>& spreads = spec.placement.spread;  // several for a batch
         return spec.role == Role::input && spreads.size() == 1 && is_over(step, spreads.front(), "cp");
       },
       [](const Program&, TensorSpec& spec) { spec.placement.spread.front().part = 0; }},
      {"a replica begins with other weights",
       [](const Program& step, const TensorSpec& spec) {
         return spec.role == Role::parameter && has_axis(step, "dp") && spec.fill.kind == Fill::Kind::normal;
       },
       [](const Program&, TensorSpec& spec) { spec.fill.scale *= 2.0; },
       /*on_all_ranks=*/false},
  };
}

/// At most `most` of `all`: the first, the last, and evenly spaced ones between.
template <class T>
std::vector<T> evenly_chosen(const std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[most == 1 ? 0 : i * (all.size() - 1) / (most - 1)]);
  return some;
}

const std::vector<FaultMaker>& all_makers() {
  static const std::vector<FaultMaker> all = makers();
  return all;
}

}  // namespace

std::span<const ParallelFaultClass> parallel_fault_classes() {
  static const std::vector<ParallelFaultClass> classes = [] {
    std::vector<ParallelFaultClass> all;
    for (const FaultMaker& maker : all_makers()) all.push_back(maker.described);
    return all;
  }();
  return classes;
}

std::vector<FaultyStep> faulty_steps(const Program& step, std::size_t fault_class, std::size_t most) {
  const FaultMaker& maker = all_makers().at(fault_class);
  std::vector<FaultyStep> faulty;
  if (maker.picks) {
    std::vector<int> places;
    for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
      if (step.op(index).phase == Phase::timed && maker.picks(step, index)) places.push_back(index);
    }
    for (const int place : evenly_chosen(places, most)) {
      if (std::optional<Program> program = maker.make(step, place))
        faulty.push_back({fault_class, step.op(place).label, std::move(*program)});
    }
    return faulty;
  }
  for (const SourceFault& fault : source_faults()) {
    if (fault.fault_class != maker.described.name) continue;
    std::vector<std::string> places;  // names, of all ranks or of one
    const int last = step.mesh().ranks() - 1;
    for (int index = 0; index < static_cast<int>(step.values().size()); ++index) {
      const Value& value = step.value({index});
      const TensorSpec& spec = value.spec;
      if (!value.source || value.part_of || spec.placement.rank != last || !fault.picks(step, spec)) continue;
      if (!is_computed_with(step, {index})) continue;
      places.emplace_back(fault.on_all_ranks ? spec.global_name() : std::string_view(spec.name));
    }
    for (const std::string& place : evenly_chosen(places, most)) {
      faulty.push_back({fault_class, place,
                        edited(step, {.place = [&](TensorSpec& spec) {
                                 if (place == (fault.on_all_ranks ? spec.global_name() : std::string_view(spec.name)))
                                   fault.change(step, spec);
                               }})});
    }
  }
  return faulty;
}

}  // namespace gpubench
