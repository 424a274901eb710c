#include "reference/cuda/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "harness/core/error.h"

namespace gpubench::cuda {
namespace {

std::string words(cudaError_t status) {
  return fmt::format("{} ({}): {}", cudaGetErrorName(status), static_cast<int>(status), cudaGetErrorString(status));
}

// CUDA's text for error 35 mentions an old driver even without a driver, so the versions are queried.
std::string no_device_reason(cudaError_t status) {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  if (status == cudaErrorInsufficientDriver && driver == 0) {
    return "no NVIDIA driver is loaded (CUDA error 35, driver version 0): install the driver, or run on a machine "
           "that has one";
  }
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the NVIDIA driver supports CUDA {}.{}, this build needs {}.{}: update the driver",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  }
  return words(status);
}

std::int64_t attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "reading a device attribute");
  return value;
}

constexpr std::size_t page_bytes = 4096;

Buffer on_current_device(std::size_t bytes) {
  const std::shared_ptr<std::byte> memory = allocate(bytes);
  return {memory.get(), bytes, memory};
}

Buffer pinned(std::size_t bytes) {
  const std::shared_ptr<std::byte> memory = allocate_pinned(bytes);
  return {memory.get(), bytes, memory};
}

Buffer pageable(std::size_t bytes) {
  const std::size_t pages = (std::max<std::size_t>(bytes, 1) + page_bytes - 1) / page_bytes;
  void* data = std::aligned_alloc(page_bytes, pages * page_bytes);
  if (data == nullptr) throw BackendError(fmt::format("cuda: cannot allocate {} bytes of host memory", bytes));
  return {static_cast<std::byte*>(data), bytes, std::shared_ptr<void>(data, std::free)};
}

// Another device whose memory this one can access; -1: none.
int peer_of(const DeviceTraits& device) {
  const int count = device_count();
  for (int other = 0; other < count; ++other) {
    int reachable = 0;
    if (other == device.ordinal) continue;
    check(cudaDeviceCanAccessPeer(&reachable, device.ordinal, other), "querying peer access");
    if (reachable != 0) return other;
  }
  return -1;
}

Buffer on_peer(std::size_t bytes, const DeviceTraits& device) {
  const int peer = peer_of(device);
  if (peer < 0) throw Unsupported(fmt::format("cuda: device {} has no peer that it can access", device.ordinal));
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

bool is_sticky(cudaError_t status) {
  static constexpr std::array lost{
      cudaErrorIllegalAddress,      cudaErrorLaunchFailure,       cudaErrorLaunchTimeout,
      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress,
      cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,           cudaErrorAssert,
      cudaErrorECCUncorrectable,    cudaErrorNvlinkUncorrectable, cudaErrorDevicesUnavailable,
      cudaErrorMpsConnectionFailed, cudaErrorMpsRpcFailure,       cudaErrorMpsServerNotReady,
      cudaErrorContained,           cudaErrorTensorMemoryLeak,    cudaErrorUnknown};
  return std::find(lost.begin(), lost.end(), status) != lost.end();
}

void check(cudaError_t status, std::string_view attempted) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // else the next call would report this error
  const std::string text = fmt::format("cuda: {} failed: {}", attempted, words(status));
  if (is_sticky(status)) throw DeviceLost(text);
  throw BackendError(text);
}

void check_launch(std::string_view kernel) { check(cudaGetLastError(), fmt::format("launching {}", kernel)); }

int device_count() {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    (void)cudaGetLastError();
    throw BackendError("cuda: " + no_device_reason(status));
  }
  return count;
}

DeviceTraits traits_of(int ordinal) {
  const int count = device_count();
  if (ordinal < 0 || ordinal >= count) {
    throw BackendError(fmt::format("cuda: no device {}; the driver shows {}", ordinal, count));
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), fmt::format("reading the properties of device {}", ordinal));
  DeviceTraits traits;
  traits.ordinal = ordinal;
  traits.compute_capability = properties.major * 10 + properties.minor;
  traits.multiprocessors = properties.multiProcessorCount;
  traits.max_shared_bytes = static_cast<int>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal));
  traits.l2_bytes = properties.l2CacheSize;
  traits.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  traits.name = properties.name;
  std::array<char, 32> bus_id{};
  check(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal), "reading the PCI bus id");
  traits.pci_bus_id = bus_id.data();
  return traits;
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return Stream(stream);
}

Stream make_urgent_stream() {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "querying stream priorities");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "creating a stream");
  return Stream(stream);
}

bool is_done(cudaStream_t stream) {
  const cudaError_t status = cudaStreamQuery(stream);
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();  // an expected answer; else the next call would report it
    return false;
  }
  check(status, "waiting for the device");
  return true;
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "creating an event");
  return Event(event);
}

Event make_order_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return Event(event);
}

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    throw BackendError(fmt::format("cuda: cannot allocate {} bytes; the device has {} bytes, {} are free", bytes,
                                   total_bytes, free_bytes));
  }
  check(status, fmt::format("allocating {} bytes", bytes));
  return {static_cast<std::byte*>(data), [](std::byte* held) { (void)cudaFree(held); }};
}

std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaHostAlloc(&data, std::max<std::size_t>(bytes, 1), cudaHostAllocPortable | cudaHostAllocMapped),
        fmt::format("allocating {} bytes of pinned memory", bytes));
  std::memset(data, 0, bytes);
  return {static_cast<std::byte*>(data), [](std::byte* held) { (void)cudaFreeHost(held); }};
}

std::shared_ptr<std::byte> upload(std::span<const std::byte> bytes) {
  std::shared_ptr<std::byte> memory = allocate(bytes.size());
  check(cudaMemcpy(memory.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "copying a table to the device");
  // From pageable memory the call may return before the transfer ends, and other streams do not wait for its stream.
  check(cudaStreamSynchronize(nullptr), "copying a table to the device");
  return memory;
}

Buffer allocate_in(Memory memory, std::size_t bytes, const DeviceTraits& device) {
  switch (memory) {
    case Memory::pinned_host: return pinned(bytes);
    case Memory::pageable_host: return pageable(bytes);
    case Memory::peer: return on_peer(bytes, device);
    case Memory::device: break;
  }
  return on_current_device(bytes);
}

}  // namespace gpubench::cuda
