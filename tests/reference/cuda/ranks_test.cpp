// Ranks of the CUDA backend on emulated streams: virtual ranks with the real kernels, and a fake that enforces NCCL's
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/cuda_communicator.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/virtual_ranks.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/collective_contract.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulation/streams.h"
#include "tests/reference/cuda/fake_nccl.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {

using cuda::emulation::set_stream_order;
using cuda::emulation::StreamOrder;
using ::testing::HasSubstr;

RankSet open_virtual(int ranks) {
  return open_emulated_ranks(ranks, [](int count) { return cuda::open_virtual_communicator(count, 0); });
}

cuda::NcclRanks on_gpus(int ranks) {
  std::vector<int> ordinals;
  for (int rank = 0; rank < ranks; ++rank) ordinals.push_back(rank);
  return cuda::nccl_ranks_on(std::move(ordinals));
}

RankSet open_faked_nccl(int ranks, NcclTrouble trouble = {}) {
  return open_emulated_ranks(
      ranks, [&](int count) { return cuda::open_nccl_communicator(fake_nccl(trouble), on_gpus(count)); });
}

const std::vector<DType> all_floats{DType::f64, DType::f32, DType::f16, DType::bf16};
RankSet open_nccl(int ranks) { return open_faked_nccl(ranks); }
RankSet open_nccl_without_split(int ranks) {
  return open_emulated_ranks(
      ranks, [](int count) { return cuda::open_nccl_communicator(fake_nccl({}, false), on_gpus(count)); });
}

INSTANTIATE_TEST_SUITE_P(Virtual, Collectives,
                         ::testing::Values(RankOpening{"On3Ranks", 3, open_virtual, all_floats},
                                           RankOpening{"On8Ranks", 8, open_virtual}),
                         [](const auto& named) { return named.param.name; });

INSTANTIATE_TEST_SUITE_P(Nccl, Collectives,
                         ::testing::Values(RankOpening{"On2Ranks", 2, open_nccl},
                                           RankOpening{"On3Ranks", 3, open_nccl, all_floats},
                                           RankOpening{"On4Ranks", 4, open_nccl},
                                           RankOpening{"On4RanksWithoutSplit", 4, open_nccl_without_split},
                                           RankOpening{"In2Processes", 2, open_nccl_in_processes},
                                           RankOpening{"In3Processes", 3, open_nccl_in_processes, all_floats}),
                         [](const auto& named) { return named.param.name; });

// Each rank has a communicator of all ranks and one of its group.
TEST(NcclGroups, HaveCommunicatorsOfTheirOwnWhichEndWithTheRest) {
  for (const bool splits : {true, false}) {
    const int before = fake_nccl_alive();
    {
      const std::unique_ptr<Backend> ranks = open_rank_group(open_emulated_ranks(
          3, [splits](int count) { return cuda::open_nccl_communicator(fake_nccl({}, splits), on_gpus(count)); }));
      Program p;
      const std::vector<ValueId> x = on_ranks(p, DType::f32, {4, 4, 4});
      for (const char* label : {"first", "second"})
        (void)all_reduce(p, {2}, Math{}, label, std::vector{x[2], x[0]}, false, RankGroup({2, 0}));
      ProgramRun run(*ranks, p);
      for (std::size_t i = 0; i < x.size(); ++i) run.set(x[i], whole_numbers(4, i));
      run.run();
      EXPECT_EQ(fake_nccl_alive(), before + 3 + 2) << splits;
    }
    EXPECT_EQ(fake_nccl_alive(), before) << splits;
  }
}

ValueId result_of(Program& program, OpKind kind, Attributes attributes, std::vector<ValueId> inputs, const char* name) {
  TensorSpec result = program.spec(inputs[0]);
  result.name = name_on_rank(name, result.placement.rank, result.placement.ranks);
  const ValueId y = program.reserve(result);
  program.append({kind, std::move(attributes), Math{}, std::move(inputs), {y}, result.name});
  return y;
}

/// On each rank: a = gelu(x), s = sum of a over the ranks, meanwhile b = a + a, then y = s + b. No op waits for the sum
/// of y. Lanes wait for each other in both directions.
struct Overlapped {
  Program program;
  std::vector<ValueId> x, results;

