#include "tests/reference/cuda/emulated_backend.h"

#include <atomic>
#include <cstring>
#include <map>
#include <new>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/kernels/runtime.h"
#include "reference/cuda/runtime.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace gpubench::cuda {
namespace {

std::map<const std::byte*, std::size_t>& tables() {
  static std::map<const std::byte*, std::size_t> instance;
  return instance;
}

}  // namespace

void check(cudaError_t status, std::string_view attempted) {
  if (status != cudaSuccess) throw BackendError(std::string(attempted) + " failed under emulation");
}

// Kernels run during the launch and throw their faults there.
void check_launch(std::string_view /*kernel*/) {}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, 0), "creating a stream");
  return Stream(stream);
}

Stream make_urgent_stream() { return make_stream(); }

bool is_done(cudaStream_t stream) {
  const bool done = cudaStreamQuery(stream) == cudaSuccess;
  emulation::rethrow_fault(stream);
  return done;
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, 0), "creating an event");
  return Event(event);
}

Event make_order_event() { return make_event(); }

// Without a time limit: an unopened gate hangs the test.
void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t /*limit_ns*/, cudaStream_t stream) {
  const std::atomic_ref<std::uint64_t> number(*const_cast<std::uint64_t*>(opened));
  emulation::hold_stream(stream, [number, turn] { return number.load() >= turn; });
}

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
  constexpr std::align_val_t alignment{256};  // cudaMalloc's
  return {static_cast<std::byte*>(::operator new(bytes, alignment)),
          [](std::byte* held) { ::operator delete(held, alignment); }};
}

std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, 0), "allocating pinned memory");
  return {static_cast<std::byte*>(memory), [](std::byte* held) { (void)cudaFreeHost(held); }};
}

std::shared_ptr<std::byte> upload(std::span<const std::byte> bytes) {
  auto* memory = static_cast<std::byte*>(::operator new(bytes.size() + 1));
  std::memcpy(memory, bytes.data(), bytes.size());
  tables()[memory] = bytes.size();
  return {memory, [](std::byte* held) {
            tables().erase(held);
            ::operator delete(held);
          }};
}

}  // namespace gpubench::cuda

namespace gpubench::testing {

std::vector<cuda::emulation::Region> uploaded_tables() {
  std::vector<cuda::emulation::Region> regions;
  for (const auto& [memory, bytes] : cuda::tables()) regions.push_back({memory, bytes, false, "a table"});
  return regions;
}

}  // namespace gpubench::testing

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  gpubench::cuda::emulation::on_stream(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

// Blocks for copies of pageable memory, as CUDA may.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  namespace e = gpubench::cuda::emulation;
  e::on_stream(stream, [=] { std::memcpy(to, from, bytes); });
  const void* host = kind == cudaMemcpyDeviceToHost ? to : kind == cudaMemcpyHostToDevice ? from : nullptr;
  while (host != nullptr && !e::is_pinned(host) && cudaStreamQuery(stream) != cudaSuccess) std::this_thread::yield();
  return cudaSuccess;
}
