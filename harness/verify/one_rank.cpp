#include "harness/verify/one_rank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "harness/parity/end_to_end.h"
#include "harness/parity/textbook_outputs.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/definition.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace {

// Relative to a tensor's largest element: a million times the fp64 rounding of a step's sums, and a millionth of the
// effect of a missing rank of a thousand.
constexpr double allowed = 1e-9;

bool updates_weights(const OpKind& kind) {
  return kind == adamw_kind || kind == clip_adamw_kind || kind == lion_kind || kind == sgd_kind;
}

/// A parameter as the optimizer updates it.
struct Trained {
  int rank = 0;
  std::string name;
  ValueId weight, gradient;  ///< the values that span their storages
};

std::vector<Trained> trained_by(const Program& step) {
  std::vector<Trained> all;
  for (const OpCall& call : step.ops()) {
    if (!updates_weights(call.kind)) continue;
    const std::vector<OperandName> names = operand_names(call.kind.inputs, call.attributes, call.inputs.size());
    std::map<std::size_t, Trained> items;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ValueId whole = step.values_in(step.value(call.inputs[i]).storage).front();
      if (names[i].name == "w") {
        const TensorSpec& spec = step.spec(whole);
        items[names[i].item].weight = whole;
        items[names[i].item].rank = spec.placement.rank;
        items[names[i].item].name = spec.global_name();
      } else if (names[i].name == "g") {
        items[names[i].item].gradient = whole;
      }
    }
    for (auto& [item, trained] : items) all.push_back(std::move(trained));
  }
  return all;
}

double largest(const std::vector<double>& values) {
  double size = 0.0;
  for (const double value : values) size = std::fabs(value) > size ? std::fabs(value) : size;
  return size;
}

bool alike(const std::vector<double>& got, const std::vector<double>& want, double factor = 1.0) {
  const double most = allowed * std::fabs(factor) * largest(want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(std::fabs(got[i] - factor * want[i]) <= most)) return false;
  }
  return got.size() == want.size();
}

/// The factor f with got = f want; empty if there is none.
std::optional<double> factor_of(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size() || want.empty()) return std::nullopt;
  const auto top = static_cast<std::size_t>(
      std::ranges::max_element(want, {}, [](double value) { return std::fabs(value); }) - want.begin());
  const double factor = got[top] / want[top];
  if (!std::isfinite(factor) || factor == 0.0 || !alike(got, want, factor)) return std::nullopt;
  return factor;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// Whether the value remains an addend of a sum, whose result is in another value.
bool is_left_as_addend(const Program& step, ValueId id) {
  const auto is_partial = [](const AxisSpread& spread) { return spread.kind == AxisSpread::Kind::partial; };
  return std::ranges::any_of(step.spec(id).placement.spread, is_partial) && step.survives(id);
}

double flop_of_products(const Program& program) {
  double flop = 0.0;
  for (const OpCall& call : program.ops()) {
    if (call.kind == gemm_kind) flop += cost_of(program, call).flop;
  }
  return flop;
}

/// The ranks' parts of one parameter's gradient or weight.
struct Parts {
  std::string name;
  std::map<int, std::vector<double>> got, want;  ///< by rank
};

class Comparison {
 public:
  Comparison(const StepResult& one, const StepResult& many, const Program& program)
      : alone_(one), one_(one.ranks.begin()->second), many_(many), program_(program), mesh_(program.mesh()) {}

  std::optional<StepDivergence> first() const {
    if (std::optional<StepDivergence> found = loss()) return found;
    if (std::optional<StepDivergence> found = tensors(StepStage::gradient)) return found;
    if (std::optional<StepDivergence> found = norm()) return found;
    return tensors(StepStage::weight);
  }

 private:
  static double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

  static std::vector<double> losses_of(const StepResult& result) {
    std::vector<double> all;
    for (const auto& [rank, of] : result.ranks) all.insert(all.end(), of.losses.begin(), of.losses.end());
    return all;
  }

