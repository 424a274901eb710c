#include "reference/ops/transform/fuse.h"

#include <gtest/gtest.h>

#include <array>

#include "reference/ops/elementwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

TEST(Fuse, WithoutClaimsTheProgramIsUnchanged) {
  Program p;
  scale(p, 2.0, f32_math, "y", source(p, "x", DType::f32, {4}));

  const Fused fused = fuse(p, {});

  EXPECT_EQ(fused.program.to_string(), p.to_string());
  EXPECT_TRUE(fused.rewrites.empty());
}

TEST(Fuse, AClaimThatNoRewriteKnowsIsAnErrorNamingIt) {
  const std::array claims{OpKind{"norm_gemm"}};

  const std::string message = program_error([&] { (void)fuse(Program(), claims); });

  EXPECT_NE(message.find("'norm_gemm'"), std::string::npos) << message;
}

}  // namespace
}  // namespace gpubench::testing