  explicit Overlapped(int ranks, std::int64_t count) {
    x = on_ranks(program, DType::f32, std::vector<std::int64_t>(static_cast<std::size_t>(ranks), count));
    std::vector<ValueId> a;
    std::vector<ValueId> b;
    std::vector<ValueId> y;
    for (const ValueId id : x) a.push_back(result_of(program, gelu_forward_kind, Gelu{}, {id}, "a"));
    const std::vector<ValueId> s = all_reduce(program, {ranks}, Math{}, "s", a);
    for (const ValueId id : a) b.push_back(result_of(program, add_kind, {}, {id, id}, "b"));
    for (std::size_t r = 0; r < x.size(); ++r) y.push_back(result_of(program, add_kind, {}, {s[r], b[r]}, "y"));
    results = all_reduce(program, {ranks}, Math{}, "total", y);
    results.insert(results.end(), y.begin(), y.end());
  }
};

Launch sequence_of(Backend& ranks, const ProgramRun& run) {
  std::vector<Launch> launches;
  for (int op = 0; op < static_cast<int>(run.program().ops().size()); ++op) launches.push_back(run.launch(op));
  return ranks.sequence(launches, {run.program().dependencies(), LaunchMode::stream});
}

constexpr std::pair<StreamOrder, std::uint64_t> stream_orders[] = {{StreamOrder::oldest_first, 1},
                                                                   {StreamOrder::newest_first, 1},
                                                                   {StreamOrder::random, 1},
                                                                   {StreamOrder::random, 2},
                                                                   {StreamOrder::random, 3}};

class RankStreams : public ::testing::TestWithParam<RankOpening> {
 protected:
  void TearDown() override { set_stream_order(StreamOrder::random); }
  std::unique_ptr<Backend> ranks_ = open_rank_group(GetParam().open(GetParam().ranks));
};

TEST_P(RankStreams, OverlapComputeAndCollectivesAsDataFlowAllows) {
  const Overlapped overlapped(GetParam().ranks, 700);
  ProgramRun run(*ranks_, overlapped.program);
  for (std::size_t i = 0; i < overlapped.x.size(); ++i) run.set_random(overlapped.x[i], i + 1);
  run.run();  // one by one
  std::vector<std::vector<std::byte>> expected;
  for (const ValueId result : overlapped.results) expected.push_back(run.bytes_of(result));

  const Launch whole = sequence_of(*ranks_, run);
  for (const auto& [order, seed] : stream_orders) {
    set_stream_order(order, seed);
    for (int op = 0; op < static_cast<int>(overlapped.program.ops().size()); ++op) {
      for (const ValueId y : overlapped.program.op(op).outputs)
        run.set(y, std::vector<double>(700, 0.5));  // reveals values that are not recomputed
    }
    ranks_->run(whole);
    for (std::size_t i = 0; i < overlapped.results.size(); ++i)
      EXPECT_EQ(run.bytes_of(overlapped.results[i]), expected[i]) << static_cast<int>(order) << " " << seed;
  }
}