  [[nodiscard]] std::optional<StepDivergence> number(StepStage stage, const std::string& what, double got,
                                                     double want) const {
    if (std::fabs(got - want) <= allowed * std::fabs(want)) return std::nullopt;
    return StepDivergence{
        stage, DivergenceKind::other, {}, fmt::format("{} is {:.10g}, on one rank {:.10g}", what, got, want)};
  }

  [[nodiscard]] std::optional<StepDivergence> loss() const {
    const std::vector<double> got = losses_of(many_), want = losses_of(alone_);
    if (got.empty() && want.empty()) return std::nullopt;
    std::optional<StepDivergence> found =
        number(StepStage::loss, "the loss, averaged over the ranks,", mean(got), mean(want));
    if (found) {
      found->activation = first_activation();
      if (!found->activation.empty())
        found->text += fmt::format("; the first wrong activation is '{}'", found->activation);
    }
    return found;
  }

  /// Only on ranks with the same batch as one rank.
  [[nodiscard]] std::string first_activation() const {
    for (const OpCall& call : program_.ops()) {
      for (const ValueId id : call.outputs) {
        const TensorSpec& spec = program_.spec(id);
        const auto whole = one_.activations.find(spec.global_name());
        const std::vector<double>* got = activation(spec);
        if (got == nullptr || whole == one_.activations.end()) continue;
        const TensorSpec of_sum = whole_of_addend(id);
        std::vector<double> want;
        for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
          const std::int64_t at = global_index(of_sum, i);
          if (at < static_cast<std::int64_t>(whole->second.size()))
            want.push_back(whole->second[static_cast<std::size_t>(at)]);
        }
        if (!alike(*got, want)) return std::string(spec.global_name());
      }
    }
    return {};
  }

  [[nodiscard]] const std::vector<double>* activation(const TensorSpec& spec) const {
    const auto& all = many_.ranks.at(spec.placement.rank).activations;
    const auto found = all.find(spec.global_name());
    return found == all.end() ? nullptr : &found->second;
  }

  /// The spec of an addend that a reduction in place has replaced by the sum.
  [[nodiscard]] TensorSpec whole_of_addend(ValueId id) const {
    TensorSpec spec = program_.spec(id);
    std::erase_if(spec.placement.spread,
                  [](const AxisSpread& spread) { return spread.kind == AxisSpread::Kind::partial; });
    return spec;
  }

  [[nodiscard]] std::optional<StepDivergence> norm() const {
    for (const auto& [rank, result] : many_.ranks) {
      if (!result.norm || !one_.norm) continue;
      if (auto found =
              number(StepStage::norm, fmt::format("the gradients' norm on rank {}", rank), *result.norm, *one_.norm))
        return found;
    }
    return std::nullopt;
  }

  /// For each parameter the expected parts of the ranks, cut from one rank's tensor.
  [[nodiscard]] std::vector<Parts> parts(StepStage stage) const {
    const auto& whole = stage == StepStage::gradient ? one_.gradients : one_.weights;
    std::map<std::string, Parts, std::less<>> all;
    for (const Trained& trained : trained_by(program_)) {
      const StepResult::OfRank& result = many_.ranks.at(trained.rank);
      const auto& of_rank = stage == StepStage::gradient ? result.gradients : result.weights;
      Parts& mine = all[trained.name];
      mine.name = trained.name;
      mine.got[trained.rank] = of_rank.at(trained.name);
      const TensorSpec& spec = program_.spec(trained.weight);
      const std::vector<double>& of_all = whole.at(trained.name);
      std::vector<double>& want = mine.want[trained.rank];
      if (mine.got[trained.rank].size() == of_all.size()) {  // a whole gradient; its weight may be cut
        want = of_all;
        continue;
      }
      for (std::int64_t i = 0; i < spec.shape.elements(); ++i)
        want.push_back(of_all.at(static_cast<std::size_t>(global_index(spec, i))));
    }
    std::vector<Parts> list;
    for (auto& [name, one] : all) list.push_back(std::move(one));
    return list;
  }

  [[nodiscard]] std::optional<StepDivergence> tensors(StepStage stage) const {
    std::map<DivergenceKind, std::vector<StepDivergence>> found;
    for (const Parts& of : parts(stage)) {
      if (std::optional<StepDivergence> one = of_tensor(stage, of)) found[one->kind].push_back(std::move(*one));
    }
    const auto most = std::ranges::max_element(found, {}, [](const auto& kind) { return kind.second.size(); });
    if (most == found.end()) return std::nullopt;
    StepDivergence first = most->second.front();
    if (most->second.size() > 1) first.text += fmt::format("; {} tensors in all differ like this", most->second.size());
    return first;
  }

  [[nodiscard]] std::optional<StepDivergence> of_tensor(StepStage stage, const Parts& of) const {
    std::vector<int> wrong;
    for (const auto& [rank, got] : of.got) {
      if (!alike(got, of.want.at(rank))) wrong.push_back(rank);
    }
    if (wrong.empty()) return std::nullopt;
    const std::string what = fmt::format("the {} of '{}'", name(stage), of.name);
    if (const std::optional<double> factor = common_factor(of))
      return StepDivergence{stage, DivergenceKind::times, of.name,
                            fmt::format("{} is {:.6g} times that of one rank", what, *factor)};
    for (int axis = 0; axis < static_cast<int>(mesh_.axes().size()); ++axis) {
      const std::string& along = mesh_.axes()[static_cast<std::size_t>(axis)].name;
      if (are_addends(of, axis))
        return StepDivergence{
            stage, DivergenceKind::addend, of.name,
            fmt::format("{} is only an addend on {}: not reduced over {}", what, ranks_text(wrong), along)};
    }
    for (int axis = 0; axis < static_cast<int>(mesh_.axes().size()); ++axis) {
      if (const std::optional<int> odd = differs_along(of, axis))
        return StepDivergence{stage, DivergenceKind::unalike, of.name,
                              fmt::format("{} on rank {} must equal that of the other ranks along {}, and differs",
                                          what, *odd, mesh_.axes()[static_cast<std::size_t>(axis)].name)};
    }
    return StepDivergence{stage, DivergenceKind::other, of.name,
                          fmt::format("{} on {} differs from that of one rank", what, ranks_text(wrong))};
  }

  /// The factor of all ranks; empty if it differs between ranks.
  [[nodiscard]] static std::optional<double> common_factor(const Parts& of) {
    std::optional<double> common;
    for (const auto& [rank, got] : of.got) {
      const std::optional<double> factor = factor_of(got, of.want.at(rank));
      if (!factor || (common && std::fabs(*factor - *common) > allowed * std::fabs(*common))) return std::nullopt;
      common = factor;
    }
    return common;
  }

  /// Visits groups of ranks that must have equal tensors: they differ along an axis along which the parameter is not
  /// cut.
  template <class Visit>
  void each_line(const Parts& of, int axis, const Visit& visit) const {
    std::set<int> seen;
    for (const auto& [rank, want] : of.want) {
      if (seen.contains(rank)) continue;
      const RankGroup line = mesh_.group(rank, std::span(&axis, 1));
      std::vector<int> same;
      for (const int member : line.members()) {
        seen.insert(member);
        if (of.got.contains(member) && of.want.at(member) == want) same.push_back(member);
      }
      if (same.size() > 1) visit(same);
    }
  }

  [[nodiscard]] bool are_addends(const Parts& of, int axis) const {
    bool any = false, all = true;
    each_line(of, axis, [&](const std::vector<int>& line) {
      const std::vector<double>& want = of.want.at(line.front());
      std::vector<double> sum(want.size());
      bool differ = false;
      for (const int rank : line) {
        const std::vector<double>& got = of.got.at(rank);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += got[i];
        differ = differ || !alike(got, want);
      }
      if (!differ) return;
      any = true;
      all = all && (alike(sum, want) || alike(sum, want, static_cast<double>(line.size())));
    });
    return any && all;
  }

  [[nodiscard]] std::optional<int> differs_along(const Parts& of, int axis) const {
    std::optional<int> odd;
    each_line(of, axis, [&](const std::vector<int>& line) {
      for (const int rank : line) {
        if (!odd && !alike(of.got.at(rank), of.got.at(line.front()))) odd = rank;
      }
    });
    return odd;
  }

  const StepResult& alone_;
  const StepResult::OfRank& one_;
  const StepResult& many_;
  const Program& program_;
  const Mesh& mesh_;
};

}  // namespace

