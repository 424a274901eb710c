// Suite launch: the cost of launches: kernels of one element, as a graph or one by one (--launch).
#include "reference/ops/pointwise.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid counts() {
  const auto point = [](std::int64_t ops, std::string label, Tier tier = Tier::standard) {
    return Point{{{"ops", ops}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = {"f32"};
  grid.points = {point(4, "4 launches", Tier::smoke), point(1, "one launch"), point(16, "16 launches"),
                 point(256, "256 launches")};
  return grid;
}

// Negation is exact, and a backend cannot omit it, unlike a factor of one.
ValueId negate(Program& p, const Recipe& r, std::int64_t number, ValueId x) {
  return scale(p, {-1.0}, r.math, "kernel" + std::to_string(number), x);
}

ValueId one_element(Program& p, const Recipe& r) {
  return p.add(tensor("x", r.tensor, {1}, Role::input, Fill::normal(1.0)));
}

Program chain(const Case& c, const Recipe& r) {
  Program p;
  ValueId x = one_element(p, r);
  for (std::int64_t i = 0; i < c.dim("ops"); ++i) x = negate(p, r, i, x);
  return p;
}

Program independent(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = one_element(p, r);
  for (std::int64_t i = 0; i < c.dim("ops"); ++i) (void)negate(p, r, i, x);
  return p;
}

std::shared_ptr<const Workload> launch_workload(std::string name, std::string description,
                                                Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {{std::move(name), std::move(description), "", PrimaryMetric::items_per_s, "launches", CacheMode::step},
       counts(),
       build,
       [](const Case& c) { return static_cast<double>(c.dim("ops")); }});
}

}  // namespace

Suite launch() {
  return {"launch",
          "latency of starting kernels, alone and as a sequence",
          {
              launch_workload("chain", "kernels of one element, each waiting for the previous one", chain),
              launch_workload("independent", "independent kernels of one element", independent),
          }};
}

}  // namespace gpubench::suites
