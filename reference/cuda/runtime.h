// The CUDA runtime, wrapped so that no status is lost and nothing leaks.
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

/// Throws when `status` is an error, with CUDA's name and text for it: BackendError, or DeviceLost where the context is
/// beyond repair, so that nothing after it could be trusted.
void check(cudaError_t status, std::string_view attempted);

/// True for errors after which every call of this process on the device fails.
[[nodiscard]] bool is_sticky(cudaError_t status);

/// Throws if a kernel launch was refused (bad configuration, no code for this device).
void check_launch(std::string_view kernel);

/// What plans need to know of the device.
struct DeviceTraits {
  int ordinal = 0;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  int max_shared_bytes = 0;  ///< a block may opt in to
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string name;  ///< untrusted text
  std::string pci_bus_id;
};

/// Throws BackendError: no driver (with what to do), a driver older than this runtime, no device `ordinal`.
[[nodiscard]] DeviceTraits traits_of(int ordinal);
/// As many as the driver shows. Throws BackendError without a usable driver.
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
/// One whose kernels are scheduled before those of other streams.
[[nodiscard]] Stream make_urgent_stream();
/// Whether everything on the stream is done.
[[nodiscard]] bool is_done(cudaStream_t stream);
/// One that measures time.
[[nodiscard]] Event make_event();
/// One that orders streams only.
[[nodiscard]] Event make_order_event();

/// Device memory, freed with the last owner. Throws BackendError with the byte counts when memory runs out.
[[nodiscard]] std::shared_ptr<std::byte> allocate(std::size_t bytes);

/// Device memory with these bytes in it, complete on return: tables that bound work keeps. Not while a stream is
/// captured.
[[nodiscard]] std::shared_ptr<std::byte> upload(std::span<const std::byte> bytes);

/// Memory of the host that devices read and write while the host goes on, zeroed. A copy between a device and pageable
/// memory may keep its thread until everything before it on the stream is done.
[[nodiscard]] std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes);

/// Memory of the current device, the host's, or a peer's. `peer`: of the first other device that this one can address
/// directly. Throws Unsupported where there is no such device, BackendError when memory runs out.
[[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes, const DeviceTraits& device);

}  // namespace gpubench::cuda
