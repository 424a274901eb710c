// Time of an all_reduce in the harness, compared with a loop of MPI_Allreduce in the same processes:
// mpirun -np N all_reduce_bench_openmpi [BLOCKS]
//
// A block is K reductions of either kind, timed by the same clock once all ranks have arrived. Blocks alternate, so
// that both see the same machine state. `ratio` is the harness's time over the loop's (medians of the slowest rank's
// times).
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/core/error.h"
#include "harness/remote/rank_server.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/remote_ranks.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/mpi/mpi_processes.h"
#include "reference/ops/collective.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/ops/rank_tensors.h"

namespace gpubench {
namespace {

const std::string plain_label = "plain loop of ";

struct PlainLoop final : LaunchImpl {
  std::int64_t runs = 1;
  Tensor x, y;
};

/// The module's collectives, except that labelled calls run a loop of MPI_Allreduce.
class WithPlainLoop final : public RankCollectives {
 public:
  WithPlainLoop(std::unique_ptr<RankCollectives> inner, int rank) : inner_(std::move(inner)), rank_(rank) {}
  [[nodiscard]] std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) override {
    return inner_->implementation(call, tensors);
  }
  [[nodiscard]] Launch bind(const OpCall& call, std::span<const Tensor> tensors) override {
    if (!call.label.starts_with(plain_label)) return inner_->bind(call, tensors);
    auto loop = std::make_shared<PlainLoop>();
    std::from_chars(call.label.data() + plain_label.size(), call.label.data() + call.label.size(), loop->runs);
    loop->x = tensors[static_cast<std::size_t>(rank_)];
    loop->y = tensors[call.inputs.size() + static_cast<std::size_t>(rank_)];
    loop_ = loop;
    return loop;
  }
  void run(const Launch& launch, bool overlaps_compute) override {
    if (launch.get() != loop_.get())
      return inner_->run(launch, overlaps_compute);  // a cast would count as the harness's
    const int count = static_cast<int>(loop_->x.spec.shape.elements());
    for (std::int64_t run = 0; run < loop_->runs; ++run) {
      if (MPI_Allreduce(loop_->x.data, loop_->y.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
        throw DeviceLost("MPI_Allreduce failed");
    }
  }
  void align() override { inner_->align(); }

 private:
  std::unique_ptr<RankCollectives> inner_;
  int rank_;
  std::shared_ptr<const PlainLoop> loop_;  // the last one bound
};

ServerSetup setup_of(Processes& processes) {
  const Processes::Share share = processes.share();
  ServerSetup setup;
  setup.hello.build = "bench";
  setup.hello.host = "a host";
  setup.open_backend = [threads = take_cpu_share(share.place, share.processes).threads] {
    return open_cpu_backend(threads);
  };
  setup.open_collectives = [&processes](int ranks) {
    return std::make_unique<WithPlainLoop>(processes.collectives(ranks), processes.rank());
  };
  return setup;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A program of one all_reduce of `elements` elements per rank.
Program all_reduce_of(int ranks, std::int64_t elements, std::string label) {
  Program p;
  const std::vector<ValueId> x = testing::on_ranks(p, ranks, DType::f32, {elements});
  (void)all_reduce(p, {ranks}, Math{}, std::move(label), x);
  return p;
}

void race(Backend& backend, int ranks, std::int64_t bytes, int blocks) {
  const std::int64_t runs = std::clamp<std::int64_t>((std::int64_t{16} << 20U) / bytes, 4, 20000);
  testing::ProgramRun ours(backend, all_reduce_of(ranks, bytes / 4, "y"));
  testing::ProgramRun plain(backend, all_reduce_of(ranks, bytes / 4, plain_label + std::to_string(runs)));
  for (testing::ProgramRun* one : {&ours, &plain}) {
    for (int rank = 0; rank < ranks; ++rank)
      one->set(ValueId{rank}, std::vector<double>(static_cast<std::size_t>(bytes / 4), 1.0));
    one->run();
  }
  const auto time = [&backend](const testing::ProgramRun& run, std::int64_t batch) {
    const std::vector<Launch> launch{run.launch(0)};
    return backend.time(launch, {1, batch, 1, 0.0}).device_ns[0];
  };
  std::vector<double> ours_ns, plain_ns;
  for (int block = 0; block < blocks; ++block) {
    ours_ns.push_back(time(ours, runs) / static_cast<double>(runs));
    plain_ns.push_back(time(plain, 1) / static_cast<double>(runs));
  }
  fmt::print("{:>10} B  harness {:>12.2f} us  MPI_Allreduce {:>12.2f} us  ratio {:.3f}\n", bytes, median(ours_ns) / 1e3,
             median(plain_ns) / 1e3, median(ours_ns) / median(plain_ns));
  std::fflush(stdout);
}

void race_all(Processes& processes, const ServerSetup& setup, int blocks) {
  const ChannelPair own = local_channel();
  std::thread serving([&] { (void)serve_rank(*own.second, setup); });
  std::vector<Channel*> channels{own.first.get()};
  for (int rank = 1; rank < processes.size(); ++rank) channels.push_back(&processes.channel(rank));
  RemoteRanks ranks(channels, setup.hello, 60.0);
  fmt::print("{}, {} processes, {} blocks of each\n", processes.library(), processes.size(), blocks);
  {
    const std::unique_ptr<Backend> backend = open_rank_group(ranks.open(processes.size()), 600.0);
    for (const std::int64_t bytes : {4, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 16 << 20})
      race(*backend, processes.size(), bytes, blocks);
  }
  ranks.end(0);
  serving.join();
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using namespace gpubench;
  int blocks = 31;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
    if (error != std::errc() || end != text.data() + text.size() || blocks < 1) {
      fmt::print(stderr, "all_reduce_bench: '{}' is no number of blocks\n", text);
      return 2;
    }
  }
  const std::unique_ptr<Processes> processes = mpi::join(60.0);
  const ServerSetup setup = setup_of(*processes);  // takes its share of processors before other threads start
  if (processes->rank() == 0) {
    race_all(*processes, setup, blocks);
  } else {
    (void)serve_rank(processes->channel(0), setup);
  }
  processes->finish();
}
