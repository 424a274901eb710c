#include <gtest/gtest.h>

#include "reference/ops/definition.h"
#include "reference/ops/elementwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

TEST(Definitions, AreInAlphabeticalOrderWithoutRepeats) {
  const auto all = definitions();
  ASSERT_GE(all.size(), 2U);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]->kind().name, all[i]->kind().name);
}

TEST(Definitions, HoldTheWholeOpSet) {
  for (const std::string_view name : {"adamw",
                                      "add",
                                      "attention_backward",
                                      "attention_forward",
                                      "cast",
                                      "clip",
                                      "column_sum",
                                      "conv2d_backward_data",
                                      "conv2d_backward_filter",
                                      "conv2d_forward",
                                      "copy",
                                      "cross_entropy_backward",
                                      "cross_entropy_forward",
                                      "embedding_backward",
                                      "embedding_forward",
                                      "gelu_backward",
                                      "gelu_forward",
                                      "gemm",
                                      "gradient_norm",
                                      "layer_norm_backward",
                                      "layer_norm_forward",
                                      "reorder",
                                      "scale",
                                      "transpose",
                                      "triad"}) {
    EXPECT_EQ(definition(OpKind{name}).kind().name, name);
  }
  EXPECT_EQ(definitions().size(), 25U);
}

TEST(Definitions, AnUnknownKindIsAnErrorNamingTheKnownOnes) {
  const std::string message = program_error([] { (void)definition(OpKind{"gem"}); });

  EXPECT_EQ(message.rfind("no op 'gem'; expected one of: adamw, add, ", 0), 0U) << message;
}

TEST(Definitions, TheCostOfAProgramCountsTimedOpsOnly) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {10});
  program.begin(Phase::setup);
  const ValueId y = copy(program, "set-up", x);
  program.begin(Phase::timed);
  (void)scale(program, 2.0, f32_math, "step", y);

  EXPECT_EQ(cost_of(program).bytes, 80.0);
  EXPECT_EQ(cost_of(program).flop, 10.0);
}

}  // namespace
}  // namespace gpubench::testing
