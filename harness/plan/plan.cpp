#include "harness/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

#include "harness/core/error.h"
#include "harness/plan/names.h"

namespace gpubench {
namespace {

using Names = std::vector<std::string>;

[[noreturn]] void unknown(std::string_view what, const std::string& name, const Names& known) {
  throw UsageError(
      fmt::format("{} '{}' is not known; known: {}{}", what, name, fmt::join(known, ", "), did_you_mean(name, known)));
}

void add_once(Names& names, const std::string& name) {
  if (!contains(names, name)) names.push_back(name);
}

std::vector<const Suite*> wanted_suites(std::span<const Suite> suites, const Selection& selection) {
  Names known{"all"};
  for (const Suite& suite : suites) known.push_back(suite.name);
  for (const std::string& name : selection.suites) {
    if (!contains(known, name)) unknown("suite", name, known);
  }
  const bool all = selection.suites.empty() || contains(selection.suites, "all");
  std::vector<const Suite*> wanted;
  for (const Suite& suite : suites) {
    if ((all && !suite.only_by_name) || contains(selection.suites, suite.name)) wanted.push_back(&suite);
  }
  return wanted;
}

std::int64_t* find_dim(Dims& dims, std::string_view name) {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](const auto& dim) { return dim.first == name; });
  return found == dims.end() ? nullptr : &found->second;
}

struct Declared {
  const Suite* suite = nullptr;
  std::shared_ptr<const Workload> workload;
  WorkloadInfo info;
  Grid grid;
};

class Overrides {
 public:
  explicit Overrides(const Selection& selection) : selection_(selection) {}

  // Unknown names are errors: otherwise a typo would silently measure something else.
  void validate(std::span<const Declared> workloads) const {
    for (const std::int64_t batch : selection_.batches) require("--batch", batch, 1);
    const auto has_batch = [](const Declared& d) { return !d.info.batch_axis.empty(); };
    if (!selection_.batches.empty() && std::none_of(workloads.begin(), workloads.end(), has_batch)) {
      throw UsageError("--batch was given, but no selected workload has a batch axis");
    }
    Names known;
    Names may_be_zero;  // as in a suite: padding, but not an extent
    for (const Declared& d : workloads) {
      for (const std::string& axis : d.info.axes_of_1) add_once(known, axis);
      for (const Point& point : d.grid.points) {
        for (const auto& [axis, extent] : point.dims) {
          add_once(known, axis);
          if (extent == 0) add_once(may_be_zero, axis);
        }
      }
    }
    for (const auto& [axis, extents] : selection_.axes) {
      if (!contains(known, axis)) unknown("axis", axis, known);
      if (extents.empty()) throw UsageError("axis '" + axis + "' has no values; expected --axis " + axis + "=N[,N...]");
      for (const std::int64_t extent : extents) {
        require("--axis " + axis, extent, contains(may_be_zero, axis) ? 0 : 1);
      }
    }
  }

  // The points that replace one; itself if no override applies.
  [[nodiscard]] std::vector<Point> apply(const Point& point, const WorkloadInfo& info) const {
    std::vector<Point> points{point};
    if (!info.batch_axis.empty() && !selection_.batches.empty())
      points = replaced(points, info.batch_axis, selection_.batches, false, false);
    for (const auto& [axis, extents] : selection_.axes)
      points = replaced(points, axis, extents, true, contains(info.axes_of_1, axis));
    if (any()) std::for_each(points.begin(), points.end(), [](const Point& one) { expect_countable(one.dims); });
    return points;
  }

  [[nodiscard]] bool any() const { return !selection_.batches.empty() || !selection_.axes.empty(); }

 private:
  static void require(const std::string& flag, std::int64_t value, std::int64_t least) {
    if (value >= least) return;
    throw UsageError(flag + " has value " + std::to_string(value) + ", expected at least " + std::to_string(least));
  }

