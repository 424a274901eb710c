// The CUDA backend's fill, gather, scan and fingerprint kernels, against the host's functions.
#include <gtest/gtest.h>

#include <array>

#include "reference/cuda/kernels/runtime.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulation/machine.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/examined_memory.h"

namespace gpubench {
namespace storage_test {

using cuda::emulation::Schedule;
using cuda::emulation::set_schedule;

struct EveryOrder {
  template <class Work>
  explicit EveryOrder(const Work& work) {
    for (const Schedule::Order order : {Schedule::Order::forward, Schedule::Order::reverse, Schedule::Order::random}) {
      set_schedule({order, 5});
      work();
    }
    set_schedule({});
  }
};

TEST(CudaStorage, FingerprintsEqualTheHostsInEveryOrderOfThreads) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  EveryOrder([&] { testing::expect_fingerprints_of_the_host(*backend, 20'000); });
  testing::expect_fingerprints_of_the_host(*backend, 300'000);  // several blocks with several loads each
}

TEST(CudaStorage, ScansEqualTheHostsInEveryOrderOfThreads) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  EveryOrder([&] { testing::expect_scans_of_the_host(*backend); });
}

TEST(CudaStorage, GathersFillsAndCopiesWhatTheHostWould) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  EveryOrder([&] { testing::expect_gathered_runs(*backend, 19); });
  testing::expect_copies_and_fills(*backend);
}

// Reads each byte of an aligned storage once: packs of 16, then single bytes.
TEST(CudaStorage, AFingerprintReadsEachByteOnce) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const Buffer buffer = backend->allocate(100'003);
  const std::int64_t before = cuda::emulation::bytes_read();

  (void)backend->fingerprint(buffer.data(), 100'003);

  EXPECT_EQ(cuda::emulation::bytes_read() - before, 100'003);
}

TEST(CudaStorage, KernelsTouchNothingBesideWhatTheyAreGiven) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const Buffer whole = backend->allocate(6013 + 64);
  const std::byte* const data = whole.data() + 32;
  std::array<cuda::ScannedChunk, 3> found{};
  std::array<std::uint64_t, 1> parts{};
  const cuda::emulation::MemoryWatch watch(
      {{data, 6013, false, "the storage", 1},
       {reinterpret_cast<const std::byte*>(found.data()), sizeof found, true, "what is found"},
       {reinterpret_cast<const std::byte*>(parts.data()), sizeof parts, true, "the sums"}});
  cuda::ScanArgs scan{data, 1};
  scan.columns = 6013;
  scan.chunk_elements = 2992;
  scan.chunk_count = 3;
  scan.found = found.data();

  cuda::launch_scan(scan, nullptr);
  cuda::launch_fingerprint({reinterpret_cast<const std::uint64_t*>(data), 6013, parts.data()}, nullptr);

  EXPECT_EQ(found[2].finite + found[2].unwritten + found[2].infinite + found[2].nan, 29);
  EXPECT_EQ(fingerprint_of(parts[0], 6013), fingerprint({data, 6013}));
}

}  // namespace storage_test
}  // namespace gpubench
