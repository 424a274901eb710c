#include "reference/cuda/cuda_backend.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/cudnn_plan.h"
#include "reference/cuda/execution.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/runtime.h"
#ifdef GPUBENCH_HAS_NCCL
#include "harness/core/error.h"
#include "reference/cuda/nccl.h"
#endif

namespace gpubench::cuda {
namespace {

template <class Function>
std::string path_of(Function* function) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(function), &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

DeviceInfo describe(const DeviceTraits& traits) {
  DeviceInfo info;
  info.kind = "cuda";
  info.name = traits.name;
  info.units = traits.multiprocessors;
  info.memory_bytes = traits.memory_bytes;
  info.cache_bytes = traits.l2_bytes;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "querying free memory");
  info.available_bytes = static_cast<std::int64_t>(free_bytes);
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "querying the driver's version");
  info.properties = {
      {"compute_capability", fmt::format("{}.{}", traits.compute_capability / 10, traits.compute_capability % 10)},
      {"ordinal", std::to_string(traits.ordinal)},
      {"pci_bus_id", traits.pci_bus_id},
      {"l2_bytes", std::to_string(traits.l2_bytes)},
      {"driver_cuda", cuda_version(driver)}};
  for (const LoadedLibrary& library : loaded_libraries()) info.libraries.emplace_back(library.name, library.version);
  return info;
}

// Whether plans for both would be equal: names and roles do not matter.
bool same_spec(const TensorSpec& a, const TensorSpec& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.layout == b.layout && a.placement == b.placement;
}

struct Planned {
  OpCall call;
  std::string pinned;
  bool deterministic = false;
  std::vector<TensorSpec> tensors;
  Plan plan;

  [[nodiscard]] bool matches(const OpCall& other, std::span<const TensorSpec> specs, const PlanOptions& options) const {
    return call.kind == other.kind && call.math == other.math && pinned == options.pinned &&
           deterministic == options.deterministic && call.inputs.size() == other.inputs.size() &&
           call.attributes == other.attributes &&
           std::equal(tensors.begin(), tensors.end(), specs.begin(), specs.end(), same_spec);
  }
};

