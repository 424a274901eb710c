// The digest changes exactly when the meaning of a case does.
#include "harness/plan/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "harness/core/recipe.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace {

// c = a b, then layer norm, with parts that can be varied.
class Adjustable : public Workload {
 public:
  std::string item = "rows";
  double items_per_run = 8.0;
  std::string name_of_a = "a";
  DType type = DType::f32;
  Shape shape_of_b{4, 6};
  Layout layout_of_a = Layout::row_major(Shape{8, 4});
  Fill fill = Fill::normal(1.0);
  Memory memory = Memory::device;
  Role role = Role::input;
  Gemm gemm_attributes;
  LayerNorm norm;
  Math math;
  bool normed_twice = false;
  bool from_c = true;

  [[nodiscard]] WorkloadInfo info() const override { return {"adjustable", "", "m", PrimaryMetric::flop_per_s, item}; }
  [[nodiscard]] Grid grid() const override { return {}; }
  [[nodiscard]] double items(const Case& /*c*/) const override { return items_per_run; }
  [[nodiscard]] Program build(const Case& /*c*/) const override {
    Program p;
    TensorSpec left = tensor(name_of_a, type, {8, 4}, role, fill);
    left.layout = layout_of_a;
    left.placement.memory = memory;
    const ValueId a = p.add(std::move(left));
    const ValueId b = p.add(tensor("b", type, shape_of_b, Role::parameter));
    const ValueId other = p.add(tensor("other", type, {8, shape_of_b[1]}, Role::input));
    const ValueId gamma = p.add(tensor("gamma", DType::f32, {shape_of_b[1]}, Role::parameter));
    const ValueId beta = p.add(tensor("beta", DType::f32, {shape_of_b[1]}, Role::parameter));
    const ValueId c = gemm(p, gemm_attributes, math, "c", a, b).c;
    layer_norm_forward(p, norm, math, "norm", from_c ? c : other, gamma, beta);
    if (normed_twice) layer_norm_forward(p, norm, math, "norm2", c, gamma, beta);
    return p;
  }
};

Case some_case() {
  Case c;
  c.suite = "made";
  c.workload = "adjustable";
  c.dims = {{"m", 8}};
  c.recipe = "f32";
  return c;
}

std::uint64_t digest_of(const Adjustable& workload, const Case& c = some_case()) {
  return definition_digest(c, workload, workload.build(c));
}

std::uint64_t digest_with(const std::function<void(Adjustable&)>& change) {
  Adjustable workload;
  change(workload);
  return digest_of(workload);
}

TEST(DefinitionDigest, ChangesWithEveryPartOfTheProgram) {
  const std::pair<const char*, std::function<void(Adjustable&)>> changes[] = {
      {"unit of items", [](Adjustable& w) { w.item = "columns"; }},
      {"number of items", [](Adjustable& w) { w.items_per_run = 9.0; }},
      {"name of a source, which its data come from", [](Adjustable& w) { w.name_of_a = "x"; }},
      {"type", [](Adjustable& w) { w.type = DType::bf16; }},
      {"shape",
       [](Adjustable& w) {
         w.shape_of_b = Shape{4, 7};
       }},
      {"layout",
       [](Adjustable& w) {
         w.layout_of_a = Layout{{1, 8}, {}};
       }},
      {"kind of fill", [](Adjustable& w) { w.fill = Fill::positive(1.0); }},
      {"scale of a fill", [](Adjustable& w) { w.fill = Fill::normal(0.5); }},
      {"memory", [](Adjustable& w) { w.memory = Memory::pinned_host; }},
      {"transposition",
       [](Adjustable& w) {
         w.gemm_attributes.transpose_b = true;
         w.shape_of_b = Shape{4, 4};
       }},
      {"alpha", [](Adjustable& w) { w.gemm_attributes.alpha = 0.5; }},
      {"epsilon", [](Adjustable& w) { w.norm.epsilon = 1e-6; }},
      {"accumulation", [](Adjustable& w) { w.math.accumulate = DType::f64; }},
      {"inputs of products", [](Adjustable& w) { w.math.inputs = Math::Inputs::tf32; }},
      {"sums of 8-bit products", [](Adjustable& w) { w.math.fast_accumulation = true; }},
      {"split sums", [](Adjustable& w) { w.math.split_k_in_output = true; }},
      {"an approximate tanh", [](Adjustable& w) { w.math.approximate_tanh = true; }},
      {"an op more", [](Adjustable& w) { w.normed_twice = true; }},
      {"who reads what", [](Adjustable& w) { w.from_c = false; }},
  };
  const std::uint64_t usual = digest_of(Adjustable());
  std::set<std::uint64_t> seen{usual};
  for (const auto& [what, change] : changes) EXPECT_TRUE(seen.insert(digest_with(change)).second) << what;
  EXPECT_EQ(digest_of(Adjustable()), usual);
}

// Roles serve display and transforms that run before the digest.
TEST(DefinitionDigest, DoesNotDependOnRoles) {
  EXPECT_EQ(digest_with([](Adjustable& w) { w.role = Role::activation; }), digest_of(Adjustable()));
}

TEST(DefinitionDigest, ChangesWithTheIdentityOfTheCaseAndHowItIsTimed) {
  const std::pair<const char*, std::function<void(Case&)>> changes[] = {
      {"extents", [](Case& c) { c.dims = {{"m", 16}}; }},
      {"recipe", [](Case& c) { c.recipe = "bf16"; }},
      {"mode", [](Case& c) { c.modes = {"in_place"}; }},
      {"ranks", [](Case& c) { c.ranks = 2; }},
      {"caches", [](Case& c) { c.cache = CacheMode::warm; }},
      {"cadence", [](Case& c) { c.cadence = Cadence::isolated; }},
  };
  std::set<std::uint64_t> seen{digest_of(Adjustable())};
  for (const auto& [what, change] : changes) {
    Case c = some_case();
    change(c);
    EXPECT_TRUE(seen.insert(digest_of(Adjustable(), c)).second) << what;
  }
}

// The default launch is a graph on a GPU and a stream on the CPU, with the same id; labels and tiers are display only.
TEST(DefinitionDigest, IsTheSameOnEveryDeviceAndInEveryTier) {
  Case c = some_case();
  c.launch = LaunchMode::graph;
  c.label = "gpt2-124m qkv";
  c.tier = Tier::large;
  EXPECT_EQ(digest_of(Adjustable(), c), digest_of(Adjustable()));
}

}  // namespace
}  // namespace gpubench
