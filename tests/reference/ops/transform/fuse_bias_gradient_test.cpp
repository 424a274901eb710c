#include <gtest/gtest.h>

#include <array>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "reference/ops/transform/fuse.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace fuse_bias_gradient_test {

using Operand = GemmWeightBiasGradient::Operand;

constexpr FusionClaim gelu_claim{gemm_gelu_bias_gradient_kind, true};
constexpr FusionClaim weight_claim{gemm_weight_bias_gradient_kind, true};
constexpr std::array both{weight_claim, gelu_claim};
constexpr std::array only_gelu{gelu_claim};
constexpr std::array only_weight{weight_claim};

// y = gelu(x w1^T + b1) w2^T + b2 with 4 tokens, and its backward by differentiate().
struct Mlp {
  Program p;
  ValueId x, w1, b1, w2, b2, dy;

  explicit Mlp(DType type = DType::f32, const Math& math = f32_math) {
    x = source(p, "x", type, {4, 6});
    w1 = source(p, "w1", type, {8, 6}, Role::parameter);
    b1 = source(p, "b1", type, {8}, Role::parameter);
    w2 = source(p, "w2", type, {5, 8}, Role::parameter);
    b2 = source(p, "b2", type, {5}, Role::parameter);
    dy = source(p, "dy", type, {4, 5}, Role::gradient);
    const Gemm linear{.transpose_b = true, .bias = true};
    Gemm with_gelu = linear;
    with_gelu.epilogue = Gemm::Epilogue::gelu;
    const ValueId hidden = gemm(p, with_gelu, math, "up", x, w1, {.bias = b1}).c;
    const ValueId y = gemm(p, linear, math, "down", hidden, w2, {.bias = b2}).c;
    (void)differentiate(p, std::array{Seed{y, dy}}, std::array{x, w1, b1, w2, b2});
  }
  void fill(TextbookRun& run) const {
    for (const ValueId id : {x, w1, b1, w2, b2, dy})
      run.set(id, spread(p.spec(id).shape.elements(), static_cast<std::uint64_t>(id.index + 1)));
  }
};

TEST(FuseBiasGradient, TheBackwardOfAnMlpHasOneOfEach) {
  const Mlp mlp;
  ASSERT_EQ(labels_of(mlp.p),
            (Labels{"up", "down", "down.da", "down.db", "down.dbias", "up.dz", "up.da", "up.db", "up.dbias"}));

  const Fused fused = fuse(mlp.p, both);

  EXPECT_EQ(labels_of(fused.program),
            (Labels{"up", "down", "down.da+up.dz+up.dbias", "down.db+down.dbias", "up.da", "up.db"}));
  EXPECT_EQ(fused.rewrites, (Labels{"down.da+up.dz+up.dbias = gemm_gelu_bias_gradient",
                                    "down.db+down.dbias = gemm_weight_bias_gradient"}));
  const Program& p = fused.program;
  const auto ids = [&p](std::initializer_list<const char*> names) {
    std::vector<ValueId> found;
    for (const char* name : names) found.push_back(named(p, name));
    return found;
  };
  EXPECT_EQ(p.op(2).attributes.as<Gemm>(), (Gemm{.epilogue = Gemm::Epilogue::gelu_gradient}));
  EXPECT_EQ(p.op(2).inputs, ids({"dy", "w2", "up.pre"}));
  EXPECT_EQ(p.op(2).outputs, ids({"up.dz", "d(b1)"}));
  EXPECT_EQ(p.op(3).attributes.as<GemmWeightBiasGradient>(),
            (GemmWeightBiasGradient{{.transpose_a = true}, Operand::a}));
  EXPECT_EQ(p.op(3).inputs, ids({"dy", "up"}));
  EXPECT_EQ(p.op(3).outputs, ids({"d(w2)", "d(b2)"}));
}

TEST(FuseBiasGradient, WhoMakesDzHasItsColumnSumBeforeWhoReadsIt) {
  const Mlp mlp;

  EXPECT_EQ(labels_of(fuse(mlp.p, only_weight).program),
            (Labels{"up", "down", "down.da", "down.db+down.dbias", "up.dz", "up.da", "up.db+up.dbias"}));
  EXPECT_EQ(labels_of(fuse(mlp.p, only_gelu).program),
            (Labels{"up", "down", "down.da+up.dz+up.dbias", "down.db", "down.dbias", "up.da", "up.db"}));
  const std::array other_order{gelu_claim, weight_claim};
  EXPECT_EQ(labels_of(fuse(mlp.p, other_order).program), labels_of(fuse(mlp.p, both).program));
}

