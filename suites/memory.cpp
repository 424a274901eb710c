// Suite memory: what the memory can do. Every bandwidth-bound op is read against these.
#include "reference/ops/elementwise.h"
#include "suites/declare.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid sizes() {
  const auto point = [](std::int64_t n, std::string label, Tier tier) {
    return Point{{{"n", n}}, std::move(label), tier};
  };
  Grid grid;
  grid.points = {
      point(1 << 20, "1 Mi elements", Tier::smoke),
      point(1 << 26, "64 Mi elements", Tier::quick),
      point(1 << 30, "1 Gi elements", Tier::standard),
  };
  return grid;
}

Program copy_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  copy(p, "y", x);
  return p;
}

Program triad_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId b = p.add(tensor("b", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  const ValueId x = p.add(tensor("c", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  triad(p, 3.0, r.math, "a", b, x);
  return p;
}

}  // namespace

Suite memory() {
  return {"memory",
          "bandwidth of the device's memory, as STREAM measures it",
          {
              declare_flat("copy", "y = x", "elements", sizes(), copy_array),
              declare_flat("triad", "a = b + 3 c", "elements", sizes(), triad_array),
          }};
}

}  // namespace gpubench::suites
