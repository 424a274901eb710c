#include "suites/declare.h"

namespace gpubench::suites {
namespace {

class Declared final : public Workload {
 public:
  explicit Declared(Declaration declaration) : declaration_(std::move(declaration)) {}

  [[nodiscard]] WorkloadInfo info() const override { return declaration_.info; }
  [[nodiscard]] Grid grid() const override { return declaration_.grid; }
  [[nodiscard]] Program build(const Case& c, Rank /*rank*/) const override {
    return declaration_.build(c, recipe(c.recipe));
  }
  [[nodiscard]] double items(const Case& c) const override { return declaration_.items(c); }

 private:
  Declaration declaration_;
};

}  // namespace

std::shared_ptr<const Workload> declare(Declaration declaration) {
  return std::make_shared<Declared>(std::move(declaration));
}

}  // namespace gpubench::suites
