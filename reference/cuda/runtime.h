// RAII wrappers and error checks for the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/backend.h"

namespace gpubench::cuda {

/// Throws with CUDA's name and text for an error: DeviceLost if the context is beyond repair, else BackendError.
void check(cudaError_t status, std::string_view attempted);

/// True for errors after which every call of this process on the device fails.
[[nodiscard]] bool is_sticky(cudaError_t status);

/// Throws if a kernel launch was refused (bad configuration, no code for this device).
void check_launch(std::string_view kernel);

struct DeviceTraits {
  int ordinal = 0;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  int max_shared_bytes = 0;  ///< per block, opt-in limit
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string name;  ///< untrusted text
  std::string pci_bus_id;
};

/// Throws BackendError: no driver (with advice), a driver older than this runtime, no device `ordinal`.
[[nodiscard]] DeviceTraits traits_of(int ordinal);
/// Number of visible devices. Throws BackendError without a usable driver.
[[nodiscard]] int device_count();

namespace detail {
struct StreamDelete {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct EventDelete {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct GraphDelete {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct GraphExecDelete {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
}  // namespace detail

using Stream = std::unique_ptr<CUstream_st, detail::StreamDelete>;
using Event = std::unique_ptr<CUevent_st, detail::EventDelete>;
using Graph = std::unique_ptr<CUgraph_st, detail::GraphDelete>;
using GraphExec = std::unique_ptr<CUgraphExec_st, detail::GraphExecDelete>;

[[nodiscard]] Stream make_stream();
/// A stream whose kernels are scheduled before those of other streams.
[[nodiscard]] Stream make_urgent_stream();
[[nodiscard]] bool is_done(cudaStream_t stream);
/// With timing.
[[nodiscard]] Event make_event();
/// Without timing: for ordering streams.
[[nodiscard]] Event make_order_event();

/// Device memory, freed with the last owner. Throws BackendError with the byte counts if memory runs out.
[[nodiscard]] std::shared_ptr<std::byte> allocate(std::size_t bytes);

/// Device memory holding `bytes`, copied on return: for tables of bound work. Not during a stream capture.
[[nodiscard]] std::shared_ptr<std::byte> upload(std::span<const std::byte> bytes);

/// Zeroed pinned host memory, which devices and host may access at the same time. Copies to pageable memory can block
/// their thread until all earlier work on the stream is done.
[[nodiscard]] std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes);

/// Memory of the current device, the host, or a peer. `peer`: the first other device that this one can access directly.
/// Throws Unsupported if there is no peer, BackendError if memory runs out.
[[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes, const DeviceTraits& device);

}  // namespace gpubench::cuda