  // A layer keeps its label with another batch size, but not with other extents. `is_1`: the axis has extent 1 in
  // points that don't name it.
  static std::vector<Point> replaced(const std::vector<Point>& points, const std::string& axis,
                                     const std::vector<std::int64_t>& extents, bool drop_label, bool is_1) {
    std::vector<Point> result;
    for (const Point& point : points) {
      for (const std::int64_t extent : extents) {
        Point changed = point;
        std::int64_t* dim = find_dim(changed.dims, axis);
        if (dim != nullptr) {
          if (drop_label && *dim != extent) changed.label.clear();
          *dim = extent;
        }
        if (dim == nullptr && is_1 && extent != 1) {
          changed.dims.emplace_back(axis, extent);
          changed.label.clear();
        }
        result.push_back(std::move(changed));
        if (result.size() > max_points) {
          throw UsageError("--batch and --axis give more than " + std::to_string(max_points) +
                           " sizes of one case: every value is combined with every other; give fewer values");
        }
        if (dim == nullptr && !is_1) break;
      }
    }
    return result;
  }

  static constexpr std::size_t max_points = 10'000;  // reports are designed for this many cases

  const Selection& selection_;
};

class Planner {
 public:
  explicit Planner(const Selection& selection)
      : selection_(selection),
        overrides_(selection),
        filters_(patterns("filter", selection.filters)),
        excludes_(patterns("filter", selection.excludes)) {}

  std::vector<PlannedCase> plan(std::span<const Suite> suites) {
    declare(suites);
    for (PlannedCase& one : planned_) {
      // Invalid extents are a defect of the suite, unless the user chose them.
      try {
        one = with_program(one);
      } catch (const ProgramError& error) {
        if (!overrides_.any() && selection_.layouts.empty()) throw;
        throw UsageError("case '" + one.id() + "' cannot be built" +
                         (overrides_.any() ? " with these axes: " : " for these ranks: ") + error.what());
      }
    }
    return std::move(planned_);
  }

  std::vector<PlannedCase> cases(std::span<const Suite> suites) {
    declare(suites);
    return std::move(planned_);
  }

 private:
  void declare(std::span<const Suite> suites) {
    std::vector<Declared> workloads;
    for (const Suite* suite : wanted_suites(suites, selection_)) {
      for (const auto& workload : suite->workloads)
        workloads.push_back({suite, workload, workload->info(), workload->grid()});
    }
    validate_precisions(suites);
    validate_ranks(workloads);
    validate_layouts(workloads, suites);
    overrides_.validate(workloads);
    for (const Declared& declared : workloads) plan_workload(declared);
    for (PlannedCase& planned : planned_) {
      Case& c = planned.c;
      if (c.calls)
        c.label += fmt::format("{}{:.15g} call{}", c.label.empty() ? "" : ", ", *c.calls, *c.calls == 1.0 ? "" : "s");
    }
  }

  void validate_precisions(std::span<const Suite> suites) const {
    if (selection_.precisions.empty()) return;
    Names known;
    for (const Suite& suite : suites) {
      for (const auto& workload : suite.workloads) {
        for (const std::string& recipe : workload->grid().recipes) add_once(known, recipe);
      }
    }
    for (const std::string& precision : selection_.precisions) {
      if (!contains(known, precision)) unknown("precision", precision, known);
    }
  }

  // Otherwise a count that no selected workload supports would be dropped silently.
  void validate_ranks(std::span<const Declared> workloads) const {
    for (const int ranks : asked_for()) {
      if (ranks < 1) throw UsageError("--ranks has value " + std::to_string(ranks) + ", expected at least 1");
      const auto can = [ranks](const Declared& d) { return runs_on(d.info, ranks); };
      if (workloads.empty() || std::any_of(workloads.begin(), workloads.end(), can)) continue;
      int fewest = workloads.front().info.min_ranks;
      int most = 1;
      for (const Declared& d : workloads) {
        fewest = std::min(fewest, d.info.min_ranks);
        most = std::max(most, d.info.max_ranks);
      }
      throw UsageError(
          "--ranks " + std::to_string(ranks) + ": the selected suites run on " +
          (fewest == most ? std::to_string(most) : std::to_string(fewest) + " to " + std::to_string(most)) +
          (most == 1 ? " rank only" : " ranks"));
    }
  }

  [[nodiscard]] static bool runs_on(const WorkloadInfo& info, int ranks) {
    return ranks >= info.min_ranks && ranks <= info.max_ranks;
  }

