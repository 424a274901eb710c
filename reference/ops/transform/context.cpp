#include "reference/ops/transform/batches.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/attention.h"
#include "reference/ops/dropout.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace {

constexpr int cp_axis = 0;

/// The replicas of a step, with attention extended over the ranks. Values keep their ids.
class Exchange {
 public:
  Exchange(const Program& replicas, const ContextParallel& options)
      : from_(replicas),
        options_(options),
        mask_offsets_(mask_offsets(replicas, "context_parallel")),
        program_(replicas.mesh()) {
    (void)copy_values(replicas, program_, [&](TensorSpec& spec) { place(spec); });
    for (const OpCall& call : replicas.ops()) append(call);
    program_.begin(Phase::timed);
  }
  [[nodiscard]] Program take() && { return std::move(program_); }

 private:
  /// Sets which tokens of each sequence a source has.
  void place(TensorSpec& spec) const {
    std::vector<AxisSpread>& spreads = spec.placement.spread;
    auto cut = std::ranges::find(spreads, cp_axis, &AxisSpread::mesh_axis);
    const bool is_batch = cut != spreads.end();
    if (!is_batch) {
      if (!options_.by_position.contains(spec.global_name())) return;
      const int part = from_.mesh().place(spec.placement.rank, cp_axis);
      cut = spreads.insert(spreads.begin(), {AxisSpread::Kind::sharded, cp_axis, 0, part, options_.ranks, {}});
    }
    if (mask_offsets_.contains(spec.global_name())) {  // one word per rank, not a row per token
      spreads.insert(spreads.begin(), Placement::shard(0).spread.front());
      return;
    }
    std::int64_t rows = spec.shape[0];  // rows of the sequences of one group along cp, divided by the ranks
    for (auto finer = cut + 1; finer != spreads.end(); ++finer) rows *= finer->tensor_axis == 0 ? finer->parts : 1;
    if (rows % options_.tokens != 0)
      throw ProgramError("context_parallel: " + spec.to_string() + " is not a whole number of sequences of " +
                         std::to_string(options_.tokens) + " tokens on each rank");
    cut->sections.assign(static_cast<std::size_t>(rows / options_.tokens), options_.tokens * options_.ranks);
    if (is_batch) spreads.insert(spreads.begin(), Placement::shard(0).spread.front());  // differs between replicas
  }

  void append(const OpCall& call) {
    program_.begin(call.phase);
    const bool is_forward = call.kind == attention_forward_kind;
    if (!is_forward && call.kind != attention_backward_kind) {
      program_.append(call);
      return;
    }
    if (call.attributes.as<Attention>().documents)
      throw ProgramError("context_parallel: '" + call.label +
                         "' is attention within documents, which is not supported");
    if (options_.ring && call.attributes.as<Attention>().window > 0)
      throw ProgramError("context_parallel: '" + call.label +
                         "' is attention within a window, which is not supported in a ring");
    const int rank = program_.spec(call.outputs.front()).placement.rank;
    const RankGroup group = from_.mesh().group(rank, std::span(&cp_axis, 1));
    const std::string label = call.label.substr(0, call.label.rfind('@'));
    std::vector<OpCall>& members = waiting_[{label, group[0]}];
    members.push_back(call);
    if (static_cast<int>(members.size()) < options_.ranks) return;
    const std::string name = name_on_rank(label, group[0], from_.mesh().ranks() / options_.ranks);
    options_.ring ? append_ring(members, group, name) : append_together(members, group, name);
    waiting_.erase({label, group[0]});
  }

