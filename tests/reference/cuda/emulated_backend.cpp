#include "tests/reference/cuda/emulated_backend.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/plans.h"
#include "reference/cuda/storage.h"
#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/count_labels.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/loss_scaling.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/cuda/emulated_runtime.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace gpubench::testing {
namespace {

using cuda::emulation::MemoryWatch;
using cuda::emulation::Region;

constexpr std::initializer_list<cuda::OpImplementation> implementations{
    {adamw_kind, cuda::plan_adamw},
    {amax_kind, cuda::plan_amax},
    {attention_backward_kind, cuda::plan_tiled_attention_backward},
    {attention_forward_kind, cuda::plan_tiled_attention_forward},
    {attention_merge_kind, cuda::plan_attention_merge},
    {average_pool_backward_kind, cuda::plan_average_pool_backward},
    {average_pool_forward_kind, cuda::plan_average_pool_forward},
    {batch_norm_backward_kind, cuda::plan_batch_norm_backward},
    {batch_norm_forward_kind, cuda::plan_batch_norm_forward},
    {batch_norm_relu_backward_kind, cuda::plan_batch_norm_backward},
    {batch_norm_relu_forward_kind, cuda::plan_batch_norm_forward},
    {clip_adamw_kind, cuda::plan_adamw},
    {clip_kind, cuda::plan_clip},
    {column_sum_kind, cuda::plan_column_sum},
    {conv2d_batch_norm_forward_kind, cuda::plan_conv2d_batch_norm_forward},
    {copy_kind, cuda::plan_copy},
    {count_labels_kind, cuda::plan_count_labels},
    {cross_entropy_backward_kind, cuda::plan_cross_entropy_backward},
    {cross_entropy_combine_kind, cuda::plan_cross_entropy_combine},
    {cross_entropy_forward_kind, cuda::plan_cross_entropy_forward},
    {cross_entropy_forward_backward_kind, cuda::plan_cross_entropy_forward_backward},
    {cross_entropy_partial_kind, cuda::plan_cross_entropy_forward},
    {dropout_kind, cuda::plan_dropout},
    {embedding_backward_kind, cuda::plan_embedding_backward},
    {embedding_backward_add_kind, cuda::plan_embedding_backward},
    {embedding_forward_kind, cuda::plan_embedding_forward},
    {gemm_kind, cuda::plan_gemm},
    {gemm_gelu_bias_gradient_kind, cuda::plan_gemm_gelu_bias_gradient},
    {gemm_weight_bias_gradient_kind, cuda::plan_gemm_weight_bias_gradient},
    {gradient_norm_kind, cuda::plan_gradient_norm},
    {group_tokens_kind, cuda::plan_group_tokens},
    {grouped_gemm_kind, cuda::plan_grouped_gemm},
    {grouped_gemm_backward_weight_kind, cuda::plan_grouped_gemm_backward_weight},
    {layer_norm_backward_kind, cuda::plan_norm_backward},
    {layer_norm_forward_kind, cuda::plan_norm_forward},
    {lion_kind, cuda::plan_lion},
    {max_pool_backward_kind, cuda::plan_max_pool_backward},
    {max_pool_forward_kind, cuda::plan_max_pool_forward},
    {permute_tokens_kind, cuda::plan_permute_tokens},
    {quantize_blocks_kind, cuda::plan_quantize_blocks},
    {quantize_kind, cuda::plan_quantize},
    {reorder_kind, cuda::plan_reorder},
    {repeat_rows_kind, cuda::plan_repeat_rows},
    {residual_norm_backward_kind, cuda::plan_norm_backward},
    {residual_norm_forward_kind, cuda::plan_residual_norm_forward},
    {rms_norm_backward_kind, cuda::plan_norm_backward},
    {rms_norm_forward_kind, cuda::plan_norm_forward},
    {rotary_kind, cuda::plan_rotary},
    {routing_backward_kind, cuda::plan_routing_backward},
    {routing_forward_kind, cuda::plan_routing_forward},
    {scale_from_amax_kind, cuda::plan_scale_from_amax},
    {sgd_kind, cuda::plan_sgd},
    {softmax_backward_kind, cuda::plan_softmax_backward},
    {softmax_forward_kind, cuda::plan_softmax_forward},
    {transpose_kind, cuda::plan_transpose},
    {unpermute_backward_weights_kind, cuda::plan_unpermute_backward_weights},
    {unpermute_tokens_kind, cuda::plan_unpermute_tokens},
    {unscale_kind, cuda::plan_unscale},
    {update_scale_kind, cuda::plan_update_scale},
};

/// Runs what the plan bound, under watch. Scratch memory holds rubbish before each run, as it does in use.
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
    const auto plan =
        is_pointwise(call.kind) ? cuda::plan_pointwise : find_op(implementations, call.kind, "emulated").plan;
    return std::make_shared<WatchedPlan>(plan(call, tensors, context), call.inputs.size());
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
  alignas(64) std::byte no_library_[64] = {};  // own kernels need none
};

}  // namespace

std::unique_ptr<Backend> open_emulated_backend(const EmulatedOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace gpubench::testing
