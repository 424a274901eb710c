#include "harness/run/memory_pool.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/fakes/sim/sim_backend.h"

namespace gpubench {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20U;

TEST(HostMemory, ABlockThatNobodyHoldsIsHandedOutAgain) {
  SimBackend backend(sim::parse_script(""));
  HostMemory memory(backend);
  const std::byte* const first = memory.take(3 * mebi).bytes.data();
  EXPECT_EQ(memory.take(4 * mebi).bytes.data(), first);  // rounded up to 4 MiB
  EXPECT_EQ(memory.take(mebi).bytes.data(), first);
  EXPECT_EQ(memory.held_bytes(), 4 * mebi);
}

TEST(HostMemory, BlocksThatAreHeldAreApart) {
  SimBackend backend(sim::parse_script(""));
  HostMemory memory(backend);
  const HostBlock one = memory.take(2 * mebi);
  const HostBlock other = memory.take(2 * mebi);
  EXPECT_EQ(one.bytes.size(), 2 * mebi);
  EXPECT_TRUE(other.bytes.data() + 2 * mebi <= one.bytes.data() || one.bytes.data() + 2 * mebi <= other.bytes.data());
  memory.trim(0);  // keeps blocks in use
  EXPECT_EQ(memory.held_bytes(), 4 * mebi);
}

TEST(HostMemory, AscendingSizesLeaveNoSmallerBlocksBehind) {
  SimBackend backend(sim::parse_script(""));
  HostMemory memory(backend);
  for (std::size_t size = mebi; size <= 64 * mebi; size *= 2) (void)memory.take(size);
  EXPECT_EQ(memory.held_bytes(), 64 * mebi);
  memory.trim(0);
  EXPECT_EQ(memory.held_bytes(), 0U);
}

TEST(HostMemory, ABlockOutlivesWhatItWasTakenFrom) {
  SimBackend backend(sim::parse_script(""));
  std::optional<HostMemory> memory(backend);
  const HostBlock block = memory->take(mebi);
  memory.reset();
  block.bytes.back() = std::byte{7};
  EXPECT_EQ(block.bytes.back(), std::byte{7});
}

/// Has `most` bytes of pinned memory.
class Pinning : public SimBackend {
 public:
  explicit Pinning(std::size_t most) : SimBackend(sim::parse_script("")), left_(most) {}
  Buffer allocate_in(Memory memory, std::size_t bytes) override {
    if (memory != Memory::pinned_host || bytes > left_) throw BackendError("no more of it");
    left_ -= bytes;
    return allocate(bytes);
  }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  std::size_t left_;
};

TEST(HostMemory, IsPinnedWhereTheBackendHasSuchMemoryAndOrdinaryBeyondIt) {
  Pinning backend(8 * mebi);
  HostMemory memory(backend);
  const HostBlock pinned = memory.take(8 * mebi);
  EXPECT_EQ(backend.left(), 0U);
  const HostBlock ordinary = memory.take(8 * mebi);
  ordinary.bytes.front() = std::byte{1};
  EXPECT_EQ(memory.held_bytes(), 16 * mebi);
}

}  // namespace
}  // namespace gpubench
