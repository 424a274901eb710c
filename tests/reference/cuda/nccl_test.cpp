// The real NCCL without a GPU: it is installed, has the called functions, and matches the compiled version.
#include "reference/cuda/nccl.h"

#include <gtest/gtest.h>

namespace gpubench::cuda {
namespace nccl_test {

TEST(NcclCalls, AreFoundInTheLibraryThatThisIsLinkedWith) {
  const NcclCalls& calls = nccl_calls();
  EXPECT_EQ(calls.get_version, &ncclGetVersion);  // the linker resolves the same functions
  EXPECT_EQ(calls.all_reduce, &ncclAllReduce);
  EXPECT_EQ(calls.comm_init_rank_config, &ncclCommInitRankConfig);
  EXPECT_EQ(calls.recv, &ncclRecv);
}

TEST(NcclCalls, AnswerWithTheVersionOfTheHeader) {
  int version = 0;
  EXPECT_EQ(nccl_calls().get_version(&version), ncclSuccess);
  EXPECT_GE(version, NCCL_VERSION_CODE);
  EXPECT_EQ(nccl_version(nccl_calls()), std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) +
                                            "." + std::to_string(version % 100));
}

TEST(NcclCalls, AnswerWithoutADriverInsteadOfFailing) {
  ncclUniqueId id{};
  EXPECT_EQ(nccl_calls().get_unique_id(&id), ncclSuccess);
  EXPECT_STREQ(nccl_calls().get_error_string(ncclInvalidUsage), ncclGetErrorString(ncclInvalidUsage));
}

}  // namespace nccl_test
}  // namespace gpubench::cuda