  void append_together(std::span<const OpCall> calls, const RankGroup& group, const std::string& label) {
    const std::vector<ValueId> keys = gathered(calls, "k", group), values = gathered(calls, "v", group);
    std::vector<OpCall> mine(calls.begin(), calls.end());
    std::vector<std::vector<ValueId>> gradients(2);  // of keys, of values; by rank: of all tokens
    const bool is_backward = calls.front().kind == attention_backward_kind;
    for (int place = 0; place < options_.ranks; ++place) {
      OpCall& call = mine[static_cast<std::size_t>(place)];
      const std::int64_t seen = blocks_of(call, place) * options_.tokens;
      const ValueId all_keys = keys[static_cast<std::size_t>(place)],
                    all_values = values[static_cast<std::size_t>(place)];
      operand(call.inputs, call, call.kind.inputs, "k") = first_tokens(all_keys, seen);
      operand(call.inputs, call, call.kind.inputs, "v") = first_tokens(all_values, seen);
      if (is_backward) {
        for (const auto& [name, all, made] :
             {std::tuple{"dk", all_keys, &gradients[0]}, {"dv", all_values, &gradients[1]}}) {
          TensorSpec spec = program_.spec(all);
          spec.role = Role::gradient;
          spec.name = program_.unique_name("d(" + spec.name + ")");
          made->push_back(program_.reserve(std::move(spec)));
          operand(call.outputs, call, call.kind.outputs, name) = first_tokens(made->back(), seen);
        }
      }
      program_.append(call);
      if (!is_backward) continue;
      append_zeros(all_keys, gradients[0].back(), seen);
      append_zeros(all_values, gradients[1].back(), seen);
    }
    if (!is_backward) return;
    scatter(calls, "dk", gradients[0], group, label);
    scatter(calls, "dv", gradients[1], group, label);
  }

  /// Ranks whose tokens a rank sees: up to its own if causal, else all.
  [[nodiscard]] int blocks_of(const OpCall& call, int place) const {
    return call.attributes.as<Attention>().causal ? place + 1 : options_.ranks;
  }

  static ValueId& operand(std::vector<ValueId>& ids, const OpCall& call, std::string_view operands,
                          std::string_view name) {
    return ids[*position_of(operands, call.attributes, name)];
  }

  std::vector<ValueId> dense(std::span<const OpCall> calls, std::string_view name) {
    std::vector<ValueId> own;
    for (const OpCall& call : calls) own.push_back(call.input(name));
    for (ValueId& id : own) {
      const TensorSpec& its = program_.spec(id);
      if (its.layout.is_row_major(its.shape)) continue;
      id = reorder(program_, Layout::row_major(its.shape), program_.unique_name(its.name + ".dense"), id);
    }
    return own;
  }

  /// An input of all ranks, each [b, tokens, heads, width], gathered: [b, all tokens, heads, width].
  std::vector<ValueId> gathered(std::span<const OpCall> calls, std::string_view name, const RankGroup& group) {
    const auto [found, is_new] = gathered_.try_emplace(calls.front().input(name));
    if (!is_new) return found->second;
    const std::vector<ValueId> own = dense(calls, name);
    const TensorSpec spec = program_.spec(own.front());
    const std::string label(program_.spec(calls.front().input(name)).global_name());
    const std::int64_t b = spec.shape[0], row = spec.shape[2] * spec.shape[3], n = options_.ranks;
    const Shape whole{b, n * options_.tokens, spec.shape[2], spec.shape[3]};
    const Shape by_rank = b == 1 ? whole : Shape{n, b, options_.tokens * row};
    std::vector<ValueId> all =
        all_gather(program_, {options_.ranks}, program_.unique_name(label + ".all_gather"), own, group, by_rank);
    if (b > 1) {
      for (ValueId& id : all) {
        id = transpose(program_, {{1, 0, 2}}, program_.unique_name(program_.spec(id).name + ".by_sequence"), id);
        id = view(id, whole, 0);
      }
    }
    return found->second = std::move(all);
  }

  /// A row-major view shaped as `shape`; `stride`: of its first axis, unless it is dense.
  ValueId view(ValueId whole, const Shape& shape, std::int64_t first, std::int64_t stride = 0) {
    TensorSpec spec = program_.spec(whole);
    spec.name = program_.unique_name(spec.name + ".part");
    spec.shape = shape;
    spec.layout = Layout::row_major(shape);
    if (stride > 0) spec.layout.strides.front() = stride;
    return program_.part(whole, std::move(spec), first);
  }

  ValueId first_tokens(ValueId all, std::int64_t tokens) {
    const Shape shape = program_.spec(all).shape;
    if (tokens == shape[1]) return all;
    const auto [found, is_new] = first_tokens_.try_emplace(all);
    if (is_new) found->second = view(all, {shape[0], tokens, shape[2], shape[3]}, 0, shape[1] * shape[2] * shape[3]);
    return found->second;
  }

