#include "reference/cuda/cuda_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/runtime.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

// A wait spins first, then naps to free the core, which delays its end by up to a nap. Device timings are unaffected.
constexpr int spins = 20000;
constexpr auto nap = std::chrono::microseconds(20);

static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t) &&
                  std::atomic<std::uint64_t>::is_always_lock_free,
              "a device reads the number as it lies in memory");

std::shared_ptr<std::atomic<std::uint64_t>> shared_number() {
  const std::shared_ptr<std::byte> memory = allocate_pinned(sizeof(std::uint64_t));
  return {memory, ::new (memory.get()) std::atomic<std::uint64_t>(0)};
}

class RankStreams final : public RankQueues {
 public:
  RankStreams(CudaCommunicator& communicator, int rank, cudaStream_t compute)
      : communicator_(communicator),
        rank_(rank),
        compute_(compute),
        communication_(communicator.stream(rank)),
        computed_(make_order_event()),
        begin_(make_event()),
        end_(make_event()) {}

  void enqueue(const RankProgram& program, const At& at) override {
    if (program.compute.empty() || program.communication.empty()) {
      for (const LaneStep& step : program.compute) compute(step, at);
      for (const LaneStep& step : program.communication) communicate(step, compute_, at);
      return;
    }
    enqueue_both(program, at);
  }

  void begin() override {
    communicator_.close_gate(rank_, compute_);
    enqueued_ = 0;
    communicator_.align(rank_, compute_);
    check(cudaEventRecord(begin_.get(), compute_), "recording an event");
  }

  [[nodiscard]] double end() override {
    check(cudaEventRecord(end_.get(), compute_), "recording an event");
    communicator_.arrive_at_gate(rank_);
    communicator_.wait(rank_, compute_);
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "reading an elapsed time");
    return static_cast<double>(ms) * 1e6;
  }

 private:
  // Enqueues steps after those that they wait for, and collectives as early as possible. All ranks have the same lanes
  // of collectives, hence the same order.
  void enqueue_both(const RankProgram& program, const At& at) {
    while (communicated_.size() < program.communication.size()) communicated_.push_back(make_order_event());
    communication_waits_for_compute();  // for the previous run
    std::size_t computed = 0;
    std::size_t communicated = 0;
    std::uint64_t compute_waited = 0;
    std::uint64_t communication_waited = 0;
    while (computed < program.compute.size() || communicated < program.communication.size()) {
      if (communicated < program.communication.size() && program.communication[communicated].waits_for <= computed) {
        const LaneStep& step = program.communication[communicated];
        if (step.waits_for > communication_waited) {
          communication_waits_for_compute();
          communication_waited = computed;
        }
        communicate(step, communication_, at);
        check(cudaEventRecord(communicated_[communicated].get(), communication_), "recording an event");
        ++communicated;
      } else if (computed < program.compute.size() && program.compute[computed].waits_for <= communicated) {
        const LaneStep& step = program.compute[computed];
        if (step.waits_for > compute_waited) {
          compute_waits_for(step.waits_for - 1);
          compute_waited = step.waits_for;
        }
        compute(step, at);
        ++computed;
      } else {
        throw BackendError("cuda: the lanes of a rank wait for each other; expected steps in program order");
      }
    }
    compute_waits_for(communicated - 1);
  }

  void compute(const LaneStep& step, const At& at) {
    at(*step.label);
    own_launch(*step.work).enqueue(compute_);
    count();
  }
  void communicate(const LaneStep& step, cudaStream_t stream, const At& at) {
    at(*step.label);
    communicator_.enqueue(*step.work, rank_, stream);
    count();
  }
  // Longer intervals open the gate while they are enqueued: by then the device has enough work.
  void count() {
    if (++enqueued_ == StartGate::max_waiting) communicator_.arrive_at_gate(rank_);
  }
  void communication_waits_for_compute() {
    check(cudaEventRecord(computed_.get(), compute_), "recording an event");
    check(cudaStreamWaitEvent(communication_, computed_.get(), 0), "waiting for a stream");
  }
  void compute_waits_for(std::size_t collective) {
    check(cudaStreamWaitEvent(compute_, communicated_[collective].get(), 0), "waiting for a stream");
  }

  CudaCommunicator& communicator_;
  int rank_;
  cudaStream_t compute_;
  cudaStream_t communication_;
  int enqueued_ = 0;
  Event computed_;
  std::vector<Event> communicated_;
  Event begin_;
  Event end_;
};

}  // namespace

