#include "harness/core/tuning_cache.h"

#include <gtest/gtest.h>

#include <set>

namespace gpubench {
namespace {

struct Scaled {
  double factor = 1.0;
  static void visit(auto&& attribute) { attribute("factor", &Scaled::factor); }
};

constexpr OpKind product{"product"};

std::vector<TensorSpec> operands() {
  return {tensor("a", DType::bf16, {8, 4}, Role::input), tensor("c", DType::f32, {8, 2}, Role::activation)};
}

OpCall call() {
  OpCall c;
  c.kind = product;
  c.attributes = Scaled{};
  c.label = "first";
  return c;
}

TEST(ChoiceKey, ListsTheParametersOfAChoice) {
  EXPECT_EQ(choice_key(call(), operands()), "product; sums f32; bf16[8, 4] f32[8, 2]");
}

TEST(ChoiceKey, NamesLabelsAndRolesDoNotMatter) {
  OpCall other = call();
  other.label = "second";
  std::vector<TensorSpec> renamed = operands();
  renamed[0].name = "x";
  renamed[0].role = Role::parameter;
  renamed[0].fill = Fill::constant(1.0);
  EXPECT_EQ(choice_key(other, renamed), choice_key(call(), operands()));
}

TEST(ChoiceKey, EverythingElseDoes) {
  std::set<std::string> keys{choice_key(call(), operands())};
  const auto changed = [&](const auto& change) {
    OpCall c = call();
    std::vector<TensorSpec> t = operands();
    change(c, t);
    return keys.insert(choice_key(c, t)).second;
  };
  using T = std::vector<TensorSpec>;
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.kind = OpKind{"quotient"}; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.attributes = Scaled{0.5}; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.accumulate = DType::f16; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.inputs = Math::Inputs::tf32; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.inputs = Math::Inputs::emulated; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.fast_accumulation = true; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.split_k_in_output = true; }));
  EXPECT_TRUE(changed([](OpCall& c, T&) { c.math.approximate_tanh = true; }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t[0].dtype = DType::f16; }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t[0] = tensor("a", DType::bf16, {4, 8}, Role::input); }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t[0].layout.strides = {1, 8}; }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t[0].placement = Placement::shard(0); }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t[0].placement = Placement::in(Memory::pinned_host); }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { std::swap(t[0], t[1]); }));
  EXPECT_TRUE(changed([](OpCall&, T& t) { t.pop_back(); }));
}

}  // namespace
}  // namespace gpubench