  [[nodiscard]] static bool has_layers_for(const Point& point, const RankLayout& parallel) {
    const auto dim = std::ranges::find(point.dims, "layers", &Dims::value_type::first);
    return dim == point.dims.end() || dim->second >= parallel.pp * parallel.vp;
  }

  [[nodiscard]] std::vector<int> asked_for() const {
    return selection_.ranks.empty() && selection_.processes ? std::vector{*selection_.processes} : selection_.ranks;
  }

  [[nodiscard]] std::vector<int> ranks_of(const WorkloadInfo& info) const {
    if (selection_.ranks.empty() && info.on_all_ranks) {
      std::vector<int> powers;
      const int there = selection_.processes.value_or(selection_.ranks_there);
      for (int ranks = info.min_ranks; ranks <= std::min(there, info.max_ranks); ranks *= 2) powers.push_back(ranks);
      return powers;
    }
    if (selection_.ranks.empty() && !selection_.processes) return {info.min_ranks};
    std::vector<int> wanted = asked_for();
    std::erase_if(wanted, [&](int ranks) { return !runs_on(info, ranks); });
    return wanted;
  }

  struct RanksAndLayout {
    int ranks = 1;
    RankLayout parallel;
  };
  [[nodiscard]] std::vector<RanksAndLayout> layouts_of(const WorkloadInfo& info) const {
    std::vector<RanksAndLayout> all;
    if (selection_.layouts.empty()) {
      for (const int ranks : ranks_of(info)) all.push_back({ranks, {}});
    }
    for (const Selection::Layout& layout : selection_.layouts) {
      if (!can_share(info, layout.parallel)) continue;
      for (const int ranks : ranks_of(layout)) {
        if (runs_on(info, ranks)) all.push_back({ranks, layout.parallel});
      }
    }
    return all;
  }

  /// The number of processes if neither --ranks nor the layout has one.
  [[nodiscard]] std::vector<int> ranks_of(const Selection::Layout& layout) const {
    return gpubench::ranks_of(layout, layout.dp ? selection_.ranks : asked_for());
  }

  void validate_layouts(std::span<const Declared> workloads, std::span<const Suite> suites) const {
    for (const Selection::Layout& layout : selection_.layouts) {
      (void)ranks_of(layout);  // throws
      const RankLayout& parallel = layout.parallel;
      const auto able = [&](const Declared& d) { return can_share(d.info, parallel); };
      if (workloads.empty() || std::any_of(workloads.begin(), workloads.end(), able)) continue;
      Names known;
      for (const Suite& suite : suites) {
        for (const auto& workload : suite.workloads) {
          if (can_share(workload->info(), parallel)) known.push_back(suite.name + "/" + workload->info().name);
        }
      }
      throw UsageError(fmt::format("--parallel {}: no selected workload supports this layout; workloads that do: {}",
                                   fmt::join(modes_of(parallel), ","), fmt::join(known, ", ")));
    }
  }

  [[nodiscard]] bool takes(const std::string& recipe, const Point& point) const {
    if (selection_.precisions.empty() && point.keeps_recipes) return true;
    const Names& wanted = selection_.precisions.empty() ? selection_.default_precisions : selection_.precisions;
    return wanted.empty() || contains(wanted, recipe);
  }

  void plan_workload(const Declared& declared) {
    for (const Point& declared_point : declared.grid.points) {
      if (declared_point.tier > selection_.tier) continue;
      for (const Point& point : overrides_.apply(declared_point, declared.info)) {
        for (const std::string& recipe : declared.grid.recipes_of(declared_point)) {
          if (!takes(recipe, declared_point)) continue;
          for (const auto& [ranks, parallel] : layouts_of(declared.info)) {
            if (declared.info.fits && !declared.info.fits(point.dims, ranks)) continue;
            if (!has_layers_for(point, parallel)) continue;
            for (const LaunchMode launch : launches(ranks)) add(declared, point, recipe, launch, ranks, parallel);
          }
        }
      }
    }
  }

  // Programs of several ranks are not recorded as graphs.
  [[nodiscard]] LaunchMode default_launch(int ranks) const {
    return ranks > 1 ? LaunchMode::stream : selection_.default_launch;
  }
  [[nodiscard]] std::vector<LaunchMode> launches(int ranks) const {
    return selection_.launches.empty() ? std::vector{default_launch(ranks)} : selection_.launches;
  }