TEST(FuseBiasGradient, TheProductThatNobodyReadsAnyMoreIsNotStored) {
  const Mlp mlp;
  ASSERT_GE(named(mlp.p, "d(up)").index, 0);

  const Program fused = fuse(mlp.p, both).program;

  EXPECT_EQ(named(fused, "d(up)").index, -1);
  EXPECT_EQ(fused.values().size(), mlp.p.values().size() - 1);
  EXPECT_EQ(fused.bytes(), mlp.p.bytes() - 4 * 8 * 4);
  // Saved: writing and reading d(up); reading dz and dy once each, by the sums.
  EXPECT_EQ(cost_of(fused).bytes, cost_of(mlp.p).bytes - 4.0 * (2 * 32 + 32 + 20));
  EXPECT_EQ(cost_of(fused).flop, cost_of(mlp.p).flop);
}

TEST(FuseBiasGradient, TheFusedProgramMeansTheSame) {
  const Mlp mlp(DType::f64, f64_math);
  const Program fused = fuse(mlp.p, both).program;
  TextbookRun one(fused);
  TextbookRun two(mlp.p);
  mlp.fill(one);  // sources precede the omitted values, so their ids are equal
  mlp.fill(two);
  one.run();
  two.run();

  for (const char* name : {"d(x)", "d(w1)", "d(b1)", "d(w2)", "d(b2)", "up.dz"}) {
    SCOPED_TRACE(name);
    expect_near(one.get(named(fused, name)), two.get(named(mlp.p, name)), 1e-14);
  }
  const std::vector<double> dz = one.get(named(fused, "up.dz"));
  const std::vector<double> db = one.get(named(fused, "d(b1)"));
  for (std::size_t j = 0; j < 8; ++j) EXPECT_NEAR(db[j], dz[j] + dz[8 + j] + dz[16 + j] + dz[24 + j], 1e-14) << j;
}

TEST(FuseBiasGradient, AGemmThatHasTheSlopeAsItsEpilogueIsTakenToo) {
  Program p;
  const ValueId dy = source(p, "dy", DType::bf16, {4, 5});
  const ValueId w = source(p, "w", DType::bf16, {8, 5});
  const ValueId pre = source(p, "pre", DType::bf16, {4, 8});
  const Gemm attributes{.transpose_b = true, .epilogue = Gemm::Epilogue::gelu_gradient, .gelu_form = GeluForm::erf};
  const ValueId dz = gemm(p, attributes, f32_math, "dz", dy, w, {.pre = pre}).c;
  const ValueId db = column_sum(p, f32_math, "db", dz);

  const Fused fused = fuse(p, both);

  EXPECT_EQ(fused.rewrites, (Labels{"dz+db = gemm_gelu_bias_gradient"}));
  EXPECT_EQ(fused.program.op(0).attributes.as<Gemm>(), attributes);
  EXPECT_EQ(fused.program.op(0).inputs, (std::vector<ValueId>{dy, w, pre}));
  EXPECT_EQ(fused.program.op(0).outputs, (std::vector<ValueId>{dz, db}));
}

struct Layer {
  Program p;
  ValueId dy = source(p, "dy", DType::f32, {4, 5}, Role::gradient);
  ValueId x = source(p, "x", DType::f32, {4, 6});

  ValueId weight(const std::string& label = "dw", const Gemm& attributes = {.transpose_a = true}) {
    return gemm(p, attributes, f32_math, label, dy, x).c;
  }
  ValueId bias(const std::string& label = "db", const Math& math = f32_math) { return column_sum(p, math, label, dy); }
  [[nodiscard]] Labels fused() const { return labels_of(fuse(p, both).program); }
};

TEST(FuseBiasGradient, EitherFactorMayBeTheGradientAndEitherOpTheFirst) {
  Layer in_out;
  (void)in_out.bias();
  (void)gemm(in_out.p, {.transpose_a = true}, f32_math, "dw", in_out.x, in_out.dy);

  const Program p = fuse(in_out.p, both).program;

  EXPECT_EQ(labels_of(p), (Labels{"db+dw"}));
  EXPECT_EQ(p.op(0).attributes.as<GemmWeightBiasGradient>().gradient, Operand::b);
  EXPECT_EQ(p.op(0).inputs, (std::vector<ValueId>{in_out.x, in_out.dy}));
}

