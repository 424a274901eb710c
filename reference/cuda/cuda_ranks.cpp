#include "reference/cuda/cuda_backend.h"

#include <fmt/format.h>

#include "harness/core/error.h"
#include "reference/cuda/cuda_communicator.h"
#ifdef GPUBENCH_HAS_NCCL
#include "reference/cuda/nccl.h"
#endif

namespace gpubench::cuda {
namespace {

#ifndef GPUBENCH_HAS_NCCL
[[noreturn]] void refuse_without_nccl(int ranks) {
  throw Unsupported(fmt::format(
      "{} GPUs need NCCL: this build lacks it, as its header was missing; install it and build again", ranks));
}
#endif

std::unique_ptr<CudaCommunicator> open_nccl(const std::vector<int>& devices, DeviceInfo& device) {
#ifdef GPUBENCH_HAS_NCCL
  device.libraries.emplace_back("nccl", nccl_version(nccl_calls()));
  return open_nccl_communicator(nccl_calls(), nccl_ranks_on(devices));
#else
  (void)device;
  refuse_without_nccl(static_cast<int>(devices.size()));
#endif
}

void expect_devices(int first, int ranks) {
  const int there = device_count();
  if (ranks >= 1 && first + ranks <= there) return;
  throw Unsupported(
      fmt::format("{} ranks need one GPU each, from cuda:{} on: the driver shows {}; to check without measuring, "
                  "run all ranks on one GPU with --virtual-ranks",
                  ranks, first, there));
}

}  // namespace

RankSet open_cuda_ranks(const RankOptions& options) {
  if (!options.is_virtual) expect_devices(options.first.ordinal, options.ranks);
  std::vector<int> devices;
  for (int rank = 0; rank < options.ranks; ++rank)
    devices.push_back(options.first.ordinal + (options.is_virtual ? 0 : rank));
  RankSet set;
  std::vector<cudaStream_t> streams;
  for (const int device : devices) {
    OpenOptions own = options.first;
    own.ordinal = device;
    OpenedDevice opened = open_cuda_device(own);
    streams.push_back(opened.stream);
    set.backends.push_back(std::move(opened.backend));
  }
  set.device = set.backends.front()->device();
  std::unique_ptr<CudaCommunicator> communicator = options.is_virtual
                                                       ? open_virtual_communicator(options.ranks, options.first.ordinal)
                                                       : open_nccl(devices, set.device);
  for (int rank = 0; rank < options.ranks; ++rank) {
    check(cudaSetDevice(devices[static_cast<std::size_t>(rank)]), "selecting a rank's device");
    set.queues.push_back(open_rank_streams(*communicator, rank, streams[static_cast<std::size_t>(rank)]));
  }
  set.communicator = std::move(communicator);
  set.enter = [devices](int rank) {
    check(cudaSetDevice(devices[static_cast<std::size_t>(rank)]), "selecting a rank's device");
  };
  for (int rank = 1; rank < options.ranks && !options.is_virtual; ++rank) {
    const DeviceInfo& other = set.backends[static_cast<std::size_t>(rank)]->device();
    set.device.units += other.units;
    set.device.memory_bytes += other.memory_bytes;
    set.device.available_bytes += other.available_bytes;
    set.device.cache_bytes += other.cache_bytes;
  }
  if (options.is_virtual) set.flags.emplace_back("virtual");
  return set;
}

int process_device(int place_on_host) {
  const int there = device_count();
  if (there < 1) throw BackendError("cuda: the driver shows no GPU to this process; check CUDA_VISIBLE_DEVICES");
  return place_on_host % there;
}

std::unique_ptr<RankCollectives> open_process_collectives(const ProcessRank& rank) {
#ifdef GPUBENCH_HAS_NCCL
  return open_nccl_collectives(
      nccl_calls(), {.ranks = rank.ranks,
                     .held = RankGroup({rank.rank}),
                     .devices = {rank.device.ordinal},
                     .broadcast = [&processes = rank.processes](const RankGroup& members, std::span<std::byte> bytes) {
                       processes.broadcast(members, bytes);
                     }});
#else
  refuse_without_nccl(rank.ranks);
#endif
}

}  // namespace gpubench::cuda