// x <- sum of x over the ranks, then total <- total + x. n ranks with x = 1, 2, ... give x = (1 + ... + n) n^k after k
// more runs; the next run's collective must not overtake this run's last op.
TEST_P(RankStreams, RunsThatFollowEachOtherKeepTheirOrder) {
  const int n = GetParam().ranks;
  Program program;
  const std::vector<ValueId> x =
      on_ranks(program, DType::f32, std::vector<std::int64_t>(static_cast<std::size_t>(n), 300));
  std::vector<ValueId> totals;
  for (int rank = 0; rank < n; ++rank) {
    TensorSpec spec = tensor(name_on_rank("total", rank, n), DType::f32, {300}, Role::state);
    spec.placement = Placement::on(rank, n);
    totals.push_back(program.add(std::move(spec)));
  }
  const std::vector<ValueId> sums = all_reduce(program, {n}, Math{}, "sum", x, true);
  std::vector<ValueId> results;
  for (std::size_t r = 0; r < x.size(); ++r) {
    results.push_back(program.update(totals[r], name_on_rank("total'", static_cast<int>(r), n)));
    program.append({add_kind, {}, Math{}, {totals[r], sums[r]}, {results[r]}, "add" + std::to_string(r)});
  }
  ProgramRun run(*ranks_, program);
  const auto fill = [&] {
    for (std::size_t r = 0; r < x.size(); ++r) {
      run.set(x[r], std::vector<double>(300, static_cast<double>(r + 1)));
      run.set(totals[r], std::vector<double>(300, 0.0));
    }
  };
  fill();
  run.run();
  const Launch whole = sequence_of(*ranks_, run);
  constexpr int runs = 5;
  double expected = 0.0;
  double sum = n * (n + 1) / 2.0;
  for (int k = 0; k < runs; ++k, sum *= n) expected += sum;
  for (const auto& [order, seed] : stream_orders) {
    set_stream_order(order, seed);
    fill();
    (void)ranks_->time(std::vector{whole}, {1, runs, 0, 0.0, Cadence::streaming});
    for (const ValueId result : results)
      EXPECT_EQ(run.get(result), std::vector<double>(300, expected)) << static_cast<int>(order) << " " << seed;
  }
}

TEST_P(RankStreams, TellTheTimeOfEveryRankByTheDevicesClock) {
  const Overlapped overlapped(GetParam().ranks, 64);
  ProgramRun run(*ranks_, overlapped.program);
  for (std::size_t i = 0; i < overlapped.x.size(); ++i) run.set_random(overlapped.x[i], i + 1);
  run.run();
  const Launch whole = sequence_of(*ranks_, run);
  for (const Cadence cadence : {Cadence::streaming, Cadence::isolated}) {
    const RoundTimes times = ranks_->time(std::vector{whole}, {3, 2, 1, 0.0, cadence});
    ASSERT_EQ(times.ranks->size(), static_cast<std::size_t>(GetParam().ranks));
    for (std::size_t sample = 0; sample < 3; ++sample) {
      double largest = 0.0;
      for (const RankTimes& rank : *times.ranks) {
        EXPECT_GT(rank.ns.at(sample), 0.0);
        largest = std::max(largest, rank.ns.at(sample));
      }
      EXPECT_EQ(times.device_ns.at(sample), largest);
      EXPECT_GE(times.wall_ns.at(sample), times.device_ns.at(sample));  // the host waits longer than the device works
    }
  }
}

TEST_P(RankStreams, AreNotRecordedAsGraphs) {
  EXPECT_THROW((void)ranks_->sequence({}, {{}, LaunchMode::graph}), Unsupported);
}

INSTANTIATE_TEST_SUITE_P(All, RankStreams,
                         ::testing::Values(RankOpening{"Virtual", 3, open_virtual}, RankOpening{"Nccl", 3, open_nccl},
                                           RankOpening{"NcclInProcesses", 3, open_nccl_in_processes}),
                         [](const auto& named) { return named.param.name; });

TEST(VirtualRanks, AMaximumWithANanIsNanOnEveryRank) { expect_nan_stays(*open_rank_group(open_virtual(3))); }

TEST(VirtualRanks, TooManyAreRefusedWithTheNumber) {
  EXPECT_THROW((void)cuda::open_virtual_communicator(0, 0), BackendError);
  EXPECT_THROW((void)cuda::open_virtual_communicator(cuda::max_virtual_ranks + 1, 0), BackendError);
}

/// The error of a program and its kind; `build` adds its ops on two ranks.
std::string failure_of(Backend& ranks, const std::function<void(Program&)>& build) {
  Program p;
  build(p);
  try {
    ProgramRun(ranks, p).run();
  } catch (const DeviceLost& e) {
    return std::string("lost: ") + e.what();
  } catch (const BackendError& e) {
    return std::string("error: ") + e.what();
  }
  return "";
}

std::string failure_of_a_sum(Backend& ranks) {
  return failure_of(ranks, [](Program& p) {
    (void)all_reduce(p, {2}, Math{}, "bucket", on_ranks(p, DType::f32, {64, 64}));
  });
}