TEST(FuseBiasGradient, OthersMayReadTheGradientAndOneSumGoesWithOneProduct) {
  Layer layer;
  (void)scale(layer.p, {2.0}, f32_math, "before", layer.dy);
  (void)layer.weight();
  (void)scale(layer.p, {2.0}, f32_math, "between", layer.dy);
  (void)layer.bias();
  (void)layer.weight("dw again");

  EXPECT_EQ(layer.fused(), (Labels{"before", "dw+db", "between", "dw again"}));
}

TEST(FuseBiasGradient, AFactorThatIsNotSummedAlongItsRowsStays) {
  Layer layer;
  (void)layer.bias();
  const ValueId w = source(layer.p, "w", DType::f32, {5, 6});
  (void)gemm(layer.p, {}, f32_math, "dx", layer.dy, w);  // sums over the 5 columns

  EXPECT_EQ(layer.fused(), (Labels{"db", "dx"}));
}

TEST(FuseBiasGradient, AProductThatDoesMoreThanMultiplyStays) {
  Layer adds;
  const ValueId old = source(adds.p, "old", DType::f32, {5, 6});
  (void)gemm(adds.p, {.transpose_a = true, .beta = 1.0}, f32_math, "dw", adds.dy, adds.x, {.c_in = old});
  (void)adds.bias();
  EXPECT_EQ(adds.fused(), (Labels{"dw", "db"}));

  Layer biased;
  const ValueId row = source(biased.p, "row", DType::f32, {6});
  (void)gemm(biased.p, {.transpose_a = true, .bias = true}, f32_math, "dw", biased.dy, biased.x, {.bias = row});
  (void)biased.bias();
  EXPECT_EQ(biased.fused(), (Labels{"dw", "db"}));
}

TEST(FuseBiasGradient, SumsOfOtherArithmeticInAnotherPhaseOrOfAnotherTypeStay) {
  Layer math;
  (void)math.weight();
  (void)math.bias("db", f64_math);
  EXPECT_EQ(math.fused(), (Labels{"dw", "db"}));

  Layer phase;
  (void)phase.weight();
  phase.p.begin(Phase::setup);
  (void)phase.bias();
  EXPECT_EQ(phase.fused(), (Labels{"dw", "db"}));

  Layer type;
  (void)type.weight();
  (void)column_sum(type.p, f32_math, "db", type.dy, type.p.reserve(tensor("wide", DType::f64, {5}, Role::gradient)));
  EXPECT_EQ(type.fused(), (Labels{"dw", "db"}));
}

TEST(FuseBiasGradient, TensorsThatAreViewsBatchesOrPartsOfAPackedGradientStay) {
  Program view;
  const ValueId whole = source(view, "whole", DType::f32, {4, 9});
  TensorSpec spec = tensor("dy", DType::f32, {4, 5}, Role::gradient);
  spec.layout.strides = {9, 1};
  const ValueId dy = view.part(whole, spec, 2);
  (void)gemm(view, {.transpose_a = true}, f32_math, "dw", dy, source(view, "x", DType::f32, {4, 6}));
  (void)column_sum(view, f32_math, "db", dy);
  EXPECT_EQ(labels_of(fuse(view, both).program), (Labels{"dw", "db"}));

  Program batch;
  const ValueId many = source(batch, "dy", DType::f32, {2, 4, 5});
  (void)gemm(batch, {.transpose_a = true}, f32_math, "dw", many, source(batch, "x", DType::f32, {2, 4, 6}));
  (void)column_sum(batch, f32_math, "db", many);
  EXPECT_EQ(labels_of(fuse(batch, both).program), (Labels{"dw", "db"}));

  Layer packed;
  const ValueId all = packed.p.reserve(tensor("gradients", DType::f32, {35}, Role::gradient));
  const ValueId db = packed.p.part(all, tensor("d(b)", DType::f32, {5}, Role::gradient), 30);
  (void)packed.weight();
  (void)column_sum(packed.p, f32_math, "db", packed.dy, db);
  EXPECT_EQ(packed.fused(), (Labels{"dw", "db"}));
}

