// Gradient sums fused with the op of their second summand: a layer norm next to a residual, and a tied embedding.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "reference/ops/transform/fuse.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace fuse_gradient_sum_test {

constexpr std::array claims{FusionClaim{residual_norm_backward_kind, true},
                            FusionClaim{embedding_backward_add_kind, true}};

// y = (x + norm(x) w) table^T with x = table[tokens], and its backward by differentiate().
struct TiedModel {
  Program p;
  ValueId table, tokens, gamma, beta, w, dy;

  explicit TiedModel(DType type = DType::f32, const Math& math = f32_math) {
    table = source(p, "table", type, {7, 6}, Role::parameter);
    tokens = source(p, "tokens", DType::i32, {4});
    gamma = source(p, "gamma", type, {6}, Role::parameter);
    beta = source(p, "beta", type, {6}, Role::parameter);
    w = source(p, "w", type, {6, 6}, Role::parameter);
    dy = source(p, "dy", type, {4, 7}, Role::gradient);
    const ValueId x = embedding_forward(p, "embedding", table, tokens);
    const ValueId normed = layer_norm_forward(p, {}, math, "ln", x, gamma, beta).y;
    const ValueId fed = gemm(p, {}, math, "fed", normed, w).c;
    const ValueId sum = add(p, math, "residual", x, fed);
    const ValueId y = gemm(p, {.transpose_b = true}, math, "head", sum, table).c;
    (void)differentiate(p, std::array{Seed{y, dy}}, std::array{table, gamma, beta, w});
  }
  void fill(TextbookRun& run) const {
    for (const ValueId id : {table, gamma, beta, w, dy})
      run.set(id, spread(p.spec(id).shape.elements(), static_cast<std::uint64_t>(id.index + 1)));
    run.set(tokens, {5, 0, 5, 2});
  }
};

TEST(FuseGradientSums, TheResidualsGradientIsAddedInTheNormsAndTheEmbeddingsInTheTablesOwn) {
  const TiedModel model;

  const Fused fused = fuse(model.p, claims);

  EXPECT_EQ(fused.rewrites, (Labels{"ln.backward+grad.embedding = residual_norm_backward",
                                    "embedding.backward+grad.table = embedding_backward_add"}));
  EXPECT_EQ(fused.program.ops().size(), model.p.ops().size() - 2);
  const Program& p = fused.program;
  for (const OpCall& op : p.ops()) {
    if (op.kind == residual_norm_backward_kind) {
      EXPECT_EQ(p.spec(op.output("dx")).name, "d(embedding)");
      EXPECT_EQ(p.spec(op.input("dr")).name, "d(residual)");
    } else if (op.kind == embedding_backward_add_kind) {
      EXPECT_EQ(p.value(op.output("dtable'")).updates, op.input("dtable"));
      EXPECT_EQ(p.spec(op.input("dtable")).name, "d(table)");
      EXPECT_EQ(p.spec(op.output("dtable'")).name, "d(table).2");
    }
  }
}

TEST(FuseGradientSums, TheFusedProgramMeansTheSame) {
  const TiedModel model(DType::f64, f64_math);
  const Fused fused = fuse(model.p, claims);
  TextbookRun apart(model.p);
  TextbookRun together(fused.program);
  model.fill(apart);
  model.fill(together);
  apart.run();
  together.run();

  for (const char* gradient : {"d(table).2", "ln.backward.dgamma", "ln.backward.dbeta", "d(w)"})
    expect_near(together.get(named(fused.program, gradient)), apart.get(named(model.p, gradient)), 1e-14);
}

TEST(FuseGradientSums, TheSummandsAreNotStored) {
  const TiedModel model;
  const Program fused = fuse(model.p, claims).program;

  // The norm's dx [4, 6]; the embedding's table [7, 6], and a table for the sum.
  EXPECT_EQ(model.p.bytes() - fused.bytes(), (4 * 6 + 2 * 7 * 6) * 4);
  std::set<std::string> names;
  for (const Value& value : fused.values()) names.insert(value.spec.name);
  EXPECT_FALSE(names.contains("ln.backward.dx"));
  EXPECT_FALSE(names.contains("embedding.backward"));
}

TEST(FuseGradientSums, GradientsThatAreReadElsewhereStay) {
  TiedModel model;
  Program& p = model.p;
  (void)scale(p, {2.0}, f32_math, "of the norm's", named(p, "ln.backward.dx"));
  (void)scale(p, {2.0}, f32_math, "of the head's", named(p, "d(table)"));

  EXPECT_TRUE(fuse(p, claims).rewrites.empty());
}

TEST(FuseGradientSums, ASourceIsNotAddedToInItsPlace) {
  Program p;
  const ValueId dy = source(p, "dy", DType::f32, {3, 2});
  const ValueId tokens = source(p, "tokens", DType::i32, {3});
  const ValueId given = source(p, "given", DType::f32, {4, 2}, Role::gradient);
  (void)add(p, f32_math, "sum", given, embedding_backward(p, f32_math, "scatter", dy, tokens, 4));

  EXPECT_TRUE(fuse(p, claims).rewrites.empty());
}

TEST(FuseGradientSums, AResidualThatComesLaterThanTheNormsGradientStaysAnAdd) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 6});
  const ValueId row = source(p, "row", DType::f32, {6});
  const ValueId statistic = source(p, "statistic", DType::f32, {4});
  const ValueId dx = layer_norm_backward(p, {}, f32_math, "norm", x, x, row, statistic, statistic).dx;
  const ValueId later = scale(p, {2.0}, f32_math, "later", x);
  (void)add(p, f32_math, "sum", dx, later);

  EXPECT_EQ(labels_of(fuse(p, claims).program), (Labels{"norm", "later", "sum"}));
}

TEST(FuseGradientSums, WhichSideOfTheAddIsTheNormsDoesNotMatterAndTwiceTheSameStays) {
  for (const bool first : {true, false}) {
    Program p;
    const ValueId x = source(p, "x", DType::f32, {4, 6});
    const ValueId row = source(p, "row", DType::f32, {6});
    const ValueId statistic = source(p, "statistic", DType::f32, {4});
    const ValueId dx = layer_norm_backward(p, {}, f32_math, "norm", x, x, row, statistic, statistic).dx;
    (void)(first ? add(p, f32_math, "sum", dx, x) : add(p, f32_math, "sum", x, dx));
    EXPECT_EQ(labels_of(fuse(p, claims).program), (Labels{"norm+sum"}));
  }
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 6});
  const ValueId row = source(p, "row", DType::f32, {6});
  const ValueId statistic = source(p, "statistic", DType::f32, {4});
  const ValueId dx = layer_norm_backward(p, {}, f32_math, "norm", x, x, row, statistic, statistic).dx;
  (void)add(p, f32_math, "sum", dx, dx);
  EXPECT_TRUE(fuse(p, claims).rewrites.empty());
}

}  // namespace fuse_gradient_sum_test
}  // namespace gpubench::testing