/// Plans compiled in this process, shared by its backends.
std::shared_ptr<CudnnPlanStore> compiled_plans() {
  static const auto store = std::make_shared<CudnnPlanStore>();
  return store;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const OpenOptions& options)
      : traits_(traits_of(options.ordinal)),
        stream_(stream_on(options.ordinal)),
        cudnn_(compiled_plans()),
        storage_(*this, stream_.get()),
        device_(describe(traits_)),  // after the allocations above, to report what is still free
        timer_(stream_.get()) {}

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return allocate_in(Memory::device, bytes); }

  [[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes) override {
    use_device();
    return cuda::allocate_in(memory, bytes, traits_);
  }

  void write(std::byte* device, std::span<const std::byte> host) override {
    use_device();
    check(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyDefault, stream_.get()), "copying to the device");
    wait();
  }

  void read(std::span<std::byte> host, const std::byte* device) override {
    use_device();
    check(cudaMemcpyAsync(host.data(), device, host.size(), cudaMemcpyDefault, stream_.get()),
          "copying from the device");
    wait();
  }

  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    is_reachable(device) ? storage_.fill(device, pattern, bytes) : Backend::fill(device, pattern, bytes);
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    use_device();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "copying within the device");
    wait();
  }

  [[nodiscard]] bool host_visible() const override { return false; }
  [[nodiscard]] bool examines_memory() const override { return true; }

  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    is_reachable(device) ? storage_.gather(host, device, offsets) : Backend::gather(host, device, offsets);
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    is_reachable(device) ? storage_.scan(chunks, device, type, rows) : Backend::scan(chunks, device, type, rows);
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    return is_reachable(device) ? storage_.fingerprint(device, bytes) : Backend::fingerprint(device, bytes);
  }

  void announce_plans(std::span<const CallToPlan> calls, const std::function<void()>& alive) override {
    use_device();
    std::vector<CallToPlan> left;
    std::ranges::copy_if(calls, std::back_inserter(left), [this](const CallToPlan& next) {
      return find_planned(*next.call, next.tensors, next.options) == nullptr;
    });
    compile_ahead(left, {traits_, cublaslt_, cudnn_}, static_cast<int>(std::thread::hardware_concurrency()), alive);
  }

  // Equal calls (layers of a model) share a plan: tuning each would take minutes and could choose differently.
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    use_device();
    if (tensors.size() != call.inputs.size() + call.outputs.size()) {
      throw BackendError(fmt::format("cuda {} '{}': got {} tensors; expected {} inputs and {} outputs", call.kind.name,
                                     call.label, tensors.size(), call.inputs.size(), call.outputs.size()));
    }
    if (const Planned* planned = find_planned(call, tensors, options); planned != nullptr) return planned->plan;
    const CudaContext context{traits_, cublaslt_, cudnn_, stream_.get(), options};
    Plan plan = implementation_of(call.kind).plan(call, tensors, context);
    planned_.push_back(
        {call, options.pinned, options.deterministic, {tensors.begin(), tensors.end()}, std::move(plan)});
    return planned_.back().plan;
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    use_device();
    const auto* own = dynamic_cast<const CudaPlan*>(plan.get());
    if (own == nullptr) throw BackendError("cuda: the plan is empty or of another backend; expected one planned here");
    if (workspace.bytes < own->workspace_bytes()) {
      throw BackendError(fmt::format("cuda: {} was bound with a workspace of {} bytes; expected at least {}",
                                     own->implementation(), workspace.bytes, own->workspace_bytes()));
    }
    return own->bind(tensors, workspace);
  }

  [[nodiscard]] Launch launch_of(std::function<void(void* stream)> work) override {
    return cuda::launch_of([work = std::move(work)](cudaStream_t stream) { work(stream); });
  }

  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return claims_; }

  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    use_device();
    Launch ordered = in_stream_order(launches);
    // Implementation names mark work that cannot be captured ("by stream").
    if (schedule.mode == LaunchMode::stream || !are_capturable(launches)) return ordered;
    return std::make_shared<GraphLaunch>(std::move(ordered), stream_.get());
  }

  void run(const Launch& launch) override {
    use_device();
    own_launch(launch).enqueue(stream_.get());
    wait();
  }

  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    use_device();
    return timer_.time(copies, plan);
  }

 private:
  static Stream stream_on(int ordinal) {
    check(cudaSetDevice(ordinal), fmt::format("selecting device {}", ordinal));
    return make_stream();
  }
  // The current device is per thread.
  void use_device() const { check(cudaSetDevice(traits_.ordinal), "selecting the device"); }
  [[nodiscard]] const Planned* find_planned(const OpCall& call, std::span<const TensorSpec> tensors,
                                            const PlanOptions& options) const {
    const auto found =
        std::ranges::find_if(planned_, [&](const Planned& planned) { return planned.matches(call, tensors, options); });
    return found == planned_.end() ? nullptr : &*found;
  }
  // Kernels cannot access pageable memory.
  [[nodiscard]] bool is_reachable(const std::byte* address) const {
    use_device();
    cudaPointerAttributes where{};
    check(cudaPointerGetAttributes(&where, address), "querying the owner of an address");
    return where.type != cudaMemoryTypeUnregistered;
  }
  void wait() const { check(cudaStreamSynchronize(stream_.get()), "waiting for the device"); }

  DeviceTraits traits_;
  Stream stream_;
  CublasLt cublaslt_;
  Cudnn cudnn_;
  StorageKernels storage_;
  DeviceInfo device_;
  RoundTimer timer_;
  std::vector<Planned> planned_;
  const std::vector<FusionClaim> claims_ = fusion_claims(op_files());
};

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
  int runtime = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  return {{"cudart", cuda_version(runtime), "" /* part of this module */},
          {"cublaslt", cublaslt_version(), path_of(cublasLtGetVersion)},
          {"cudnn", cudnn_version(), path_of(cudnnGetVersion)}};
}

std::vector<LoadedLibrary> all_libraries() {
  std::vector<LoadedLibrary> libraries = loaded_libraries();
#ifdef GPUBENCH_HAS_NCCL
  try {
    const NcclCalls& nccl = nccl_calls();
    libraries.push_back({"nccl", nccl_version(nccl), path_of(nccl.get_version)});
  } catch (const Unsupported&) {
    // One GPU needs no NCCL; several report its absence.
  }
#endif
  return libraries;
}

OpenedDevice open_cuda_device(const OpenOptions& options) {
  auto backend = std::make_unique<CudaBackend>(options);
  const cudaStream_t stream = backend->stream();
  return {std::move(backend), stream};
}

std::unique_ptr<Backend> open_cuda_backend(const OpenOptions& options) { return open_cuda_device(options).backend; }

}  // namespace gpubench::cuda
