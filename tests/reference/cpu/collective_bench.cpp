// Rate of all_reduce on CPU ranks: large messages relative to a copy, small ones relative to a barrier.
//
// An all_reduce of S bytes on n ranks reads and writes n S bytes each, so it takes at least 2 n S / copy bandwidth.
// Iterations alternate the reduction and a copy of equally many bytes; of_copy is the copy's time over the reduction's
// (medians).
// The smallest message is compared with an empty barrier of two threads: over_barrier is the ratio of the latencies.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "harness/core/communicator.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/collective.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/ops/rank_tensors.h"

namespace gpubench {
namespace {

constexpr int ranks = 2;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Program all_reduce_of(std::int64_t elements) {
  Program p;
  const std::vector<ValueId> x = testing::on_ranks(p, ranks, DType::f32, {elements});
  (void)all_reduce(p, {ranks, Reduction::average}, Math{}, "y", x);
  return p;
}

struct Bound {
  Bound(Backend& on, Program program) : backend(on), run(on, std::move(program)) {
    for (std::size_t i = 0; i < run.program().values().size(); ++i) {
      const ValueId id{static_cast<int>(i)};
      const auto count = static_cast<std::size_t>(run.program().spec(id).shape.elements());
      run.set(id, std::vector<double>(count, 1.0));
    }
    run.run();
  }
  /// Nanoseconds per run.
  double time(std::int64_t batch) {
    const std::vector<Launch> launch{run.launch(0)};
    return backend.time(launch, {1, batch, 1, 0.0}).wall_ns[0] / static_cast<double>(batch);
  }
  Backend& backend;
  testing::ProgramRun run;
};

void large_all_reduce(benchmark::State& state) {
  const std::int64_t bytes = state.range(0);
  const std::unique_ptr<Backend> group = open_rank_group(open_cpu_ranks(ranks));
  Bound reduction(*group, all_reduce_of(bytes / 4));
  Program copied;
  (void)copy(copied, "y", copied.add(tensor("x", DType::f32, {ranks * bytes / 4}, Role::activation)));
  Bound copies(testing::shared_backend(), std::move(copied));
  std::vector<double> reduction_ns;
  std::vector<double> copy_ns;
  for (auto _ : state) {
    copy_ns.push_back(copies.time(1));
    reduction_ns.push_back(reduction.time(1));
    state.SetIterationTime(reduction_ns.back() * 1e-9);
  }
  state.counters["busbw_GB_per_s"] = static_cast<double>(bytes) / median(reduction_ns);  // 2 (n - 1) / n = 1
  state.counters["of_copy"] = median(copy_ns) / median(reduction_ns);
}
BENCHMARK(large_all_reduce)->Arg(1 << 20)->Arg(64 << 20)->UseManualTime()->Unit(benchmark::kMicrosecond);

/// Nanoseconds per barrier of two threads on the ranks' processors.
double barrier_ns(std::int64_t meetings) {
  RankSet set = open_cpu_ranks(ranks);
  RankBarrier barrier(ranks, 20000);
  double ns = 0.0;
  const auto meet = [&](int rank) {
    set.enter(rank);
    barrier.arrive(rank);
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < meetings; ++i) barrier.arrive(rank);
    if (rank == 0) ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  };
  std::thread other(meet, 1);
  std::thread one(meet, 0);
  one.join();
  other.join();
  return ns / static_cast<double>(meetings);
}

void small_all_reduce(benchmark::State& state) {
  constexpr std::int64_t batch = 2000;
  const std::unique_ptr<Backend> group = open_rank_group(open_cpu_ranks(ranks));
  Bound reduction(*group, all_reduce_of(2));
  std::vector<double> reduction_ns;
  std::vector<double> meeting_ns;
  for (auto _ : state) {
    meeting_ns.push_back(barrier_ns(batch));
    reduction_ns.push_back(reduction.time(batch));
    state.SetIterationTime(reduction_ns.back() * 1e-9);
  }
  state.counters["over_barrier"] = median(reduction_ns) / median(meeting_ns);
  state.counters["barrier_ns"] = median(meeting_ns);
}
BENCHMARK(small_all_reduce)->Iterations(20)->UseManualTime()->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace gpubench

BENCHMARK_MAIN();
