// Blocking communicators: a call returns once its work is on the stream, without waiting for the device. (Non-blocking
// ones start a thread at the end of each group, tens of microseconds, longer than a short collective.)
//
// So a call can hang, for example in the first collective while ranks connect and a peer has failed. stop() then aborts
// its communicator, after a grace period. A rank that gives up has its communicator aborted too, which ends its
// device's waits. This process cannot replace an aborted communicator.
#include "reference/cuda/cuda_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/nccl.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto grace = EachRank::grace;

class NcclLaunch final : public LaunchImpl {
 public:
  using Steps = std::map<int, NcclSteps>;
  using Exchanges = std::map<int, NcclTokenExchange>;

  NcclLaunch(std::size_t group, Steps steps, Exchanges exchanges)
      : group_(group), steps_(std::move(steps)), exchanges_(std::move(exchanges)) {}
  [[nodiscard]] std::size_t group() const { return group_; }
  [[nodiscard]] const NcclSteps& of(int rank) const { return steps_.at(rank); }
  /// Null for launches of other collectives.
  [[nodiscard]] const NcclTokenExchange* exchange_of(int rank) const {
    return exchanges_.empty() ? nullptr : &exchanges_.at(rank);
  }

 private:
  std::size_t group_;
  Steps steps_;          // by rank, held members only
  Exchanges exchanges_;  // likewise
};

