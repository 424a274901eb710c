#include "suites/declare.h"

namespace gpubench::suites {
namespace {

class Declared final : public Workload {
 public:
  explicit Declared(Declaration declaration) : declaration_(std::move(declaration)) {}

  [[nodiscard]] WorkloadInfo info() const override { return declaration_.info; }
  [[nodiscard]] Grid grid() const override { return declaration_.grid; }
  [[nodiscard]] Program build(const Case& c) const override { return declaration_.build(c, recipe(c.recipe)); }
  [[nodiscard]] double items(const Case& c) const override { return declaration_.items(c); }

 private:
  Declaration declaration_;
};

}  // namespace

std::shared_ptr<const Workload> declare(Declaration declaration) {
  return std::make_shared<Declared>(std::move(declaration));
}

std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item, Grid grid,
                                             Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {{std::move(name), std::move(description), "", Headline::bytes_per_s, std::move(item), CacheMode::cold},
       std::move(grid),
       build,
       [](const Case& c) { return static_cast<double>(c.dim("n")); }});
}

}  // namespace gpubench::suites
