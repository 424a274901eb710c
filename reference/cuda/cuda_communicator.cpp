#include "reference/cuda/cuda_communicator.h"

#include <chrono>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

// Short waits are spun through; longer ones leave the core to others, at the price of hearing of the end a little late.
// What the device measures is not touched by that.
constexpr int spins = 20000;
constexpr auto nap = std::chrono::microseconds(20);

}  // namespace

void expect_collective(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (!is_collective(call.kind)) refuse(call, "its tensors lie on several ranks; expected one rank, or a collective");
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
}

const OpCall& collective_of(const Plan& plan) {
  const auto* own = dynamic_cast<const CollectivePlan*>(plan.get());
  if (own == nullptr) throw BackendError("cuda: the plan is empty or of another backend; expected a collective's");
  return own->call();
}

CudaCommunicator::CudaCommunicator(std::vector<int> devices)
    : devices_(std::move(devices)), gate_(ranks()), waits_(std::make_unique<std::atomic<bool>[]>(devices_.size())) {
  for (int rank = 0; rank < ranks(); ++rank) {
    use_device_of(rank);
    streams_.push_back(make_urgent_stream());
  }
}

void CudaCommunicator::use_device_of(int rank) const {
  check(cudaSetDevice(devices_.at(static_cast<std::size_t>(rank))), "selecting a rank's device");
}

void CudaCommunicator::expect_going(int rank) {
  if (!stopped_) return;
  give_up(rank);
  throw RanksStopped();
}

void CudaCommunicator::wait(int rank, cudaStream_t stream) {
  std::atomic<bool>& waits = waits_[static_cast<std::size_t>(rank)];
  waits = true;
  for (int polls = 0; !is_done(stream); ++polls) {
    poll(rank);
    if (stopped_) waits = false;
    expect_going(rank);
    if (polls > spins) std::this_thread::sleep_for(nap);
  }
  waits = false;
}

void CudaCommunicator::run(const Launch& launch, int rank) {
  enqueue(launch, rank, stream(rank));
  wait(rank, stream(rank));
}

bool CudaCommunicator::restart() {
  for (int rank = 0; rank < ranks(); ++rank) {
    use_device_of(rank);
    // What was enqueued before the failure may still run; nobody may take its memory until it has ended.
    if (cudaDeviceSynchronize() != cudaSuccess) return false;
    waits_[static_cast<std::size_t>(rank)] = false;
  }
  gate_.reset();
  stopped_ = false;
  return true;
}

std::vector<int> CudaCommunicator::waiting() const {
  std::vector<int> found;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (waits_[static_cast<std::size_t>(rank)]) found.push_back(rank);
  }
  return found;
}

}  // namespace gpubench::cuda
