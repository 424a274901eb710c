// Listed shapes as points of the suites' workloads: equal shapes are equal cases.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/plan/names.h"
#include "harness/plan/plan.h"
#include "harness/shapes/shape_list.h"
#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

class Listed final : public Workload {
 public:
  explicit Listed(std::shared_ptr<const Workload> of)
      : of_(std::move(of)), own_(of_->grid()), grid_{{}, own_.recipes} {}

  [[nodiscard]] WorkloadInfo info() const override { return of_->info(); }
  [[nodiscard]] Grid grid() const override { return grid_; }
  [[nodiscard]] Program build(const Case& c) const override { return of_->build(c); }
  [[nodiscard]] double items(const Case& c) const override { return of_->items(c); }

  [[nodiscard]] const Grid& own() const { return own_; }
  void add(Point point) { grid_.points.push_back(std::move(point)); }

 private:
  std::shared_ptr<const Workload> of_;
  Grid own_, grid_;
};

class Lister {
 public:
  Lister(std::span<const Suite> suites, ShapeList& list, bool any_recipe) : list_(list), any_recipe_(any_recipe) {
    for (const Suite& suite : suites) {
      Suite& listed = suites_.emplace_back(Suite{suite.name, suite.description, {}});
      for (const auto& workload : suite.workloads) {
        auto one = std::make_shared<Listed>(workload);
        const std::string name = suite.name + "/" + one->info().name;
        names_.push_back(name);
        workloads_[name] = one;
        listed.workloads.push_back(std::move(one));
      }
    }
  }

  std::vector<Suite> take() {
    std::vector<ListedShape> taken;
    for (const ListedShape& shape : list_.shapes) {
      try {
        if (add(shape)) taken.push_back(shape);
      } catch (const UsageError& error) {
        if (list_.source.format == own_format)
          throw UsageError(fmt::format("{}: {}", visible(list_.source.file), error.what()));
        leave_out(fmt::format("{} of extents that make none", shape.suite + "/" + shape.workload), shape.calls);
      }
    }
    list_.shapes = std::move(taken);
    return std::move(suites_);
  }

 private:
  bool add(const ListedShape& shape) {
    const std::string name = shape.suite + "/" + shape.workload;
    const auto found = workloads_.find(name);
    if (found == workloads_.end())
      throw UsageError(
          fmt::format("unknown workload '{}'{}; see gpubench list suites", shown(name), did_you_mean(name, names_)));
    Listed& workload = *found->second;
    Point point = point_of(shape, name, workload.own());
    const std::vector<std::string>& recipes = workload.own().recipes_of(point);
    if (!any_recipe_ && !shape.recipe.empty()) {
      if (!contains(recipes, shape.recipe)) {
        leave_out(fmt::format("{} is not available in {}", name, shown(shape.recipe)), shape.calls);
        return false;
      }
      point.recipes = {shape.recipe};
      point.keeps_recipes = true;
    }
    point.calls = shape.calls;
    require_program(shape, workload, name, point, point.keeps_recipes ? shape.recipe : recipes.front());
    workload.add(std::move(point));
    return true;
  }

  // The workload's own point of these extents, or a new one with its dimensions in their order.
  Point point_of(const ListedShape& shape, const std::string& name, const Grid& own) const {
    Point point;
    bool fits = !own.points.empty() && own.points.front().dims.size() == shape.dims.size();
    for (std::size_t i = 0; fits && i < shape.dims.size(); ++i) {
      const std::string& axis = own.points.front().dims[i].first;
      const auto extent =
          std::find_if(shape.dims.begin(), shape.dims.end(), [&](auto& dim) { return dim.first == axis; });
      fits = extent != shape.dims.end();
      if (fits) point.dims.push_back(*extent);
    }
    if (!fits) {
      throw UsageError(fmt::format("{} does not have the dimensions {}; expected those of {}", name,
                                   visible(to_string(shape.dims)),
                                   own.points.empty() ? "another workload" : to_string(own.points.front().dims)));
    }
    for (std::size_t i = 0; i < point.dims.size(); ++i) {
      // Padding may be 0 in some suites.
      const auto is_zero = [i](const Point& one) { return i < one.dims.size() && one.dims[i].second == 0; };
      if (point.dims[i].second < 1 && std::none_of(own.points.begin(), own.points.end(), is_zero))
        throw UsageError(fmt::format("{} has {}=0, expected 1 or more", name, point.dims[i].first));
    }
    for (const Point& one : own.points) {
      if (one.dims == point.dims && one.modes.empty() && one.cadence == Cadence::streaming) point = one;
    }
    point.tier = Tier::smoke;
    return point;
  }

  // Checked here, where the line is known.
  void require_program(const ListedShape& shape, const Workload& workload, const std::string& name, const Point& point,
                       const std::string& recipe) const {
    try {
      expect_countable(point.dims);
      Case c;
      c.suite = shape.suite;
      c.workload = shape.workload;
      c.dims = point.dims;
      c.recipe = recipe;
      c.ranks = workload.info().min_ranks;
      (void)c.id();
      (void)workload.build(c);
    } catch (const UsageError& error) {
      throw UsageError(error.what());
    } catch (const ProgramError& error) {
      throw UsageError(fmt::format("cannot build {} of {}: {}", name, to_string(point.dims), error.what()));
    }
  }

  void leave_out(const std::string& reason, double calls) {
    const auto same = [&](const ShapesExcept& one) { return !one.taken && one.reason == reason; };
    const auto found = std::find_if(list_.source.excepts.begin(), list_.source.excepts.end(), same);
    if (found == list_.source.excepts.end())
      list_.source.excepts.push_back({reason, calls, false});
    else
      found->calls += calls;
  }

  ShapeList& list_;
  bool any_recipe_;
  std::vector<Suite> suites_;
  std::map<std::string, std::shared_ptr<Listed>> workloads_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<Suite> listed_suites(std::span<const Suite> suites, ShapeList& list, bool any_recipe) {
  return Lister(suites, list, any_recipe).take();
}

}  // namespace gpubench