  void add(const Declared& declared, const Point& point, const std::string& recipe, LaunchMode launch, int ranks,
           const RankLayout& parallel) {
    Case c;
    c.suite = declared.suite->name;
    c.workload = declared.info.name;
    c.dims = point.dims;
    c.recipe = recipe;
    c.label = point.label;
    c.tier = point.calls ? selection_.tier : point.tier;  // listed shapes have the tier of the run
    c.calls = point.calls;
    c.cache = declared.info.cache;
    c.launch = launch;
    c.fuse = selection_.fuse;
    c.ranks = ranks;
    c.cadence = point.cadence;
    c.modes = point.modes;
    if (point.cadence != Cadence::streaming) c.modes.emplace_back(name(point.cadence));
    if (launch != default_launch(ranks)) c.modes.emplace_back(name(launch));
    if (!c.fuse) c.modes.emplace_back("unfused");
    if (selection_.virtual_ranks && ranks > 1) c.modes.emplace_back("virtual");
    for (std::string& mode : modes_of(parallel)) c.modes.push_back(std::move(mode));
    const std::string id = c.id();
    if (!filters_.empty() && !any_found(filters_, id)) return;
    if (any_found(excludes_, id)) return;
    const auto [place, is_new] = places_.emplace(id, planned_.size());
    if (is_new)
      planned_.push_back({std::move(c), declared.workload, {}, 0});
    else if (c.calls)  // --batch or --axis made two listed shapes equal
      *planned_[place->second].c.calls += *c.calls;
  }

  const Selection& selection_;
  Overrides overrides_;
  std::vector<Pattern> filters_;
  std::vector<Pattern> excludes_;
  std::map<std::string, std::size_t> places_;
  std::vector<PlannedCase> planned_;
};

}  // namespace

// Suites multiply up to four extents and small factors: 2^56 leaves room for the factors in 64 bits.
void expect_countable(const Dims& dims) {
  constexpr std::size_t multiplied = 4;
  constexpr double most = 0x1p56;
  std::vector<double> extents;
  for (const auto& [axis, extent] : dims) extents.push_back(static_cast<double>(std::max<std::int64_t>(extent, 1)));
  std::sort(extents.begin(), extents.end(), std::greater<>());
  extents.resize(std::min(extents.size(), multiplied));
  if (std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>()) < most) return;
  throw UsageError("these axes are too large to be counted: " + to_string(dims) +
                   "; the product of the four largest must be less than 2^56");
}

bool can_share(const WorkloadInfo& info, const RankLayout& parallel) {
  return (parallel.tp == 1 || info.shares_tensors) && (parallel.fsdp == 1 || info.shards_weights) &&
         (parallel.ep == 1 || info.spreads_experts) && (parallel.cp == 1 || info.shares_sequences) &&
         (parallel.pp == 1 || info.shares_layers);
}

std::vector<int> ranks_of(const Selection::Layout& layout, std::vector<int> ranks) {
  const int of_one = layout.parallel.ranks();
  if (layout.dp && !ranks.empty()) {
    throw UsageError(
        fmt::format("--parallel dp={} and --ranks both set the number of ranks; give one of them", *layout.dp));
  }
  for (const int one : ranks) {
    if (one % of_one != 0)
      throw UsageError(fmt::format("--ranks {}: --parallel {} needs a multiple of {}", one,
                                   fmt::join(modes_of(layout.parallel), ","), of_one));
  }
  if (ranks.empty()) ranks = {layout.dp.value_or(1) * of_one};
  return ranks;
}

std::vector<PlannedCase> plan_cases(std::span<const Suite> suites, const Selection& selection) {
  return Planner(selection).plan(suites);
}

PlannedCase with_program(PlannedCase declared) {
  const Program program = declared.workload->build(declared.c);
  declared.bytes = program.bytes();
  declared.cost = cost_of(program);
  declared.definition = definition_digest(declared.c, *declared.workload, program);
  return declared;
}

std::vector<PlannedCase> declared_cases(std::span<const Suite> suites, const Selection& selection) {
  return Planner(selection).cases(suites);
}

}  // namespace gpubench