void expect_collective(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (!is_collective(call.kind)) refuse(call, "its tensors are on several ranks; expected one rank, or a collective");
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
}

const OpCall& collective_of(const Plan& plan) {
  const auto* own = dynamic_cast<const CollectivePlan*>(plan.get());
  if (own == nullptr) throw BackendError("cuda: the plan is empty or of another backend; expected a collective's");
  return own->call();
}

StartGate::StartGate(std::size_t ranks)
    : ranks_(ranks), turns_(std::make_unique<Turns[]>(ranks)), opened_(shared_number()) {}

void StartGate::close(std::size_t place, cudaStream_t stream) {
  const std::uint64_t turn = ++turns_[place].closed;
  launch_gate(reinterpret_cast<const std::uint64_t*>(opened_.get()), turn, limit_ns, stream);
  check_launch("the gate");
}

void StartGate::arrive(std::size_t place) {
  Turns& own = turns_[place];
  own.arrived = own.closed.load();
  std::uint64_t all = own.arrived;
  for (std::size_t peer = 0; peer < ranks_; ++peer) all = std::min(all, turns_[peer].arrived.load());
  std::uint64_t seen = opened_->load();
  while (seen < all && !opened_->compare_exchange_weak(seen, all)) {
  }
}

void StartGate::reset() {
  std::uint64_t last = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) last = std::max(last, turns_[rank].closed.load());
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    turns_[rank].closed = last;
    turns_[rank].arrived = last;
  }
  *opened_ = last;
}

CudaCommunicator::CudaCommunicator(RankGroup held, std::vector<int> devices)
    : held_(std::move(held)),
      devices_(std::move(devices)),
      gate_(devices_.size()),
      waits_(std::make_unique<std::atomic<bool>[]>(devices_.size())) {
  for (const int rank : held_.members()) {
    use_device_of(rank);
    streams_.push_back(make_urgent_stream());
  }
}

std::size_t CudaCommunicator::place(int rank) const {
  const std::optional<int> found = held_.position(rank);
  if (!found) throw BackendError(fmt::format("cuda: rank {} belongs to another process", rank));
  return static_cast<std::size_t>(*found);
}

void CudaCommunicator::use_device_of(int rank) const {
  check(cudaSetDevice(devices_.at(place(rank))), "selecting a rank's device");
}

void CudaCommunicator::expect_running(int rank) {
  if (!stopped_) return;
  give_up(rank);
  throw RanksStopped();
}

void CudaCommunicator::wait(int rank, cudaStream_t stream) {
  std::atomic<bool>& waits = waits_[place(rank)];
  waits = true;
  for (int polls = 0; !is_done(stream); ++polls) {
    poll(rank);
    if (stopped_) waits = false;
    expect_running(rank);
    if (polls > spins) std::this_thread::sleep_for(nap);
  }
  waits = false;
}

void CudaCommunicator::run(const Launch& launch, int rank) {
  enqueue(launch, rank, stream(rank));
  wait(rank, stream(rank));
}

bool CudaCommunicator::restart() {
  for (const int rank : held_.members()) {
    use_device_of(rank);
    // Work enqueued before the failure may still run; its memory must not be reused before it ends.
    if (cudaDeviceSynchronize() != cudaSuccess) return false;
    waits_[place(rank)] = false;
  }
  gate_.reset();
  stopped_ = false;
  return true;
}

std::vector<int> CudaCommunicator::waiting() const {
  std::vector<int> found;
  for (const int rank : held_.members()) {
    if (waits_[place(rank)]) found.push_back(rank);
  }
  return found;
}

std::unique_ptr<RankQueues> open_rank_streams(CudaCommunicator& communicator, int rank, cudaStream_t compute) {
  return std::make_unique<RankStreams>(communicator, rank, compute);
}

}  // namespace gpubench::cuda