  /// Zeros the gradient for later tokens than a rank sees. `like`: as many finite elements.
  void append_zeros(ValueId like, ValueId gradient, std::int64_t seen) {
    const Shape shape = program_.spec(gradient).shape;
    const std::int64_t row = shape[2] * shape[3], all = shape[1] * row;
    if (seen == shape[1]) return;
    const Shape rest{shape[0], all - seen * row};
    const ValueId x = view(like, rest, seen * row, all);
    const ValueId y = view(gradient, rest, seen * row, all);
    const std::string label = program_.unique_name(program_.spec(gradient).name + ".zeros");
    program_.append({scale_kind, Scale{0.0}, options_.math, {x}, {y}, label});
  }

  /// Sums the ranks' gradients of all tokens, and scatters them by token.
  void scatter(std::span<const OpCall> calls, std::string_view name, std::vector<ValueId> all, const RankGroup& group,
               const std::string& label) {
    const Shape shape = program_.spec(all.front()).shape;
    const std::int64_t b = shape[0], n = options_.ranks, row = shape[2] * shape[3];
    if (b > 1) {
      for (ValueId& id : all) {
        const std::string turned = program_.unique_name(program_.spec(id).name + ".by_rank");
        id = transpose(program_, {{1, 0, 2}}, turned, view(id, {b, n, options_.tokens * row}, 0));
      }
    }
    const std::string scattered = program_.unique_name(label + "." + std::string(name) + ".reduce_scatter");
    const std::vector<ValueId> own =
        reduce_scatter(program_, {options_.ranks, Reduction::sum}, options_.math, scattered, all, /*in_place=*/false,
                       group, Shape{b, options_.tokens, shape[2], shape[3]});
    for (std::size_t i = 0; i < own.size(); ++i) put(own[i], calls[i].output(name));
  }

  void put(ValueId from, ValueId there) {
    const std::string copied = program_.unique_name(program_.spec(there).name + ".own");
    const TensorSpec& spec = program_.spec(there);
    if (spec.layout.is_row_major(spec.shape)) {
      program_.append({copy_kind, {}, Math{}, {from}, {there}, copied});
    } else {
      reorder_into(program_, copied, from, there);
    }
  }

  using OfRanks = std::vector<ValueId>;  // in the order of the group

  /// What the ranks have of an input at each step: first their own, then the previous rank's, and so on.
  const std::vector<OfRanks>& passed_on(std::span<const OpCall> calls, std::string_view name, const RankGroup& group) {
    const auto [found, is_new] = passed_on_.try_emplace(calls.front().input(name));
    std::vector<OfRanks>& steps = found->second;
    if (!is_new) return steps;
    const std::string label(program_.spec(calls.front().input(name)).global_name());
    steps.push_back(dense(calls, name));
    while (static_cast<int>(steps.size()) < options_.ranks)
      steps.push_back(
          send_recv(program_, {options_.ranks, 1}, program_.unique_name(label + ".ring"), steps.back(), group));
    return steps;
  }

  /// A step's attention: all queries see later blocks, and only the first step includes the sinks.
  static Attention attributes_at(const OpCall& call, int step) {
    Attention attributes = call.attributes.as<Attention>();
    attributes.causal = attributes.causal && step == 0;
    return attributes;
  }
  static AttentionOptions options_at(const OpCall& call, int step) {
    if (step > 0 || !call.attributes.has("sinks")) return {};
    return {.sinks = call.input("sinks")};
  }

  std::string step_label(const OpCall& call, int step, const char* what) {
    const std::size_t at = call.label.rfind('@');
    return program_.unique_name(call.label.substr(0, at) + what + std::to_string(step) + call.label.substr(at));
  }

