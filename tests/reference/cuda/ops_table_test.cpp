// What the CUDA backend says that it has.
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/cuda/kernel.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench {
namespace ops_table_test {

TEST(CudaOpsTable, EveryFusedOpThatIsClaimedIsImplementedAndKnownToFuse) {
  EXPECT_FALSE(cuda::fused_ops().empty());
  for (const FusionClaim& claim : cuda::fused_ops()) {
    EXPECT_EQ(cuda::implementation_of(claim.kind).kind, claim.kind);
  }
  EXPECT_NO_THROW((void)fuse(Program(), cuda::fused_ops()));
}

TEST(CudaOpsTable, AnOpThatIsNotThereIsUnsupportedByName) {
  try {
    (void)cuda::implementation_of(OpKind{"norm_gemm"});
    FAIL() << "norm_gemm was found";
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("norm_gemm"), std::string::npos) << e.what();
  }
}

TEST(CudaOpsTable, EveryFusedOpThatThereIsIsClaimedWithNoGainMeasuredYet) {
  for (const FusionRule& rule : fusion_rules()) {
    const auto claims = cuda::fused_ops();
    const auto claim =
        std::find_if(claims.begin(), claims.end(), [&](const FusionClaim& c) { return c.kind == rule.kind; });
    ASSERT_NE(claim, claims.end()) << rule.kind.name;
    EXPECT_FALSE(claim->measured) << rule.kind.name;
  }
}

}  // namespace ops_table_test
}  // namespace gpubench
