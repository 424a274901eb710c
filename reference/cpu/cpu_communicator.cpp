// Ranks of one process: all tensors are in reach of all. A collective is two meetings with work in between: nobody
// reads before all inputs are there, nobody goes on before all have read. A small reduction needs only the first: every
// rank puts its input where it stays for two collectives, and adds all of them up by itself.
#include <array>
#include <cstring>

#include "harness/core/error.h"
#include "harness/core/rank_sync.h"
#include "reference/cpu/collective_work.h"
#include "reference/cpu/cpu_ranks.h"
#include "reference/cpu/kernel.h"

namespace gpubench {
namespace {

constexpr std::int64_t small_bytes = 4096;
constexpr int spins = 20000;  // some 0.2 ms: longer waits are slept through

class CollectivePlan : public PlanImpl {
 public:
  explicit CollectivePlan(OpCall call) : call_(std::move(call)) {}
  [[nodiscard]] std::string implementation() const override { return "gpubench:shared_memory"; }
  [[nodiscard]] const OpCall& call() const { return call_; }

 private:
  OpCall call_;
};

/// A small all_reduce on one rank: where its input lies, and the sum over the places of one turn or the other.
struct SmallSum {
  const std::byte* input = nullptr;
  std::size_t bytes = 0;
  std::array<cpu::RankWork, 2> of_turn;
};

class CollectiveLaunch : public LaunchImpl {
 public:
  CollectiveLaunch(std::vector<cpu::RankWork> work, std::vector<SmallSum> small)
      : work_(std::move(work)), small_(std::move(small)) {}
  [[nodiscard]] const cpu::RankWork& of(int rank) const { return work_[static_cast<std::size_t>(rank)]; }
  /// One for each rank; empty for others than small sums.
  [[nodiscard]] const std::vector<SmallSum>& small() const { return small_; }

 private:
  std::vector<cpu::RankWork> work_;
  std::vector<SmallSum> small_;
};

class CpuCommunicator final : public Communicator {
 public:
  CpuCommunicator(int ranks, int threads, bool oversubscribed)
      : ranks_(ranks),
        threads_(threads),
        barrier_(ranks, oversubscribed ? 0 : spins),
        places_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    cpu::expect_supported(call, tensors);
    return std::make_shared<CollectivePlan>(call);
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const auto* own = dynamic_cast<const CollectivePlan*>(plan.get());
    if (own == nullptr) throw BackendError("cpu: the plan is empty or of another backend; expected a collective's");
    return std::make_shared<CollectiveLaunch>(cpu::work_of(own->call(), tensors), small_sums(own->call(), tensors));
  }

  void run(const Launch& launch, int rank) override {
    const auto& own = dynamic_cast<const CollectiveLaunch&>(*launch);
    if (!own.small().empty()) return run_small(own, rank);
    barrier_.arrive(rank);
    cpu::run_work(own.of(rank), threads_);
    barrier_.arrive(rank);
  }

  void stop() override { barrier_.stop(); }
  [[nodiscard]] bool restart() override {
    barrier_.reset();
    for (Place& place : places_) place.turns = 0;
    return true;
  }
  [[nodiscard]] std::vector<int> waiting() const override { return barrier_.waiting(); }

 private:
  struct Place {
    alignas(64) std::array<std::array<std::byte, small_bytes>, 2> bytes;
    std::uint64_t turns = 0;
  };

  [[nodiscard]] std::vector<SmallSum> small_sums(const OpCall& call, std::span<const Tensor> tensors) const {
    if (call.kind != all_reduce_kind || call.inputs.size() != static_cast<std::size_t>(ranks_)) return {};
    if (tensors[0].spec.bytes() > small_bytes) return {};
    std::vector<SmallSum> sums;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank) {
      SmallSum sum{tensors[rank].data, static_cast<std::size_t>(tensors[rank].spec.bytes()), {}};
      for (std::size_t turn = 0; turn < 2; ++turn) {
        ReduceTask task{tensors[rank].spec.dtype,
                        call.attributes.as<AllReduce>().reduction,
                        {},
                        {tensors[rank + static_cast<std::size_t>(ranks_)].data},
                        tensors[rank].spec.shape.elements()};
        for (const Place& peer : places_) task.from.push_back(peer.bytes[turn].data());
        sum.of_turn[turn].tasks.reductions.push_back(std::move(task));
      }
      sums.push_back(std::move(sum));
    }
    return sums;
  }

  void run_small(const CollectiveLaunch& launch, int rank) {
    const SmallSum& sum = launch.small()[static_cast<std::size_t>(rank)];
    Place& place = places_[static_cast<std::size_t>(rank)];
    const auto turn = static_cast<std::size_t>(place.turns++ % 2);
    std::memcpy(place.bytes[turn].data(), sum.input, sum.bytes);
    barrier_.arrive(rank);
    cpu::run_work(sum.of_turn[turn], 1);
  }

  int ranks_;
  int threads_;
  RankBarrier barrier_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<Communicator> open_cpu_communicator(int ranks, int threads, bool oversubscribed) {
  return std::make_unique<CpuCommunicator>(ranks, threads, oversubscribed);
}

}  // namespace gpubench