  void append_ring(std::span<const OpCall> calls, const RankGroup& group, const std::string& label) {
    const std::vector<OfRanks>&keys = passed_on(calls, "k", group), &values = passed_on(calls, "v", group);
    if (calls.front().kind == attention_backward_kind) return append_ring_backward(calls, keys, values, group, label);
    for (int place = 0; place < options_.ranks; ++place) {
      const OpCall& call = calls[static_cast<std::size_t>(place)];
      const std::optional whole = AttentionForward{call.output("o"), call.output("lse")};
      const std::optional<AttentionForward> apart;
      const int last = blocks_of(call, place) - 1;
      const auto block = [&](int step, const std::optional<AttentionForward>& into) {
        return attention_forward(program_, attributes_at(call, step), call.math, step_label(call, step, ".block"),
                                 call.input("q"), at(keys, step, place), at(values, step, place),
                                 options_at(call, step), into);
      };
      AttentionForward so_far = block(0, last == 0 ? whole : apart);
      for (int step = 1; step <= last; ++step)
        so_far = attention_merge(program_, call.math, step_label(call, step, ".merge"), so_far, block(step, apart),
                                 step == last ? whole : apart);
    }
  }

  static ValueId at(const std::vector<OfRanks>& steps, int step, int place) {
    return steps[static_cast<std::size_t>(step)][static_cast<std::size_t>(place)];
  }

  void append_ring_backward(std::span<const OpCall> calls, const std::vector<OfRanks>& keys,
                            const std::vector<OfRanks>& values, const RankGroup& group, const std::string& label) {
    OfRanks dq(calls.size()), dk, dv;
    for (int step = 0; step < options_.ranks; ++step) {
      if (step > 0) {
        dk = send_recv(program_, {options_.ranks, 1}, program_.unique_name(label + ".dk.ring"), dk, group);
        dv = send_recv(program_, {options_.ranks, 1}, program_.unique_name(label + ".dv.ring"), dv, group);
      }
      for (int place = 0; place < options_.ranks; ++place) {
        const auto mine = static_cast<std::size_t>(place);
        const OpCall& call = calls[mine];
        if (step >= blocks_of(call, place)) continue;
        AttentionGradients into;
        if (step == 0 && call.attributes.has("sinks")) into.dsinks = call.output("dsinks");
        const AttentionBackward made =
            attention_backward(program_, attributes_at(call, step), call.math, step_label(call, step, ".block"),
                               call.input("do"), call.input("q"), at(keys, step, place), at(values, step, place),
                               call.input("o"), call.input("lse"), options_at(call, step), into);
        if (step == 0) {
          dq[mine] = made.dq;
          dk.push_back(made.dk);
          dv.push_back(made.dv);
          continue;
        }
        const auto sum = [&](ValueId& so_far, ValueId more, const char* what) {
          so_far = add(program_, options_.math, step_label(call, step, what), so_far, more);
        };
        sum(dq[mine], made.dq, ".dq");
        sum(dk[mine], made.dk, ".dk");
        sum(dv[mine], made.dv, ".dv");
      }
    }
    dk = send_recv(program_, {options_.ranks, 1}, program_.unique_name(label + ".dk.home"), dk, group);
    dv = send_recv(program_, {options_.ranks, 1}, program_.unique_name(label + ".dv.home"), dv, group);
    for (std::size_t at = 0; at < calls.size(); ++at) {
      put(dq[at], calls[at].output("dq"));
      put(dk[at], calls[at].output("dk"));
      put(dv[at], calls[at].output("dv"));
    }
  }

  const Program& from_;
  const ContextParallel& options_;
  std::set<std::string, std::less<>> mask_offsets_;
  Program program_;
  std::map<std::pair<std::string, int>, std::vector<OpCall>> waiting_;  // by label and first rank: incomplete groups
  std::map<ValueId, std::vector<ValueId>> gathered_;                    // by the first rank's value
  std::map<ValueId, ValueId> first_tokens_;                             // by the value they are of
  std::map<ValueId, std::vector<OfRanks>> passed_on_;                   // by the first rank's value, step by step
};

}  // namespace

PartitionedStep context_parallel(const Program& step, const ContextParallel& options,
                                 std::span<const ValueId> gradients) {
  if (options.ranks == 1) return {step, {gradients.begin(), gradients.end()}};
  const DataParallel replicas{
      .axis = "cp", .ranks = options.ranks, .reduction = options.reduction, .math = options.math};
  PartitionedStep replicated = replicated_step(step, replicas, gradients);
  return {Exchange(replicated.program, options).take(), std::move(replicated.gradients)};
}

}  // namespace gpubench
