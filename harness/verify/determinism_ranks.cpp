// Comparisons of ranks: replicas, one rank with each rank's data, and one rank with all batches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/core/error.h"
#include "harness/verify/determinism_ways.h"

namespace gpubench {
namespace {

// Writes the contents to the program's sources and runs its set-up ops. Returns the names of the written sources.
std::set<std::string> give(DeterminismSubject& one,
                           const std::function<const HostTensor*(const TensorSpec&)>& content) {
  std::set<std::string> given;
  for (int id = 0; id < static_cast<int>(one.program().values().size()); ++id) {
    const Value& value = one.program().value({id});
    if (!value.source || value.part_of) continue;
    const HostTensor* data = content(value.spec);
    if (data == nullptr || data->spec.shape != value.spec.shape || data->spec.dtype != value.spec.dtype) continue;
    one.prepared().give({id}, *data);
    given.insert(value.spec.name);
  }
  one.prepared().set_up();
  return given;
}

class RankTrial {
 public:
  RankTrial(Backend& group, const PlannedCase& planned, const RunOptions& options, DeterminismSubject& all,
            const std::vector<LeftValue>& left)
      : group_(group), planned_(planned), options_(options), all_(all), left_(left), numbers_(all.program()) {}

  Repetition replicas() const {
    std::map<std::uint64_t, const LeftValue*> first;
    int compared = 0;
    for (const LeftValue& value : left_) {
      const std::optional<std::uint64_t> number = numbers_[value.id];
      if (!number) continue;
      const auto [other, is_new] = first.try_emplace(*number, &value);
      const TensorSpec& spec = value.tensor.spec;
      if (is_new || other->second->tensor.spec.placement.rank == spec.placement.rank) continue;
      ++compared;
      if (other->second->tensor.bytes == value.tensor.bytes) continue;
      return {std::string(way::replicas), Sameness::differs,
              fmt::format("{}; the other is on rank {}", all_.text(value.op, other->second->tensor, value.tensor),
                          other->second->tensor.spec.placement.rank)};
    }
    if (compared == 0) return untested(way::replicas, "no tensor remains on several ranks");
    return {std::string(way::replicas), Sameness::same, fmt::format("{} tensors on several ranks", compared)};
  }

  // The one-rank program runs on rank 0, with an equal device or number of threads, and each rank's data in turn.
  Repetition one_rank() {
    const PlannedCase planned = on_one_rank(planned_);
    DeterminismSubject one(group_, planned, options_);
    const std::map<std::string, HostTensor> sources = all_.sources();
    int compared = 0;
    for (int rank = 0; rank < planned_.c.ranks; ++rank) {
      const auto of_rank = [&](const TensorSpec& spec) -> const HostTensor* {
        const auto found = sources.find(name_on_rank(spec.name, rank, planned_.c.ranks));
        return found == sources.end() ? nullptr : &found->second;
      };
      const std::set<std::string> given = give(one, of_rank);
      one.run();
      std::map<std::string, std::uint64_t> of_sources;
      for (const std::string& name : given)
        of_sources[name] = source_number(sources.at(name_on_rank(name, rank, planned_.c.ranks)).spec);
      for (const Value& value : one.program().values()) {  // sources without content equal no rank's
        if (value.source && !value.part_of && !given.contains(value.spec.name)) of_sources[value.spec.name] = 0;
      }
      const ValueNumbers numbers(one.program(), of_sources);
      std::map<std::uint64_t, HostTensor> alone;
      for (LeftValue& value : one.left()) {
        if (const auto number = numbers[value.id]) alone.emplace(*number, std::move(value.tensor));
      }
      for (const LeftValue& value : left_) {
        const std::optional<std::uint64_t> number = numbers_[value.id];
        if (!number || value.tensor.spec.placement.rank != rank || !alone.contains(*number)) continue;
        ++compared;
        if (alone.at(*number).bytes == value.tensor.bytes) continue;
        return {std::string(way::one_rank), Sameness::differs, all_.text(value.op, alone.at(*number), value.tensor)};
      }
    }
    if (compared == 0) return untested(way::one_rank, "no tensor remains from before the ranks communicate");
    return {std::string(way::one_rank), Sameness::same,
            fmt::format("{} tensors from before the ranks communicate", compared)};
  }

  // Gradients summed over the ranks, compared with one rank that has all batches: other orders of sums.
  Repetition one_batch() {
    const std::string axis = planned_.workload->info().batch_axis;
    if (axis.empty()) return untested(way::one_batch, "its workload has no batch");
    const PlannedCase planned = with_batch(on_one_rank(planned_), planned_.c.dim(axis) * planned_.c.ranks);
    DeterminismSubject one(group_, planned, options_);
    if (std::string why = separate_batches_reason(one.program()); !why.empty())
      return untested(way::one_batch, std::move(why));
    const std::map<std::string, HostTensor> whole = assembled(all_.sources());
    const std::set<std::string> given = give(one, [&](const TensorSpec& spec) -> const HostTensor* {
      const auto found = whole.find(spec.name);
      return found == whole.end() ? nullptr : &found->second;
    });
    for (const Value& value : one.program().values()) {
      if (value.source && !value.part_of && !given.contains(value.spec.name))
        return untested(way::one_batch, fmt::format("'{}' can't be joined from the ranks' parts", value.spec.name));
    }
    one.run();
    return sums_compared(one);
  }