StepResult step_result(const Program& step, std::string_view case_key, std::uint64_t seed, const Program& parameters) {
  const Program wide = widen(step);
  TextbookMachine machine(wide);
  machine.fill_sources(case_key, seed, step);
  StepResult result;
  const std::vector<Trained> trained = trained_by(parameters);
  std::set<int> has_gradients;  // ranks
  const auto take_gradients = [&](int rank) {
    if (!has_gradients.insert(rank).second) return;
    for (const Trained& one : trained) {
      if (one.rank == rank) result.ranks[rank].gradients[one.name] = values_of(machine.view(one.gradient));
    }
  };
  machine.run(Phase::setup, {}, {}, {});
  for (int index = 0; index < static_cast<int>(wide.ops().size()); ++index) {
    const OpCall& call = wide.op(index);
    if (call.phase != Phase::timed) continue;
    const int rank = wide.spec(call.outputs.front()).placement.rank;
    const bool makes_norm = call.kind == gradient_norm_kind;
    if (makes_norm || updates_weights(call.kind)) take_gradients(rank);  // before clipping
    machine.run_op(index);
    if (makes_norm) result.ranks[rank].norm = values_of(machine.view(call.outputs.front())).front();
    if (makes_cross_entropy(call.kind))
      result.ranks[rank].losses.push_back(values_of(machine.view(call.output("loss"))).front());
  }
  for (const Trained& one : trained) result.ranks[one.rank].weights[one.name] = values_of(machine.view(one.weight));
  for (const OpCall& call : wide.ops()) {
    for (const ValueId id : call.outputs) {
      const TensorSpec& spec = wide.spec(id);
      if (spec.role != Role::activation || wide.is_proper_part(id) || wide.value(id).updates ||
          is_left_as_addend(wide, id))
        continue;
      result.ranks[spec.placement.rank].activations[std::string(spec.global_name())] = values_of(machine.view(id));
    }
  }
  return result;
}

std::optional<StepDivergence> divergence(const StepResult& one, const StepResult& many, const Program& program) {
  return Comparison(one, many, program).first();
}

std::optional<Program> step_of_one_rank(const Workload& workload, const Case& c) {
  const std::string batch_axis = workload.info().batch_axis;
  Case alone = c.on_one_rank();
  const Program of_each = workload.build(alone);
  const int replicas = c.ranks / c.parallel().ranks_of_batch();
  if (replicas == 1) return of_each;
  if (batch_axis.empty()) return std::nullopt;
  for (auto& [axis, extent] : alone.dims) {
    if (axis == batch_axis) extent *= replicas;
  }
  Program one = workload.build(alone);
  const auto normalizes_batch = [](const OpCall& call) {
    return call.kind.name.find("batch_norm") != std::string_view::npos;
  };
  if (std::ranges::any_of(one.ops(), normalizes_batch)) return std::nullopt;
  // Two halves of a batch may have another number of every seventh tokens than the whole.
  const double work = flop_of_products(one), expected = replicas * flop_of_products(of_each);
  return work == expected ? std::optional(std::move(one)) : std::nullopt;
}

}  // namespace gpubench
