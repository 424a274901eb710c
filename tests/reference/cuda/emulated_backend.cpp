#include "tests/reference/cuda/emulated_backend.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/cuda_backend.h"
#include "reference/cuda/kernel.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace gpubench::testing {
namespace {

using cuda::emulation::MemoryWatch;
using cuda::emulation::Region;

/// Runs a plan's work under watch. Fills scratch memory with garbage before each run.
class WatchedLaunch final : public cuda::CudaLaunch {
 public:
  WatchedLaunch(Launch launch, std::vector<Region> regions, Workspace workspace)
      : launch_(std::move(launch)), regions_(std::move(regions)), workspace_(workspace) {}

  void enqueue(cudaStream_t stream) const override {
    if (stream != nullptr) return cuda::emulation::on_stream(stream, [this] { enqueue(nullptr); });
    if (workspace_.bytes > 0) std::memset(workspace_.data, 0xFF, workspace_.bytes);
    std::vector<Region> all = regions_;
    for (const Region& table : uploaded_tables()) all.push_back(table);
    const MemoryWatch watch(std::move(all));
    dynamic_cast<const cuda::CudaLaunch&>(*launch_).enqueue(stream);
  }

 private:
  Launch launch_;
  std::vector<Region> regions_;
  Workspace workspace_;
};

class WatchedPlan final : public PlanImpl {
 public:
  WatchedPlan(Plan plan, std::size_t inputs) : plan_(std::move(plan)), inputs_(inputs) {}
  [[nodiscard]] std::string implementation() const override { return plan_->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }

  [[nodiscard]] Launch bind(std::span<const Tensor> tensors, Workspace workspace) const {
    std::vector<Region> regions;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorSpec& spec = tensors[i].spec;
      regions.push_back({tensors[i].data, static_cast<std::size_t>(spec.bytes()), i >= inputs_, "'" + spec.name + "'",
                         static_cast<std::size_t>(bytes_of(spec.dtype, 1))});
    }
    regions.push_back({workspace.data, workspace.bytes, true, "the workspace", 1});
    Launch launch = dynamic_cast<const cuda::CudaPlan&>(*plan_).bind(tensors, workspace);
    return std::make_shared<WatchedLaunch>(std::move(launch), std::move(regions), workspace);
  }

 private:
  Plan plan_;
  std::size_t inputs_;
};

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(const EmulatedOptions& options) : options_(options) {
    info_.kind = "cuda";
    info_.name = "emulated";
    traits_.compute_capability = options.compute_capability;
    traits_.multiprocessors = options.multiprocessors;
  }

  [[nodiscard]] const DeviceInfo& device() const override { return info_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    constexpr std::align_val_t alignment{256};  // cudaMalloc's
    auto* data = static_cast<std::byte*>(::operator new(bytes, alignment));
    return {data, bytes, std::shared_ptr<void>(data, [](void* held) { ::operator delete(held, alignment); })};
  }
  void write(std::byte* device, std::span<const std::byte> host) override {
    std::memcpy(device, host.data(), host.size());
  }
  void read(std::span<std::byte> host, const std::byte* device) override {
    std::memcpy(host.data(), device, host.size());
  }
  [[nodiscard]] bool host_visible() const override { return true; }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    storage_.fill(device, pattern, bytes);
  }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    storage_.gather(host, device, offsets);
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    storage_.scan(chunks, device, type, rows);
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    return storage_.fingerprint(device, bytes);
  }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& /*options*/) override {
    const cuda::CudaContext context{traits_,
                                    cublaslt_,
                                    reinterpret_cast<const cuda::Cudnn&>(no_library_),
                                    nullptr,
                                    {.pinned = options_.pinned, .deterministic = options_.deterministic}};
    Plan plan = cuda::implementation_of(call.kind).plan(call, tensors, context);
    return std::make_shared<WatchedPlan>(std::move(plan), call.inputs.size());
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    return dynamic_cast<const WatchedPlan&>(*plan).bind(tensors, workspace);
  }
  void run(const Launch& launch) override { dynamic_cast<const cuda::CudaLaunch&>(*launch).enqueue(nullptr); }

  [[nodiscard]] Launch sequence(std::span<const Launch> /*launches*/, const Schedule& /*schedule*/) override {
    throw BackendError("the emulated backend runs single ops only");
  }
  [[nodiscard]] RoundTimes time(std::span<const Launch> /*copies*/, const RoundPlan& /*plan*/) override {
    throw BackendError("the emulated backend has no clock");
  }

 private:
  DeviceInfo info_;
  EmulatedOptions options_;
  cuda::DeviceTraits traits_;
  cuda::CublasLt cublaslt_;
  cuda::StorageKernels storage_{*this, nullptr};
  alignas(64) std::byte no_library_[64] = {};  // own kernels need no library
};

}  // namespace

std::unique_ptr<Backend> open_emulated_backend(const EmulatedOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace gpubench::testing
