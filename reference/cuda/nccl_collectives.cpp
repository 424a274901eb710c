// A rank whose peers are in other processes: its part of NCCL's collectives, and its lanes.
#include <vector>

#include "reference/cuda/cuda_communicator.h"
#include "reference/cuda/nccl.h"

namespace gpubench::cuda {
namespace {

class NcclCollectives final : public RankCollectives {
 public:
  NcclCollectives(const NcclCalls& calls, const NcclRanks& ranks)
      : rank_(ranks.held[0]),
        ordinal_(ranks.devices.front()),
        communicator_(open_nccl_communicator(calls, ranks)),
        compute_(stream_on(ordinal_)),
        queues_(open_rank_streams(*communicator_, rank_, compute_.get())) {}

  [[nodiscard]] std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) override {
    return communicator_->plan(call, tensors)->implementation();
  }
  [[nodiscard]] Launch bind(const OpCall& call, std::span<const Tensor> tensors) override {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors) specs.push_back(tensor.spec);
    return communicator_->bind(communicator_->plan(call, specs), tensors);
  }
  void run(const Launch& launch, bool /*overlaps_compute: what waits is no processor*/) override {
    use_device();
    communicator_->run(launch, rank_);
  }
  void align() override {
    use_device();
    communicator_->align(rank_, compute_.get());
    communicator_->wait(rank_, compute_.get());
  }
  [[nodiscard]] RankQueues* queues() override {
    use_device();
    return queues_.get();
  }

 private:
  static Stream stream_on(int ordinal) {
    check(cudaSetDevice(ordinal), "selecting the rank's device");
    return make_stream();
  }
  void use_device() const { check(cudaSetDevice(ordinal_), "selecting the rank's device"); }

  int rank_;
  int ordinal_;
  std::unique_ptr<CudaCommunicator> communicator_;
  Stream compute_;
  std::unique_ptr<RankQueues> queues_;
};

}  // namespace

std::unique_ptr<RankCollectives> open_nccl_collectives(const NcclCalls& calls, const NcclRanks& ranks) {
  return std::make_unique<NcclCollectives>(calls, ranks);
}

}  // namespace gpubench::cuda