class NcclCommunicator final : public CudaCommunicator {
 public:
  NcclCommunicator(const NcclCalls& calls, NcclRanks ranks)
      : CudaCommunicator(ranks.held, ranks.devices), nccl_(calls), all_(std::move(ranks)) {
    for (std::size_t i = 0; i < all_.devices.size(); ++i) {
      const int rank = held()[static_cast<int>(i)];
      use_device_of(rank);
      Rank& own = *ranks_.emplace(rank, std::make_shared<Rank>()).first->second;
      own.ordinal = all_.devices[i];
      own.token = allocate(sizeof(float));
      check(cudaMemset(own.token.get(), 0, sizeof(float)), "clearing a token");
    }
    try {
      (void)group_of(RankGroup::first(all_.ranks));
    } catch (...) {
      for (const auto& [rank, own] : ranks_) {
        if (!own->in_call) give_up(rank);
      }
      throw;
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override { tear_down(); }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    expect_collective(call, tensors);
    for (const TensorSpec& tensor : tensors) {
      if (reduces(call.kind)) (void)nccl_reduced_type(call, tensor);
    }
    return std::make_shared<CollectivePlan>(call, "nccl:" + nccl_version(nccl_));
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const OpCall& call = collective_of(plan);
    const std::size_t inputs = call.inputs.size();
    const int members = call.group.size();
    const NcclOperands operands{nccl_, call, tensors.first(inputs), tensors.subspan(inputs), members};
    NcclLaunch::Steps steps;
    NcclLaunch::Exchanges exchanges;
    for (int member = 0; member < members; ++member) {
      const int rank = call.group[member];
      if (!held().contains(rank)) continue;
      if (exchanges_tokens(call.kind)) {
        use_device_of(rank);
        exchanges.emplace(rank, nccl_token_exchange(operands, member));
      } else {
        steps.emplace(rank, nccl_steps(operands, member));
      }
    }
    return std::make_shared<NcclLaunch>(group_of(call.group), std::move(steps), std::move(exchanges));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    const auto& collective = dynamic_cast<const NcclLaunch&>(*launch);
    if (const NcclTokenExchange* const exchange = collective.exchange_of(rank))
      return enqueue_exchange(*exchange, collective.group(), rank, stream);
    grouped(collective.of(rank), collective.group(), rank, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    std::byte* token = ranks_.at(rank)->token.get();
    grouped({[this, token](ncclComm_t comm, cudaStream_t on) {
              return nccl_.all_reduce(token, token, 1, ncclFloat32, ncclSum, comm, on);
            }},
            all_ranks, rank, stream);
  }

  void stop() override {
    CudaCommunicator::stop();
    const Clock::time_point begin = Clock::now();
    for (const auto& [rank, own] : ranks_) {
      while (own->in_call && Clock::now() - begin < grace) std::this_thread::yield();
      if (own->in_call) give_up(rank);
    }
  }
  [[nodiscard]] bool restart() override { return !any_aborted() && CudaCommunicator::restart(); }

 protected:
  void poll(int rank) override { expect_sound(rank, "a collective"); }

  void give_up(int rank) override {
    Rank& own = *ranks_.at(rank);
    if (own.aborted.exchange(true)) return;
    for (ncclComm_t communicator : own.communicators) {
      if (communicator != nullptr) (void)nccl_.comm_abort(communicator);
    }
  }

 private:
  static constexpr std::size_t all_ranks = 0;  // the first group set up

  struct Rank {
    int ordinal = 0;                       // of its device
    std::deque<ncclComm_t> communicators;  // by group; null: not a member. Not moved: calls write into them
    std::shared_ptr<std::byte> token;      // one number, reduced in align()
    std::atomic<bool> in_call{false};
    std::atomic<bool> aborted{false};
  };

  /// Marks that a thread is in a call that may hang.
  class InCall {
   public:
    explicit InCall(Rank& rank) : rank_(rank) { rank_.in_call = true; }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall() { rank_.in_call = false; }

   private:
    Rank& rank_;
  };

  /// Communicators of these members, set up at the first use: first that of all ranks, then others split from it.
  [[nodiscard]] std::size_t group_of(const RankGroup& members) {
    const auto known = std::find(groups_.begin(), groups_.end(), members);
    if (known != groups_.end()) return static_cast<std::size_t>(known - groups_.begin());
    for (const auto& [rank, own] : ranks_) own->communicators.push_back(nullptr);
    groups_.push_back(members);
    set_up(members);
    return groups_.size() - 1;
  }

  // A split needs all ranks of the parent. With ranks elsewhere, the members alone set up their group.
  [[nodiscard]] bool splits() const {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
    return nccl_.comm_split != nullptr && groups_.size() > 1 && holds(groups_.front());
#else
    return false;
#endif
  }

  [[nodiscard]] bool holds(const RankGroup& members) const {
    return std::ranges::all_of(members.members(), [this](int rank) { return held().contains(rank); });
  }

  /// Id of a communicator, made by the first member and broadcast to the others.
  [[nodiscard]] ncclUniqueId id_of(const RankGroup& members) const {
    ncclUniqueId id{};
    if (held().contains(members[0])) expect(nccl_.get_unique_id(&id), nullptr, "creating an id");
    if (!holds(members)) all_.broadcast(members, std::as_writable_bytes(std::span(&id, 1)));
    return id;
  }

  /// A rank's part of a set-up: for a split every rank takes part, else only members.
  static ncclResult_t join(const NcclCalls& nccl, const RankGroup& members, bool split, const ncclUniqueId& id,
                           int rank, Rank& own) {
    const std::optional<int> place = members.position(rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
    if (split) {
      return nccl.comm_split(own.communicators[all_ranks], place ? 0 : NCCL_SPLIT_NOCOLOR, place.value_or(0),
                             &own.communicators.back(), &config);
    }
#endif
    if (!place) return ncclSuccess;
    return nccl.comm_init_rank_config(&own.communicators.back(), members.size(), id, *place, &config);
  }

  void set_up(const RankGroup& members) {
    const bool split = splits();
    const ncclUniqueId id = split ? ncclUniqueId{} : id_of(members);
    EachRank all(held().members(), [&nccl = nccl_, members, split, id, ranks = ranks_](int rank) {
      Rank& own = *ranks.at(rank);
      check(cudaSetDevice(own.ordinal), "selecting a rank's device");
      const InCall in_call(own);
      expect_success(nccl, join(nccl, members, split, id, rank, own), nullptr, "setting up a communicator");
    });
    const bool ended = all.ended_within(all_.deadline_s);
    std::string why = fmt::format("cuda: NCCL has not set up {} ranks within {:g} s", members.size(), all_.deadline_s);
    try {
      all.rethrow();
    } catch (const BackendError& e) {
      if (ended) throw;
      why = e.what();
    }
    // A hanging set-up cannot be aborted, as its communicator is unknown: the process must end.
    if (!ended) throw DeviceLost(why);
  }

  [[nodiscard]] bool any_aborted() const {
    return std::ranges::any_of(ranks_, [](const auto& rank) { return rank.second->aborted.load(); });
  }

  // Ranks finalize together; if one has aborted, the others would wait forever.
  void tear_down() {
    constexpr double patience_s = 10.0;
    if (any_aborted()) {
      for (const int rank : held().members()) give_up(rank);
      return;
    }
    EachRank all(held().members(), [&nccl = nccl_, ranks = ranks_](int rank) {
      Rank& own = *ranks.at(rank);
      check(cudaSetDevice(own.ordinal), "selecting a rank's device");
      for (auto communicator = own.communicators.rbegin(); communicator != own.communicators.rend(); ++communicator) {
        if (*communicator == nullptr) continue;
        (void)nccl.comm_finalize(*communicator);
        (void)nccl.comm_destroy(*communicator);
      }
    });
    (void)all.ended_within(patience_s);  // hanging threads end with the process
  }

  // NCCL needs the numbers of rows on the host, so the host waits for the sizes, as training libraries do. A gate must
  // not block the device meanwhile.
  void enqueue_exchange(const NcclTokenExchange& exchange, std::size_t group, int rank, cudaStream_t stream) {
    arrive_at_gate(rank);
    grouped({exchange.gather()}, group, rank, stream);
    exchange.fetch(stream);
    wait(rank, stream);
    const TokenRoutes routes = exchange.routes();
    grouped(exchange.moves(routes), group, rank, stream);
    exchange.finish(routes, stream);
  }

  void grouped(const NcclSteps& steps, std::size_t group, int rank, cudaStream_t stream) {
    if (steps.empty()) return;
    Rank& own = *ranks_.at(rank);
    ncclComm_t communicator = own.communicators[group];
    ncclResult_t result = ncclSuccess;
    ncclResult_t ended = ncclSuccess;
    {
      const InCall in_call(own);
      expect_running(rank);  // after in_call is set, so that stop() sees the call or it is not begun
      result = nccl_.group_start();
      for (const NcclStep& step : steps) {
        if (result == ncclSuccess) result = step(communicator, stream);
      }
      ended = nccl_.group_end();  // also after an error: else the thread stays in the group
    }
    expect_running(rank);  // before using a communicator that stop() may have aborted
    expect(result, communicator, "enqueueing a collective");
    expect(ended, communicator, "enqueueing a collective");
  }

  /// Throws DeviceLost if one of the rank's communicators has an error, which is unrecoverable.
  void expect_sound(int rank, const char* what) {
    for (ncclComm_t communicator : ranks_.at(rank)->communicators) {
      if (communicator == nullptr) continue;
      ncclResult_t state = ncclSuccess;
      expect(nccl_.comm_get_async_error(communicator, &state), communicator, "querying a communicator's state");
      if (state == ncclSuccess) continue;
      const std::string text = words(nccl_, state, communicator, what);
      give_up(rank);
      throw DeviceLost(text);
    }
  }

  void expect(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    expect_success(nccl_, result, communicator, what);
  }
  static void expect_success(const NcclCalls& nccl, ncclResult_t result, ncclComm_t communicator, const char* what) {
    if (result != ncclSuccess) throw BackendError(words(nccl, result, communicator, what));
  }

  [[nodiscard]] static std::string words(const NcclCalls& nccl, ncclResult_t result, ncclComm_t communicator,
                                         const char* what) {
    return fmt::format("cuda: NCCL: {} failed: {} ({}): {}", what, nccl.get_error_string(result),
                       static_cast<int>(result), nccl.get_last_error(communicator));
  }

  const NcclCalls& nccl_;
  NcclRanks all_;
  std::vector<RankGroup> groups_;
  std::map<int, std::shared_ptr<Rank>> ranks_;  // of this process; hanging threads share them
};

}  // namespace

NcclRanks nccl_ranks_on(std::vector<int> devices) {
  const auto ranks = static_cast<int>(devices.size());
  return {ranks, RankGroup::first(ranks), std::move(devices)};
}

std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, NcclRanks ranks) {
  return std::make_unique<NcclCommunicator>(calls, std::move(ranks));
}

}  // namespace gpubench::cuda