TEST(FuseBiasGradient, TensorsInAnotherMemoryStay) {
  for (const bool elsewhere : {false, true}) {
    Program p;
    TensorSpec dy = tensor("dy", DType::f32, {4, 5}, Role::gradient);
    dy.placement.memory = elsewhere ? Memory::pinned_host : Memory::device;
    const ValueId gradient = p.add(dy);
    (void)gemm(p, {.transpose_a = true}, f32_math, "dw", gradient, source(p, "x", DType::f32, {4, 6}));
    (void)column_sum(p, f32_math, "db", gradient);

    EXPECT_EQ(labels_of(fuse(p, both).program), elsewhere ? (Labels{"dw", "db"}) : (Labels{"dw+db"}));
  }
}

TEST(FuseBiasGradient, ASumThatWaitsForAnOpInBetweenStays) {
  Layer layer;
  (void)layer.weight();
  const ValueId newer = gemm(layer.p, {.beta = 1.0}, f32_math, "update", source(layer.p, "a", DType::f32, {4, 2}),
                             source(layer.p, "b", DType::f32, {2, 5}), {.c_in = layer.dy})
                            .c;
  (void)column_sum(layer.p, f32_math, "of newer", newer);
  (void)layer.bias("of older");

  EXPECT_EQ(layer.fused(), (Labels{"dw", "update", "of newer", "of older"}));
}

// dy w -> d(hidden), gelu_backward -> dz, column_sum -> db.
struct GeluBackward {
  Program p;
  ValueId dy = source(p, "dy", DType::f32, {4, 5}, Role::gradient);
  ValueId w = source(p, "w", DType::f32, {5, 8}, Role::parameter);
  ValueId pre = source(p, "pre", DType::f32, {4, 8});
  ValueId dhidden = gemm(p, {}, f32_math, "product", dy, w).c;

  [[nodiscard]] Labels fused() const { return labels_of(fuse(p, both).program); }
};

TEST(FuseBiasGradient, AProductWithASecondReaderStaysStored) {
  GeluBackward read;
  const ValueId dz = gelu_backward(read.p, {}, f32_math, "dz", read.pre, read.dhidden);
  (void)column_sum(read.p, f32_math, "db", dz);
  ASSERT_EQ(read.fused(), (Labels{"product+dz+db"}));

  (void)scale(read.p, {2.0}, f32_math, "second", read.dhidden);
  EXPECT_EQ(read.fused(), (Labels{"product", "dz", "db", "second"}));

  GeluBackward twice;
  (void)column_sum(twice.p, f32_math, "db", gelu_backward(twice.p, {}, f32_math, "dz", twice.dhidden, twice.dhidden));
  EXPECT_EQ(twice.fused(), (Labels{"product", "dz", "db"}));

  GeluBackward viewed;
  const ValueId half = viewed.p.part(viewed.dhidden, tensor("half", DType::f32, {2, 8}, Role::gradient), 0);
  (void)column_sum(viewed.p, f32_math, "db", gelu_backward(viewed.p, {}, f32_math, "dz", viewed.pre, viewed.dhidden));
  (void)scale(viewed.p, {2.0}, f32_math, "of half", half);
  EXPECT_EQ(viewed.fused(), (Labels{"product", "dz", "db", "of half"}));
}

TEST(FuseBiasGradient, WithoutAColumnSumOrWithThePreActivationMadeInBetweenItStays) {
  GeluBackward alone;
  (void)gelu_backward(alone.p, {}, f32_math, "dz", alone.pre, alone.dhidden);
  EXPECT_EQ(alone.fused(), (Labels{"product", "dz"}));

  GeluBackward late;
  const ValueId scaled = scale(late.p, {2.0}, f32_math, "pre.scaled", late.pre);
  (void)column_sum(late.p, f32_math, "db", gelu_backward(late.p, {}, f32_math, "dz", scaled, late.dhidden));
  EXPECT_EQ(late.fused(), (Labels{"product", "pre.scaled", "dz", "db"}));

  GeluBackward mixed;
  const ValueId narrow = source(mixed.p, "narrow", DType::bf16, {4, 8});
  (void)column_sum(mixed.p, f32_math, "db", gelu_backward(mixed.p, {}, f32_math, "dz", narrow, mixed.dhidden));
  EXPECT_EQ(mixed.fused(), (Labels{"product", "dz", "db"}));
}

}  // namespace fuse_bias_gradient_test
}  // namespace gpubench::testing
