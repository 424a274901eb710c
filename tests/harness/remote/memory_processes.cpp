#include "tests/harness/remote/memory_processes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "harness/core/communicator.h"
#include "harness/core/error.h"
#include "harness/run/forwarding_backend.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/usable_isa.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::testing {
namespace {

/// A collective of one group: each member adds its own tensors when it binds.
struct Meeting {
  explicit Meeting(int members) : barrier(members, 0), members_left(members) {}
  RankBarrier barrier;
  int members_left;
  std::vector<Tensor> tensors;
};

struct MeetingLaunch : LaunchImpl {
  OpCall call;
  std::shared_ptr<Meeting> meeting;
  int member = 0;
};

struct SharedSet {
  explicit SharedSet(int ranks) : together(ranks, 0) {}
  RankBarrier together;
  std::mutex mutex;
  std::map<std::vector<int>, std::shared_ptr<Meeting>> forming;  // by the members of the group
};

void reduce(const ReduceTask& task) {
  for (std::int64_t i = 0; i < task.count; ++i) {
    double value = load(task.type, task.from[0], i);
    for (std::size_t peer = 1; peer < task.from.size(); ++peer) {
      const double x = load(task.type, task.from[peer], i);
      if (task.reduction == Reduction::maximum) {
        value = x > value || x != x ? x : value;
      } else {
        value += x;
      }
    }
    if (task.reduction == Reduction::average) value /= static_cast<double>(task.from.size());
    for (std::byte* to : task.to) store(task.type, to, i, value);
  }
}

class ChangedDevice final : public ForwardingBackend {
 public:
  ChangedDevice(std::unique_ptr<Backend> inner, const std::function<void(DeviceInfo&)>& change)
      : ForwardingBackend(*inner, nullptr), held_(std::move(inner)), info_(held_->device()) {
    change(info_);
  }
  [[nodiscard]] const DeviceInfo& device() const override { return info_; }

 private:
  std::unique_ptr<Backend> held_;
  DeviceInfo info_;
};

class MemoryCollectives final : public RankCollectives {
 public:
  MemoryCollectives(std::shared_ptr<SharedSet> set, int rank) : set_(std::move(set)), rank_(rank) {}

  [[nodiscard]] std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) override {
    for (const TensorSpec& tensor : tensors) {
      if (reduces(call.kind) && tensor.dtype == DType::f16) throw Unsupported("reductions of f16");
    }
    return "tests:memory";
  }
  [[nodiscard]] Launch bind(const OpCall& call, std::span<const Tensor> tensors) override {
    auto launch = std::make_shared<MeetingLaunch>();
    launch->call = call;
    launch->member = call.group.position(rank_).value();
    const std::vector<int> members(call.group.members().begin(), call.group.members().end());
    const std::lock_guard lock(set_->mutex);
    std::shared_ptr<Meeting>& forming = set_->forming[members];
    if (forming == nullptr) forming = std::make_shared<Meeting>(call.group.size());
    launch->meeting = forming;
    forming->tensors.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].data != nullptr) forming->tensors[i] = tensors[i];
    }
    if (--forming->members_left == 0) forming = nullptr;  // the next bind starts another one
    return launch;
  }
  void run(const Launch& launch, bool /*its barriers sleep*/) override {
    const auto& own = dynamic_cast<const MeetingLaunch&>(*launch);
    own.meeting->barrier.arrive(own.member);
    run_tasks(own);
    own.meeting->barrier.arrive(own.member);
  }
  void align() override { set_->together.arrive(rank_); }

 private:
  static void copy(std::span<const CopyTask> copies) {
    for (const CopyTask& task : copies) std::memcpy(task.to, task.from, static_cast<std::size_t>(task.bytes));
  }
  static void run_tasks(const MeetingLaunch& own) {
    if (exchanges_tokens(own.call.kind)) {
      const ExchangeTasks tasks = exchange_tasks(own.call, own.meeting->tensors, own.member);
      copy(tasks.copies);
      std::ranges::fill(tasks.cleared, std::byte{0});
      return;
    }
    const RankTasks tasks = tasks_of(own.call, own.meeting->tensors)[static_cast<std::size_t>(own.member)];
    for (const ReduceTask& task : tasks.reductions) reduce(task);
    copy(tasks.copies);
  }

  std::shared_ptr<SharedSet> set_;
  int rank_;
};

}  // namespace

// All ranks open sets in the same order, so the n-th set of a size is the same for each rank.
struct MemoryProcesses::Shared {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::shared_ptr<SharedSet>> sets;
  std::map<std::pair<int, int>, int> opened;  // by ranks of the set, and rank

  std::unique_ptr<RankCollectives> open(int ranks, int rank) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<SharedSet>& set = sets[{ranks, opened[{ranks, rank}]++}];
    if (set == nullptr) set = std::make_shared<SharedSet>(ranks);
    return std::make_unique<MemoryCollectives>(set, rank);
  }
};

ServerSetup usual_setup(int rank, const std::function<void(DeviceInfo&)>& change) {
  ServerSetup setup;
  setup.hello = {"this build", "host" + std::to_string(rank), 100 + rank, 0.0};
  setup.open_backend = [change]() -> std::unique_ptr<Backend> {
    std::unique_ptr<Backend> backend = open_cpu_backend(1);
    if (!change) return backend;
    return std::make_unique<ChangedDevice>(std::move(backend), change);
  };
  return setup;
}

MemoryProcesses::MemoryProcesses(int ranks, double limit_s, const MakeSetup& make)
    : shared_(std::make_shared<Shared>()), limit_s_(limit_s) {
  (void)cpu::usable_isa();  // forks a child on first use: with several threads, it could inherit a held lock
  for (int rank = 0; rank < ranks; ++rank) {
    channels_.push_back(local_channel());
    ServerSetup setup = make ? make(rank) : usual_setup(rank);
    if (!setup.open_collectives)
      setup.open_collectives = [shared = shared_, rank](int count) { return shared->open(count, rank); };
    threads_.emplace_back([channel = std::shared_ptr<Channel>(std::move(channels_.back().second)),
                           setup = std::move(setup)] { (void)serve_rank(*channel, setup); });
  }
}

RemoteRanks& MemoryProcesses::ranks() {
  if (ranks_ == nullptr) {
    std::vector<Channel*> channels;
    for (const ChannelPair& pair : channels_) channels.push_back(pair.first.get());
    ranks_ = std::make_unique<RemoteRanks>(std::move(channels), usual_setup(0).hello, limit_s_);
  }
  return *ranks_;
}

MemoryProcesses::~MemoryProcesses() {
  const bool lost = ranks_ != nullptr && ranks_->lost();
  MessageWriter end;
  end.put(Request::end);
  end.put(0);
  for (std::size_t rank = 0; rank < threads_.size(); ++rank) {
    channels_[rank].first->send(end.bytes());
    lost ? threads_[rank].detach() : threads_[rank].join();
  }
}

}  // namespace gpubench::testing