 private:
  static PlannedCase on_one_rank(PlannedCase planned) {
    if (planned.workload->info().min_ranks > 1) throw Unsupported("it has no program of one rank");
    planned.c = planned.c.on_one_rank();
    return with_program(std::move(planned));
  }

  static std::string separate_batches_reason(const Program& program) {
    const int mixing = first_mixing_op(program);
    if (mixing < static_cast<int>(program.ops().size()))
      return fmt::format("op '{}' ({}) depends on the whole batch by definition", program.op(mixing).label,
                         program.op(mixing).kind.name);
    for (const Value& value : program.values()) {
      if (value.source && value.spec.fill.kind == Fill::Kind::masked)
        return fmt::format("'{}' masks different numbers of elements on each rank, so their means differ",
                           value.spec.name);
    }
    return "";
  }

  // By global name: parts of all ranks joined, and one copy of equal tensors.
  static std::map<std::string, HostTensor> assembled(const std::map<std::string, HostTensor>& sources) {
    std::map<std::string, HostTensor> whole;
    for (const auto& [name, part] : sources) {
      TensorSpec spec = part.spec;
      spec.name = std::string(part.spec.global_name());
      spec.shape = global_shape(part.spec);
      spec.layout = {};
      HostTensor& all = whole.try_emplace(spec.name, spec).first->second;
      for (std::int64_t i = 0; i < part.elements(); ++i)
        store_bits(spec.dtype, all.bytes.data(), global_index(part.spec, i),
                   load_bits(spec.dtype, part.bytes.data(), i));
    }
    return whole;
  }

  [[nodiscard]] bool is_summed(const LeftValue& value) const {
    return value.role() == Role::gradient && value.tensor.spec.placement.rank == 0 && is_float(value.tensor.spec.dtype);
  }

  [[nodiscard]] Repetition sums_compared(DeterminismSubject& one) const {
    const std::vector<LeftValue> alone = one.left();
    const auto storage = [](const DeterminismSubject& subject, const LeftValue& value) {
      const std::string& name = subject.program().storage(subject.program().value(value.id).storage).name;
      return std::pair(name.substr(0, name.find('@')), subject.program().value(value.id).offset_bytes);
    };
    int same = 0, compared = 0;
    double largest = 0.0;
    std::string where;
    for (const LeftValue& value : left_) {
      if (!is_summed(value)) continue;
      const auto other = std::ranges::find_if(
          alone, [&](const LeftValue& candidate) { return storage(one, candidate) == storage(all_, value); });
      if (other == alone.end() || other->tensor.spec.shape != value.tensor.spec.shape) continue;
      ++compared;
      if (other->tensor.bytes == value.tensor.bytes) {
        ++same;
        continue;
      }
      if (const double apart = distance(value.tensor, other->tensor); where.empty() || !(apart <= largest)) {
        largest = apart;
        where = fmt::format("'{}' of op '{}'", value.tensor.spec.name, all_.program().op(value.op).label);
      }
    }
    if (compared == 0) return untested(way::one_batch, "no gradient that was summed over the ranks remains");
    std::string text = fmt::format("{} of {} summed gradients have the same bits", same, compared);
    if (same < compared)
      text += fmt::format("; the largest difference, {:.2g} of the root mean square, is in {}", largest, where);
    return {std::string(way::one_batch), same == compared ? Sameness::same : Sameness::differs, std::move(text)};
  }

  // Largest difference in units of the root mean square.
  static double distance(const HostTensor& a, const HostTensor& b) {
    double squares = 0.0, largest = 0.0;
    for (std::int64_t i = 0; i < a.elements(); ++i) {
      squares += b.get(i) * b.get(i);
      const double apart = std::fabs(a.get(i) - b.get(i));
      if (!(apart <= largest)) largest = apart;
    }
    return largest / std::sqrt(squares / static_cast<double>(a.elements()));
  }

  Backend& group_;
  const PlannedCase& planned_;
  const RunOptions& options_;
  DeterminismSubject& all_;
  const std::vector<LeftValue>& left_;
  ValueNumbers numbers_;
};

}  // namespace

std::vector<Repetition> rank_repetitions(Backend& group, const PlannedCase& planned, const RunOptions& options,
                                         DeterminismSubject& all, const std::vector<LeftValue>& left) {
  RankTrial trial(group, planned, options, all, left);
  const std::string no_program = "there is no such program";
  return {trial.replicas(), tried(way::one_rank, no_program, [&] { return trial.one_rank(); }),
          tried(way::one_batch, no_program, [&] { return trial.one_batch(); })};
}

}  // namespace gpubench
