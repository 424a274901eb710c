#include "reference/cuda/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "harness/core/row_view.h"
#include "reference/cuda/move.h"
#include "reference/cuda/plans.h"

namespace gpubench::cuda {
namespace {

constexpr std::size_t page_bytes = 4096;

Buffer on_current_device(std::size_t bytes) {
  const std::shared_ptr<std::byte> memory = allocate(bytes);
  return {memory.get(), bytes, memory};
}

Buffer pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, std::max<std::size_t>(bytes, 1)),
        fmt::format("allocating {} bytes of pinned memory", bytes));
  return {static_cast<std::byte*>(data), bytes,
          std::shared_ptr<void>(data, [](void* held) { (void)cudaFreeHost(held); })};
}

Buffer pageable(std::size_t bytes) {
  const std::size_t pages = (std::max<std::size_t>(bytes, 1) + page_bytes - 1) / page_bytes;
  void* data = std::aligned_alloc(page_bytes, pages * page_bytes);
  if (data == nullptr) throw BackendError(fmt::format("cuda: cannot allocate {} bytes of the host's memory", bytes));
  return {static_cast<std::byte*>(data), bytes, std::shared_ptr<void>(data, std::free)};
}

/// CUDA's copy. From and to pageable memory the driver copies through buffers of its own, with the host at work: in a
/// graph that is another path than the one programs take, where it can be recorded at all.
class Transfer final : public CudaLaunch {
 public:
  Transfer(std::byte* to, const std::byte* from, std::size_t bytes, bool capturable)
      : to_(to), from_(from), bytes_(bytes), capturable_(capturable) {}
  void enqueue(cudaStream_t stream) const override {
    check(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDefault, stream), "copying between memories");
  }
  [[nodiscard]] bool is_capturable() const override { return capturable_; }

 private:
  std::byte* to_;
  const std::byte* from_;
  std::size_t bytes_;
  bool capturable_;
};

// Another device whose memory this one can address; -1: none.
int peer_of(const DeviceTraits& device) {
  const int count = device_count();
  for (int other = 0; other < count; ++other) {
    int reachable = 0;
    if (other == device.ordinal) continue;
    check(cudaDeviceCanAccessPeer(&reachable, device.ordinal, other), "asking whether devices are peers");
    if (reachable != 0) return other;
  }
  return -1;
}

Buffer on_peer(std::size_t bytes, const DeviceTraits& device) {
  const int peer = peer_of(device);
  if (peer < 0) throw Unsupported(fmt::format("cuda: device {} has no peer that it can address", device.ordinal));
  if (const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0); status == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
  } else {
    check(status, "enabling access to a peer");
  }
  check(cudaSetDevice(peer), "selecting a peer");
  Buffer buffer;
  try {
    buffer = on_current_device(bytes);
  } catch (...) {
    (void)cudaSetDevice(device.ordinal);
    throw;
  }
  check(cudaSetDevice(device.ordinal), "selecting the device");
  return buffer;
}

}  // namespace

Buffer allocate_in(Memory memory, std::size_t bytes, const DeviceTraits& device) {
  switch (memory) {
    case Memory::pinned_host: return pinned(bytes);
    case Memory::pageable_host: return pageable(bytes);
    case Memory::peer: return on_peer(bytes, device);
    case Memory::device: break;
  }
  return on_current_device(bytes);
}

Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const auto on_device = [](const TensorSpec& tensor) { return tensor.placement.memory == Memory::device; };
  if (std::all_of(tensors.begin(), tensors.end(), on_device))
    return plan_move(move_of(call, tensors[0], tensors[1]), call, context);
  const TensorSpec& x = tensors[0];
  const TensorSpec& y = tensors[1];
  if (x.layout != y.layout || x.dtype != y.dtype || !is_dense(x)) {
    refuse(call, fmt::format("tensors {} and {} between memories; expected one dense layout and one type",
                             x.to_string(), y.to_string()));
  }
  const auto is_pageable = [](const TensorSpec& tensor) { return tensor.placement.memory == Memory::pageable_host; };
  const bool capturable = std::none_of(tensors.begin(), tensors.end(), is_pageable);
  return plan_bound_by<CudaPlan>(
      capturable ? "cuda:memcpy" : "cuda:memcpy,by stream", 0,
      [bytes = static_cast<std::size_t>(x.bytes()), capturable](std::span<const Tensor> bound, Workspace) -> Launch {
        return std::make_shared<Transfer>(bound[1].data, bound[0].data, bytes, capturable);
      });
}

}  // namespace gpubench::cuda
