#include "harness/run/case_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "harness/core/error.h"
#include "harness/run/memory_pool.h"
#include "tests/fakes/sim/sim_backend.h"

namespace gpubench {
namespace {

TEST(Guard, CountsDamagedBytes) {
  std::array<std::byte, guard_bytes> zone{};
  write_guard(zone);
  EXPECT_EQ(damaged_bytes(zone), 0);
  zone[5] ^= std::byte{1};
  zone[255] ^= std::byte{128};
  EXPECT_EQ(damaged_bytes(zone), 2);
}

TEST(Poison, CoversEveryElementOfAStorageAndNothingElse) {
  for (const std::size_t elements : {std::size_t{7}, std::size_t{100'000}}) {
    SimBackend backend(sim::parse_script(""));
    Arena arena(backend);
    GuardedBlock block(backend, arena, "x", elements * 2);
    block.poison(DType::bf16);
    const HostBytes content = block.read();
    for (std::size_t i = 0; i < elements; ++i) ASSERT_TRUE(is_poison(DType::bf16, content.bytes.data() + 2 * i)) << i;
    EXPECT_EQ(block.check_guards(), "");
  }
}

TEST(Poison, OfAStretchCoversItAlone) {
  SimBackend backend(sim::parse_script(""));
  Arena arena(backend);
  for (const std::size_t elements : {std::size_t{1000}, std::size_t{100'001}}) {
    std::vector<int> times(elements);
    for (std::int64_t part = 0; part < 16; ++part) {
      GuardedBlock block(backend, arena, "x", elements * 2);
      block.modify([](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0}); });
      block.poison(DType::bf16, {part, 16});
      const HostBytes content = block.read();
      for (std::size_t i = 0; i < elements; ++i)
        times[i] += is_poison(DType::bf16, content.bytes.data() + 2 * i) ? 1 : 0;
      EXPECT_EQ(block.check_guards(), "");
    }
    // 2,000 bytes in stretches of whole cache lines; the last has the rest.
    EXPECT_EQ(times, std::vector<int>(elements, 1)) << elements;
  }
  GuardedBlock small(backend, arena, "x", 512);
  small.poison(DType::f32, {3, 16});
  for (std::size_t i = 0; i < 128; ++i) EXPECT_TRUE(is_poison(DType::f32, small.read().bytes.data() + 4 * i)) << i;
}

TEST(Poison, FillsBytesThatTwoElementsShare) {
  SimBackend backend(sim::parse_script(""));
  Arena arena(backend);
  GuardedBlock block(backend, arena, "x", 5);
  block.poison(DType::f4_e2m1);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_poison(DType::f4_e2m1, block.read().bytes.data(), i)) << i;
}

TEST(Reverse, SwapsElementsNotBytes) {
  std::array<std::uint16_t, 3> values{0x0102, 0x0304, 0x0506};
  reverse_elements(DType::bf16, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::array<std::uint16_t, 3>{0x0506, 0x0304, 0x0102}));
}

TEST(Reverse, SwapsElementsThatShareAByte) {
  std::array<std::byte, 3> values{std::byte{0x10}, std::byte{0x32}, std::byte{0x54}};
  reverse_elements(DType::f4_e2m1, values);
  EXPECT_EQ(values, (std::array<std::byte, 3>{std::byte{0x45}, std::byte{0x23}, std::byte{0x01}}));
}

TEST(Arena, HandsOutAlignedDisjointMemoryAndReusesIt) {
  SimBackend backend(sim::parse_script(""));
  Arena arena(backend);
  std::byte* const a = arena.take(100);
  std::byte* const b = arena.take(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 256, 0U);
  EXPECT_GE(b - a, 100);

  const std::size_t held = arena.held_bytes();
  arena.reset(held);
  EXPECT_EQ(arena.take(100), a);
  EXPECT_EQ(arena.held_bytes(), held);
}

class WithPinnedMemory final : public SimBackend {
 public:
  WithPinnedMemory() : SimBackend(sim::parse_script("")) {}
  Buffer allocate_in(Memory memory, std::size_t bytes) override {
    if (memory != Memory::pinned_host) return SimBackend::allocate_in(memory, bytes);
    pinned = allocate(bytes);
    return pinned;
  }
  Buffer pinned;
};

TEST(Arena, TakesEachKindOfMemoryFromChunksOfItsOwn) {
  WithPinnedMemory backend;
  Arena arena(backend);
  const std::byte* const own = arena.take(100);
  const std::byte* const pinned = arena.take(100, Memory::pinned_host);
  const std::byte* const more = arena.take(100);

  EXPECT_EQ(pinned, backend.pinned.data());
  EXPECT_EQ(more - own, 256);
  EXPECT_THROW((void)arena.take(100, Memory::peer), Unsupported);
}

TEST(Arena, GivesBackWhatIsBeyondTheLimit) {
  SimBackend backend(sim::parse_script(""));
  Arena arena(backend);
  (void)arena.take(100);
  arena.reset(0);
  EXPECT_EQ(arena.held_bytes(), 0U);
}

}  // namespace
}  // namespace gpubench
