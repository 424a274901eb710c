// Capabilities reported by the CUDA backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "reference/cuda/kernel.h"
#include "reference/ops/transform/fuse.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace kernel_test {

TEST(CudaOps, EachIsPlannedInOneFile) {
  std::set<std::string_view> seen;
  for (const cuda::Ops& file : cuda::op_files()) {
    for (const cuda::OpImplementation& op : file) EXPECT_TRUE(seen.insert(op.kind.name).second) << op.kind.name;
  }
}

TEST(CudaOps, EveryFusedOpThatIsClaimedIsKnownToFuse) {
  const std::vector<FusionClaim> claims = fusion_claims(cuda::op_files());
  EXPECT_FALSE(claims.empty());
  EXPECT_NO_THROW((void)fuse(Program(), claims));
}

TEST(CudaOps, AnOpThatIsNotThereIsUnsupportedByName) {
  const std::string thrown = thrown_text<Unsupported>([&] { (void)cuda::implementation_of(OpKind{"norm_gemm"}); });
  EXPECT_NE(thrown.find("norm_gemm"), std::string::npos) << thrown;
}

TEST(CudaOps, EveryFusedOpThatThereIsIsClaimedWithNoGainMeasuredYet) {
  const std::vector<FusionClaim> claims = fusion_claims(cuda::op_files());
  for (const FusionRule& rule : fusion_rules()) {
    const auto claim =
        std::find_if(claims.begin(), claims.end(), [&](const FusionClaim& c) { return c.kind == rule.kind; });
    ASSERT_NE(claim, claims.end()) << rule.kind.name;
    EXPECT_FALSE(claim->measured) << rule.kind.name;
  }
}

}  // namespace kernel_test
}  // namespace gpubench