TEST(NcclRanks, AnAsynchronousErrorEndsTheProcessWithTheRankAndNcclsWords) {
  const std::unique_ptr<Backend> ranks = open_rank_group(open_faked_nccl(2, {1, 0, NcclTrouble::Kind::async_error}));
  EXPECT_THAT(
      failure_of_a_sum(*ranks),
      AllOf(HasSubstr("lost: rank 1: "), HasSubstr("remote error (6): told by the fake"), HasSubstr("(in 'bucket')")));
  EXPECT_THAT(failure_of_a_sum(*ranks), HasSubstr("lost: "));  // nothing runs after a lost rank
}

TEST(NcclRanks, ARankThatIsNeverEnqueuedIsNamedAsTheOneThatHangs) {
  const int aborted_before = fake_nccl_aborted();
  // Never freed, as the engine does with a hanging backend: its threads may still use it.
  static const auto& ranks = *new std::unique_ptr<Backend>(
      open_rank_group(open_faked_nccl(2, {1, 0, NcclTrouble::Kind::never_enqueued}), 0.3));
  EXPECT_THAT(failure_of_a_sum(*ranks),
              AllOf(HasSubstr("lost: rank 1 has made no progress for 0.3 s, last in 'bucket'"),
                    HasSubstr("rank 0 was waiting")));
  EXPECT_TRUE(ranks->hangs());
  for (int tries = 0; tries < 200 && fake_nccl_aborted() < aborted_before + 2; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(fake_nccl_aborted(), aborted_before + 2);  // so that no device keeps waiting
}

// The host waits for the numbers of tokens, which a failed peer never sends: stop() must end the wait.
TEST(NcclRanks, APeerThatNeverTellsItsTokensKeepsNoRankForGood) {
  const int aborted_before = fake_nccl_aborted();
  static const auto& ranks = *new std::unique_ptr<Backend>(
      open_rank_group(open_faked_nccl(2, {1, 0, NcclTrouble::Kind::never_enqueued}), 0.3));
  const auto dispatch = [](Program& p) {
    const std::vector<ValueId> x = on_ranks(p, 2, DType::f32, {8, 4});
    (void)dispatch_tokens(p, {2}, "tokens", x, on_ranks(p, 2, DType::i32, {2}, "sizes"));
  };
  EXPECT_THAT(failure_of(*ranks, dispatch),
              AllOf(HasSubstr("lost: rank 1 has made no progress for 0.3 s, last in 'tokens'"),
                    HasSubstr("rank 0 was waiting")));
  for (int tries = 0; tries < 200 && fake_nccl_aborted() < aborted_before + 2; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(fake_nccl_aborted(), aborted_before + 2);
}

TEST(NcclRanks, ThatAreNotSetUpInTimeEndTheProcess) {
  const int alive_before = fake_nccl_alive();
  EXPECT_EQ(thrown_text<DeviceLost>([&] {
              cuda::NcclRanks ranks = on_gpus(2);
              ranks.deadline_s = 0.05;
              (void)cuda::open_nccl_communicator(fake_nccl({1, 0, NcclTrouble::Kind::never_set_up}), ranks);
            }),
            "cuda: NCCL has not set up 2 ranks within 0.05 s");
  EXPECT_EQ(fake_nccl_alive(), alive_before);
}

TEST(NcclRanks, ARankThatCannotBeSetUpTellsNcclsWordsAndItsPeersHang) {
  EXPECT_THAT(thrown_text<DeviceLost>([&] {
                (void)cuda::open_nccl_communicator(fake_nccl({1, 0, NcclTrouble::Kind::init_error}), on_gpus(2));
              }),
              HasSubstr("setting up a communicator failed: remote error (6)"));
}

// Enqueueing these collectives takes the host longer than the device needs to run them. Without a gate the device would
// begin the first while the host enqueues the second.
TEST(NcclRanks, NoDeviceBeginsAnIntervalBeforeTheHostHasEnqueuedItOnAllRanks) {
  constexpr int ranks = 2;
  constexpr int runs = 6;
  const std::unique_ptr<Backend> backend =
      open_rank_group(open_faked_nccl(ranks, {.rank = -1, .after_calls = 0, .group_us = 500}));
  Program p;
  const std::vector<ValueId> x = on_ranks(p, DType::f32, {64, 64});
  (void)all_reduce(p, {ranks}, Math{}, "bucket", x);
  ProgramRun run(*backend, p);
  for (std::size_t i = 0; i < x.size(); ++i) run.set_random(x[i], i + 1);
  run.run();  // group 0
  const Launch whole = sequence_of(*backend, run);
  (void)backend->time(std::vector{whole}, {2, runs, 0, 0.0, Cadence::streaming});
  // Each sample: one group to align the ranks, then one per run.
  EXPECT_EQ(fake_nccl_least_enqueued(1), 1 + (1 + runs));
  EXPECT_EQ(fake_nccl_least_enqueued(1 + (1 + runs)), 1 + 2 * (1 + runs));
}

class Idle final : public cuda::CudaLaunch {
 public:
  void enqueue(cudaStream_t /*stream*/) const override {}
};

TEST(StartGate, OpensOnceEveryRankHasArrived) {
  cuda::StartGate gate(2);
  const cuda::Stream one = cuda::make_stream();
  const cuda::Stream other = cuda::make_stream();
  for (int turn = 0; turn < 3; ++turn) {
    gate.close(0, one.get());
    gate.close(1, other.get());
    gate.arrive(1);
    gate.arrive(1);  // counts once
    EXPECT_FALSE(cuda::is_done(one.get()));
    EXPECT_FALSE(cuda::is_done(other.get()));
    gate.arrive(0);
    while (!cuda::is_done(one.get()) || !cuda::is_done(other.get())) std::this_thread::yield();
  }
}

TEST(StartGate, AResetFreesWhoeverWaitsAndTheRanksAgreeAgain) {
  cuda::StartGate gate(2);
  const cuda::Stream stream = cuda::make_stream();
  gate.close(0, stream.get());
  gate.reset();
  while (!cuda::is_done(stream.get())) std::this_thread::yield();
  gate.close(0, stream.get());
  gate.close(1, stream.get());
  gate.arrive(0);
  EXPECT_FALSE(cuda::is_done(stream.get()));
  gate.arrive(1);
  while (!cuda::is_done(stream.get())) std::this_thread::yield();
}

// If a gate waited for a whole long interval, the device's queue would fill up before it opens.
TEST(StartGate, OpensBeforeTheEndOfALongInterval) {
  const std::unique_ptr<cuda::CudaCommunicator> alone = cuda::open_virtual_communicator(1, 0);
  const cuda::Stream compute = cuda::make_stream();
  const std::unique_ptr<RankQueues> queues = cuda::open_rank_streams(*alone, 0, compute.get());
  const Launch idle = std::make_shared<Idle>();
  const std::string label = "idle";
  RankProgram program;
  program.compute.assign(cuda::StartGate::max_waiting, {&idle, &label, 0});
  queues->begin();
  queues->enqueue(program, [](const std::string&) {});
  while (!cuda::is_done(compute.get())) std::this_thread::yield();  // the interval has not ended yet
  EXPECT_GE(queues->end(), 0.0);
}

TEST(NcclRanks, LeaveNoCommunicatorBehind) {
  const int alive_before = fake_nccl_alive();
  const int aborted_before = fake_nccl_aborted();
  { EXPECT_EQ(failure_of_a_sum(*open_rank_group(open_nccl(2))), ""); }
  EXPECT_EQ(fake_nccl_alive(), alive_before);
  EXPECT_EQ(fake_nccl_aborted(), aborted_before);
}

TEST(NcclRanks, ReductionsOfATypeThatIsNotAskedForAreUnsupportedByName) {
  const std::unique_ptr<Backend> ranks = open_rank_group(open_nccl(2));
  Program p;
  (void)all_reduce(p, {2}, Math{}, "y", on_ranks(p, DType::f8_e4m3, {4, 4}));
  EXPECT_THAT(refusal(*ranks, p), HasSubstr("reductions of f8_e4m3"));
}

}  // namespace gpubench::testing
