// The CPU backend's device description, memory, order of work, and timing of rounds.
#include "reference/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>

#include "reference/cpu/kernel.h"
#include "reference/ops/move.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/examined_memory.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace cpu_backend_test {

using cpu::launch_of;
using testing::shared_backend;

TEST(CpuBackend, DescribesTheMachineAndTheLibraryThatRuns) {
  const DeviceInfo& device = shared_backend().device();
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_FALSE(device.name.empty());
  EXPECT_GE(device.units, 1);
  EXPECT_GT(device.memory_bytes, 0);
  EXPECT_GT(device.available_bytes, 0);
  EXPECT_LE(device.available_bytes, device.memory_bytes);
  EXPECT_GT(device.cache_bytes, 0);
  EXPECT_LE(device.cache_bytes, std::int64_t{32} << 20);
  ASSERT_FALSE(device.libraries.empty());
  EXPECT_EQ(device.libraries[0].first, "onednn");
  EXPECT_NE(device.libraries[0].second.find('.'), std::string::npos) << device.libraries[0].second;
  EXPECT_TRUE(shared_backend().host_visible());
}

TEST(CpuBackend, ExaminesItsMemoryAsTheTrustedWayDoes) {
  for (const int threads : {1, 2})
    testing::expect_memory_examined_as_on_the_host(*open_cpu_backend(threads), 5'000'001);
}

TEST(CpuBackend, TakesTheThreadsItIsGiven) { EXPECT_EQ(open_cpu_backend(1)->device().units, 1); }

TEST(CpuBackend, GivesAlignedMemoryOfAnySizeAndMovesBytes) {
  Backend& backend = shared_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{65}, (std::size_t{5} << 20) + 3}) {
    const Buffer buffer = backend.allocate(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    std::vector<std::byte> in(bytes, std::byte{7}), out(bytes);
    backend.write(buffer.data(), in);
    backend.read(out, buffer.data());
    EXPECT_EQ(in, out);
  }
}

// Sizes up to those that are split over threads and streamed.
TEST(CpuBackend, FillsAndCopiesEveryByteAndNoOther) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4099}, (std::size_t{33} << 20) + 7}) {
      for (const std::size_t period : {1, 3, 8}) {
        std::vector<std::byte> memory(bytes + 2, std::byte{0xEE}), other(bytes + 2, std::byte{0xDD});
        std::vector<std::byte> pattern, expected(bytes + 2, std::byte{0xEE});
        for (std::size_t i = 0; i < period; ++i) pattern.push_back(static_cast<std::byte>(i + 1));
        for (std::size_t i = 0; i < bytes; ++i) expected[i + 1] = static_cast<std::byte>(i % period + 1);

        backend->fill(memory.data() + 1, pattern, bytes);
        backend->copy(other.data() + 1, memory.data() + 1, bytes);

        EXPECT_TRUE(memory == expected) << bytes << " bytes, period " << period;
        expected.front() = expected.back() = std::byte{0xDD};
        EXPECT_TRUE(other == expected) << bytes << " bytes, period " << period;
      }
    }
  }
}

TEST(CpuBackend, RefusesMemoryThatCannotBeWithTheByteCount) {
  for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX}) {
    const std::string thrown = thrown_text<BackendError>([&] { (void)shared_backend().allocate(bytes); });
    EXPECT_NE(thrown.find(std::to_string(bytes)), std::string::npos) << thrown;
  }
}

TEST(CpuBackend, RefusesTypesNarrowerThanAByteByName) {
  for (const bool transposed : {false, true}) {
    Program p;
    const ValueId x = p.add(tensor("x", DType::f4_e2m1, {4, 6}, Role::input));
    transposed ? transpose(p, {{1, 0}}, "y", x) : copy(p, "y", x, Memory::device);
    const std::string words = testing::refusal(shared_backend(), p);
    EXPECT_NE(words.find("f4_e2m1"), std::string::npos) << words;
  }
}

TEST(CpuBackend, NamesTheOpThatItLacks) {
  OpCall call{OpKind{"no_such_op"}, {}, {}, {}, {}, "x", Phase::timed};
  EXPECT_EQ(thrown_text<Unsupported>([&] { (void)shared_backend().plan(call, {}); }),
            "the cpu backend has no op 'no_such_op'");
}

TEST(CpuBackend, PlansEachOpInOneFile) {
  std::set<std::string_view> seen;
  for (const cpu::Ops& file : cpu::op_files()) {
    for (const cpu::OpImplementation& op : file) EXPECT_TRUE(seen.insert(op.kind.name).second) << op.kind.name;
  }
}

TEST(CpuBackend, RunsASequenceInOrder) {
  std::vector<int> seen;
  std::vector<Launch> launches;
  for (int i = 0; i < 5; ++i) launches.push_back(launch_of([&seen, i] { seen.push_back(i); }));
  const Launch all = shared_backend().sequence(launches, {{{}, {0}, {1}, {2}, {3}}});
  shared_backend().run(all);
  shared_backend().run(all);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

// Sample i, run j uses copies[(i * batch + j) mod 3]: with 4 samples of 2, that is 0 1 | 2 0 | 1 2 | 0 1.
TEST(CpuBackend, RotatesTheCopiesThroughSamplesAndBatches) {
  std::vector<int> seen;
  seen.reserve(100);
  std::vector<Launch> copies;
  for (int i = 0; i < 3; ++i) copies.push_back(launch_of([&seen, i] { seen.push_back(i); }));
  const RoundTimes times = shared_backend().time(copies, {4, 2, 0, 0.0});
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}));
  ASSERT_EQ(times.wall_ns.size(), 4U);
  EXPECT_EQ(times.device_ns, times.wall_ns);
  for (const double ns : times.wall_ns) EXPECT_GE(ns, 0.0);
}

TEST(CpuBackend, WarmsUpByCallsBeforeTheFirstSample) {
  int calls = 0;
  const std::vector<Launch> one{launch_of([&calls] { ++calls; })};
  (void)shared_backend().time(one, {3, 1, 5, 0.0});
  EXPECT_EQ(calls, 5 + 3);
}

TEST(CpuBackend, WarmsUpForAsLongAsAsked) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> calls;
  const std::vector<Launch> one{launch_of([&calls] { calls.push_back(Clock::now()); })};
  const Clock::time_point before = Clock::now();
  (void)shared_backend().time(one, {1, 1, 0, 1e-3});
  ASSERT_GE(calls.size(), 2U);
  EXPECT_GE(calls.back() - before, std::chrono::milliseconds(1));  // the last call is the sample
}

TEST(CpuBackend, RefusesARoundOfNothing) {
  EXPECT_THROW((void)shared_backend().time({}, {1, 1, 0, 0.0}), BackendError);
  const std::vector<Launch> empty{nullptr};
  EXPECT_THROW((void)shared_backend().time(empty, {1, 1, 0, 0.0}), BackendError);
  EXPECT_THROW(shared_backend().run(nullptr), BackendError);
  EXPECT_THROW((void)shared_backend().sequence(empty, {}), BackendError);
}

TEST(CpuBackend, RefusesAWorkspaceThatIsTooSmall) {
  const Plan plan = cpu::plan_of("test", 128, [](std::span<const Tensor>, Workspace) { return [] {}; });
  std::array<std::byte, 64> small{};
  EXPECT_THROW((void)shared_backend().bind(plan, {}, {small.data(), small.size()}), BackendError);
  EXPECT_THROW((void)shared_backend().bind(nullptr, {}, {}), BackendError);
}

}  // namespace cpu_backend_test
}  // namespace gpubench
