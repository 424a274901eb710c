#include "suites/suites.h"

#include <algorithm>

#include "reference/ops/transform/differentiate.h"

namespace gpubench {

std::span<const Suite> all_suites() {
  static const std::vector<Suite> all{
      suites::gemm(),    suites::conv(),        suites::attention(),   suites::norm(),    suites::activation(),
      suites::pool(),    suites::loss(),        suites::optimizer(),   suites::memory(),  suites::link(),
      suites::launch(),  suites::collectives(), suites::transformer(), suites::convnet(), suites::moe(),
      suites::scaling(), suites::variants(),
  };
  return all;
}

namespace suites {
namespace {

class Declared final : public Workload {
 public:
  explicit Declared(Declaration declaration) : declaration_(std::move(declaration)) {}

  [[nodiscard]] WorkloadInfo info() const override { return declaration_.info; }
  [[nodiscard]] Grid grid() const override { return declaration_.grid; }
  [[nodiscard]] Program build(const Case& c) const override { return declaration_.build(c, recipe(c.recipe)); }
  [[nodiscard]] double items(const Case& c) const override {
    return declaration_.items(c) * static_cast<double>(micro_batches(c));
  }

 private:
  Declaration declaration_;
};

Grid with_loss_scaling(Grid grid) {
  std::vector<Point> points;
  for (Point& point : grid.points) {
    if (point.recipes.empty()) point.recipes = grid.recipes;
    Point scaled = point;
    const bool has_f16 = std::erase(point.recipes, "f16") > 0;
    if (!point.recipes.empty()) points.push_back(std::move(point));
    if (!has_f16) continue;
    scaled.recipes = {"f16"};
    scaled.modes.emplace_back(loss_scaling_mode);
    points.push_back(std::move(scaled));
  }
  grid.points = std::move(points);
  return grid;
}

}  // namespace

std::int64_t micro_batches(const Case& c) {
  const auto found = std::ranges::find(c.dims, "micro", &Dims::value_type::first);
  return found == c.dims.end() ? 1 : found->second;
}

std::shared_ptr<const Workload> declare(Declaration declaration) {
  return std::make_shared<Declared>(std::move(declaration));
}

Case with_part_of_sequences(Case c) {
  const int ranks = c.parallel().cp;
  for (auto& [axis, extent] : c.dims) {
    if (axis != "s") continue;
    if (extent % ranks != 0)
      throw ProgramError(std::to_string(ranks) + " ranks cannot share sequences of " + std::to_string(extent) +
                         " tokens equally");
    extent /= ranks;
  }
  return c;
}

std::shared_ptr<const Workload> declare_step(std::string name, std::string description, std::string item,
                                             std::vector<std::string> dims, Grid grid,
                                             Program (*build)(const Case&, const Recipe&), const StepSharing& sharing) {
  WorkloadInfo info{std::move(name), std::move(description), dims.front(), PrimaryMetric::items_per_s,
                    std::move(item), CacheMode::step};
  info.max_ranks = 64;
  info.shards_weights = true;
  info.shares_tensors = sharing.tensors;
  info.spreads_experts = sharing.experts;
  info.shares_sequences = sharing.sequences;
  info.shares_layers = sharing.blocks;
  if (sharing.blocks) info.axes_of_1 = {"micro"};
  const auto items = [dims = std::move(dims)](const Case& c) {
    double count = c.ranks / c.parallel().ranks_of_batch();
    for (const std::string& dim : dims) count *= static_cast<double>(c.dim(dim));
    return count;
  };
  const auto of_each = [build](const Case& c, const Recipe& r) { return build(with_part_of_sequences(c), r); };
  return declare({std::move(info), with_loss_scaling(std::move(grid)), of_each, items});
}

Program backward_of(const std::function<Forward(Program&)>& forward) {
  Program p;
  p.begin(Phase::setup);
  const Forward saved = forward(p);
  p.begin(Phase::timed);
  const TensorSpec y = p.spec(saved.y);
  const ValueId dy = p.add(tensor("dy", y.dtype, y.shape, Role::gradient, Fill::normal(1.0)));
  (void)differentiate(p, std::vector<Seed>{{saved.y, dy}}, saved.wanted);
  return p;
}

Grid grid_of(std::vector<Point> points) {
  Grid grid;
  grid.recipes = {"f32", "bf16", "f16"};
  grid.points = std::move(points);
  return grid;
}

Point row_point(std::int64_t rows, std::int64_t n, std::string label, Tier tier, std::vector<std::string> recipes) {
  return {{{"rows", rows}, {"n", n}}, std::move(label), tier, std::move(recipes)};
}

std::shared_ptr<const Workload> declare_rows(std::string name, std::string description, Grid grid,
                                             Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {{std::move(name), std::move(description), "rows", PrimaryMetric::bytes_per_s, "rows", CacheMode::cold},
       std::move(grid),
       build,
       [](const Case& c) { return static_cast<double>(c.dim("rows")); }});
}

std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item, Grid grid,
                                             Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {{std::move(name), std::move(description), "", PrimaryMetric::bytes_per_s, std::move(item), CacheMode::cold},
       std::move(grid),
       build,
       [](const Case& c) { return static_cast<double>(c.dim("n")); }});
}

}  // namespace suites
}  // namespace gpubench
