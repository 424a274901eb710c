// The emulated GPU detects forbidden accesses to global memory, and computes within CUDA's bounds.
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "tests/reference/cuda/emulation/faulty_kernel.cuh"

namespace gpubench::cuda {
namespace {

using emulation::Args;
using emulation::every_order;
using emulation::expect_fault;
using emulation::fault_of;
using emulation::MemoryWatch;
using emulation::Numbers;
using emulation::Region;
using emulation::Schedule;

__global__ void moves_one_too_many(Args args) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= args.count) store(args.to + i, 1);
}

__global__ void moves_backwards(Args args) { store(args.to + threadIdx.x, load(args.from + threadIdx.x - 1)); }

__global__ void writes_input(Args args) { store(const_cast<int*>(args.from) + threadIdx.x, 0); }

__global__ void reads_packs(Args args) {
  store(args.to + threadIdx.x, load_pack<4>(args.from + 1 + threadIdx.x * 4)[0]);
}

__global__ void all_write_one(Args args) { store(args.to, 1); }

__global__ void passes_on_between_blocks(Args args) {
  store(args.to + blockIdx.x, 1);
  if (blockIdx.x > 0) store(args.to + blockIdx.x, load(args.to + blockIdx.x - 1));
}

__global__ void counts(Args args) { atomic_add(args.to, 1); }

std::vector<Region> regions_of(const Numbers& numbers) {
  return {{reinterpret_cast<const std::byte*>(numbers.from.data()), numbers.from.size() * sizeof(int), false, "'from'"},
          {reinterpret_cast<const std::byte*>(numbers.to.data()), numbers.to.size() * sizeof(int), true, "'to'"}};
}

TEST(EmulatedMemory, AWriteBehindTheEndIsAFaultThatSaysWhere) {
  Numbers numbers;
  const MemoryWatch watch(regions_of(numbers));
  numbers.args.count = 63;
  EXPECT_EQ(fault_of(moves_one_too_many, {3, 32}, numbers.args), "");
  numbers.args.count = 64;
  expect_fault(moves_one_too_many, {3, 32}, numbers.args,
               "block 2, thread 0: writes 4 bytes that the launch was not given");
}

TEST(EmulatedMemory, AReadBeforeTheBeginningIsAFault) {
  Numbers numbers;
  const MemoryWatch watch(regions_of(numbers));
  expect_fault(moves_backwards, {1, 64}, numbers.args, "thread 0: reads 4 bytes that the launch was not given");
}

TEST(EmulatedMemory, AWriteToAnInputIsAFault) {
  Numbers numbers;
  const MemoryWatch watch(regions_of(numbers));
  expect_fault(writes_input, {1, 64}, numbers.args, "writes 4 bytes of an input");
}

TEST(EmulatedMemory, AMisalignedPackIsAFault) {
  alignas(16) static int numbers[16] = {};
  int to[2] = {};
  expect_fault(reads_packs, {1, 2}, {numbers, to, 0}, "an access of 16 bytes isn't aligned to 16");
}

TEST(EmulatedMemory, WhatTwoThreadsWriteIsAFault) {
  Numbers numbers;
  const MemoryWatch watch(regions_of(numbers));
  expect_fault(all_write_one, {1, 64}, numbers.args, "wrote in the same launch");
}

TEST(EmulatedMemory, WhatPassesBetweenBlocksOfOneLaunchIsAFault) {
  Numbers numbers;
  const MemoryWatch watch(regions_of(numbers));
  expect_fault(passes_on_between_blocks, {4, 1}, numbers.args, "of another block");
}

TEST(EmulatedMemory, AtomicsMayMeet) {
  for (const Schedule& schedule : every_order) {
    Numbers numbers;
    const MemoryWatch watch(regions_of(numbers));
    numbers.to[0] = 0;
    EXPECT_EQ(fault_of(counts, {4, 64}, numbers.args, schedule), "");
    EXPECT_EQ(numbers.to[0], 256);
  }
}

TEST(EmulatedMachine, ALaunchThatNoGpuTakesIsAFault) {
  EXPECT_NE(fault_of(counts, {1, 1025}, {}).find("expected 1 to 2^31 - 1 blocks of 1 to 1024"), std::string::npos);
}

// By hand: 1 + 2^-8 is halfway between bf16's 1 and 1 + 2^-7, and 1 is even; 1 + 3 * 2^-8 rounds up to 1 + 2^-6.
TEST(EmulatedNumbers, RoundToNearestEvenOnce) {
  EXPECT_EQ(emulation::bf16_bits(1.00390625F), 0x3F80);
  EXPECT_EQ(emulation::bf16_bits(1.01171875F), 0x3F82);
  EXPECT_EQ(emulation::bf16_bits(1.00390625 + 1e-12), 0x3F81);  // rounding via f32 would lose it
  EXPECT_EQ(emulation::bf16_bits(-3.4e38F), 0xFF80);            // beyond the largest by more than half a step
  EXPECT_EQ(emulation::f16_bits(65519.0F), 0x7BFF);
  EXPECT_EQ(emulation::f16_bits(65520.0F), 0x7C00);
  EXPECT_EQ(emulation::f16_bits(0x1p-24F), 0x0001);
  EXPECT_EQ(emulation::f16_bits(0x1p-25F), 0x0000);
  EXPECT_EQ(emulation::f16_bits(0x1.8p-25F), 0x0001);
  EXPECT_EQ(emulation::f16_bits(0x1p-14F), 0x0400);
  EXPECT_EQ(emulation::f16_bits(1.0F), 0x3C00);
  EXPECT_EQ(emulation::float_of_f16(0x0001), 0x1p-24F);
  EXPECT_EQ(emulation::float_of_f16(0xC000), -2.0F);
}

TEST(EmulatedNumbers, ApproximateFunctionsStayWithinWhatIsPromised) {
  bool moved = false;
  for (float x = -20.0F; x < 20.0F; x += 0.37F) {
    const float exact = std::exp(x);
    const float ulp = std::nextafter(exact, 2.0F * exact) - exact;
    EXPECT_LE(std::fabs(full_exp(x) - exact), 2.0F * ulp);
    moved = moved || full_exp(x) != exact;
  }
  EXPECT_TRUE(moved);
}

}  // namespace
}  // namespace gpubench::cuda
