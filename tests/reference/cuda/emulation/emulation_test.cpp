// The emulated GPU detects faults in blocks and warps: each kernel here has one fault or none.
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/reduce.cuh"
#include "tests/reference/cuda/emulation/faulty_kernel.cuh"

namespace gpubench::cuda {
namespace {

using emulation::Args;
using emulation::every_order;
using emulation::expect_fault;
using emulation::fault_of;
using emulation::Numbers;
using emulation::Schedule;

struct Row {
  Shared<int> at[64];
};

__global__ void reverse_row(Args args) {
  auto& row = shared_storage<Row>();
  row.at[threadIdx.x] = load(args.from + threadIdx.x);
  __syncthreads();
  store<int>(args.to + threadIdx.x, row.at[63 - threadIdx.x]);
}

__global__ void reverse_row_without_barrier(Args args) {
  auto& row = shared_storage<Row>();
  row.at[threadIdx.x] = load(args.from + threadIdx.x);
  store<int>(args.to + threadIdx.x, row.at[63 - threadIdx.x]);
}

// Reads its own value of the previous turn, which a neighbour overwrites.
__global__ void second_turn_without_barrier(Args args) {
  auto& row = shared_storage<Row>();
  for (int turn = 0; turn < 2; ++turn) {
    row.at[threadIdx.x] = load(args.from + threadIdx.x);
    __syncthreads();
    store<int>(args.to + threadIdx.x, row.at[63 - threadIdx.x]);
  }
}

__global__ void warp_exchange(Args args) {
  auto& row = shared_storage<Row>();
  row.at[threadIdx.x] = load(args.from + threadIdx.x);
  __syncwarp();
  store<int>(args.to + threadIdx.x, row.at[threadIdx.x ^ 1U]);
}

__global__ void block_exchange_by_warp_barrier(Args args) {
  auto& row = shared_storage<Row>();
  row.at[threadIdx.x] = load(args.from + threadIdx.x);
  __syncwarp();
  store<int>(args.to + threadIdx.x, row.at[threadIdx.x ^ 32U]);
}

__global__ void reads_unwritten(Args args) {
  auto& row = shared_storage<Row>();
  if (threadIdx.x < 63) row.at[threadIdx.x] = 1;
  __syncthreads();
  store<int>(args.to + threadIdx.x, row.at[63]);
}

TEST(EmulatedBlock, ACorrectKernelGivesItsResultInEveryOrder) {
  for (const Schedule& schedule : every_order) {
    Numbers numbers;
    EXPECT_EQ(fault_of(reverse_row, {1, 64}, numbers.args, schedule), "");
    for (int i = 0; i < 64; ++i) EXPECT_EQ(numbers.to[static_cast<std::size_t>(i)], 63 - i);
  }
}

TEST(EmulatedBlock, AMissingBarrierBetweenWriteAndReadIsAFault) {
  Numbers numbers;
  for (const Schedule& schedule : every_order) {
    const std::string fault = fault_of(reverse_row_without_barrier, {1, 64}, numbers.args, schedule);
    const bool unwritten = fault.find("no thread of its block has written") != std::string::npos;
    const bool raced = fault.find("with no barrier since") != std::string::npos;
    EXPECT_TRUE(unwritten || raced) << fault;
  }
}

TEST(EmulatedBlock, AMissingBarrierBeforeTheNextTurnIsAFault) {
  Numbers numbers;
  expect_fault(second_turn_without_barrier, {1, 64}, numbers.args, "with no barrier since");
}

TEST(EmulatedBlock, AWarpBarrierOrdersAWarpOnly) {
  Numbers numbers;
  for (const Schedule& schedule : every_order) {
    EXPECT_EQ(fault_of(warp_exchange, {1, 64}, numbers.args, schedule), "");
    EXPECT_NE(fault_of(block_exchange_by_warp_barrier, {1, 64}, numbers.args, schedule), "");
  }
}

TEST(EmulatedBlock, SharedMemoryThatNobodyWroteIsAFault) {
  Numbers numbers;
  expect_fault(reads_unwritten, {1, 64}, numbers.args, "reads shared memory that no thread of its block has written");
}

__global__ void leaves_before_barrier(Args /*args*/) {
  if (threadIdx.x == 5) return;
  __syncthreads();
}

__global__ void two_barriers(Args /*args*/) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(EmulatedBlock, ABarrierThatAThreadNeverReachesIsAFaultNamingIt) {
  expect_fault(leaves_before_barrier, {1, 64}, {}, "but thread 5 has ended");
}

TEST(EmulatedBlock, TwoDifferentBarriersAtTheSameTimeAreAFault) {
  expect_fault(two_barriers, {1, 64}, {}, "but thread 0 at the one in emulation_test.cpp");
}

__global__ void sums_warp(Args args) {
  const int sum = warp_sum(load(args.from + threadIdx.x));
  store(args.to + threadIdx.x, sum);
}

__global__ void shuffles_in_half_a_warp(Args args) {
  if (threadIdx.x < 16) store(args.to + threadIdx.x, __shfl_xor_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 8));
}

__global__ void shuffles_from_outside(Args args) {
  if (threadIdx.x < 16) store(args.to + threadIdx.x, __shfl_sync(0xFFFFU, static_cast<int>(threadIdx.x), 20));
}

__global__ void shuffles_outside_of_mask(Args args) {
  store(args.to + threadIdx.x, __shfl_xor_sync(0xFFFFU, static_cast<int>(threadIdx.x), 1));
}

TEST(EmulatedWarp, ShufflesDeliverInEveryOrder) {
  for (const Schedule& schedule : every_order) {
    Numbers numbers;
    EXPECT_EQ(fault_of(sums_warp, {1, 64}, numbers.args, schedule), "");
    EXPECT_EQ(numbers.to[3], 31 * 32 / 2);
    EXPECT_EQ(numbers.to[63], 31 * 32 / 2 + 32 * 32);
  }
}

TEST(EmulatedWarp, AShuffleThatLanesDontReachIsAFault) {
  Numbers numbers;
  expect_fault(shuffles_in_half_a_warp, {1, 32}, numbers.args, "waits for lane 16");
}

TEST(EmulatedWarp, AShuffleWithLanesThatDontExistIsAFault) {
  Numbers numbers;
  expect_fault(sums_warp, {1, 48}, numbers.args, "its warp has only 16 lanes");
}

TEST(EmulatedWarp, AShuffleFromOutsideOfItsMaskIsAFault) {
  Numbers numbers;
  expect_fault(shuffles_from_outside, {1, 32}, numbers.args, "reads lane 20, which isn't in the mask");
  expect_fault(shuffles_outside_of_mask, {1, 32}, numbers.args, "isn't in the mask");
}

}  // namespace
}  // namespace gpubench::cuda
