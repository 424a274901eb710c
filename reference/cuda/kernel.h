// Plans of the CUDA backend. To add an op:
//
// 1. Write x.cpp with `Plan plan_x(const OpCall&, std::span<const TensorSpec>, const CudaContext&)` and
//    `Ops x_ops()`, which lists it. plan_x throws Unsupported for types, layouts and devices it lacks, and returns
//    own_plan().
// 2. Work of several launches returns plan_of(name, workspace bytes, binder). The binder gets tensors and workspace and
//    returns a callable that enqueues on a stream. Enqueueing must not allocate, wait or choose: it may be captured
//    into a CUDA graph.
// 3. Write the kernels in kernels/x.cu, declared in the header of their family (kernels/rows.h, tokens.h, ...). These
//    headers hold plain structs only, since nvcc compiles all files that include them.
// 4. Add x to op_files in CMakeLists.txt, and the kernels to gpubench_cuda_kernels. Tests run kernels on the CPU.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "harness/core/op_kind.h"
#include "harness/core/planning.h"
#include "harness/core/row_view.h"
#include "reference/cuda/kernels/launch.h"
#include "reference/cuda/runtime.h"

namespace gpubench::cuda {

class CublasLt;
class Cudnn;

/// What a plan may use. Devices and libraries live as long as the backend, the rest during planning.
struct CudaContext {
  const DeviceTraits& device;
  const CublasLt& cublaslt;
  const Cudnn& cudnn;
  cudaStream_t stream = nullptr;  ///< for tuning; null: nothing is timed
  PlanOptions options{};
};

class CudaLaunch : public LaunchImpl {
 public:
  /// Enqueues the work without waiting for it.
  virtual void enqueue(cudaStream_t stream) const = 0;
  [[nodiscard]] virtual bool is_capturable() const { return true; }
};

/// Throws BackendError when the launch is empty or of another backend.
[[nodiscard]] const CudaLaunch& own_launch(const Launch& launch);

class CudaPlan : public PlanImpl {
 public:
  [[nodiscard]] virtual Launch bind(std::span<const Tensor> tensors, Workspace workspace) const = 0;
};

using OpImplementation = OpEntry<CudaContext>;

/// Returned by <file>_ops() of each op file. A plan gets the specs of the call's inputs, then of its outputs. The
/// comment above a plan lists what it supports; the default is f64, f32, f16 and bf16, with strided rows.
using Ops = OpEntries<CudaContext>;

[[nodiscard]] std::span<const Ops> op_files();

/// Throws Unsupported if the backend does not implement `kind`.
[[nodiscard]] const OpImplementation& implementation_of(OpKind kind);

/// Implementation name of own kernels: "gpubench:sm90".
[[nodiscard]] std::string own_implementation(const CudaContext& context);

template <std::invocable<cudaStream_t> Work>
[[nodiscard]] Launch launch_of(Work work) {
  class WorkLaunch final : public CudaLaunch {
   public:
    explicit WorkLaunch(Work held) : work_(std::move(held)) {}
    void enqueue(cudaStream_t stream) const override { work_(stream); }

   private:
    Work work_;
  };
  return std::make_shared<WorkLaunch>(std::move(work));
}

/// A plan whose bind() returns `binder(std::span<const Tensor> tensors, Workspace workspace)`: the work to enqueue.
template <class Binder>
[[nodiscard]] Plan plan_of(std::string implementation, std::size_t workspace_bytes, Binder binder) {
  return plan_bound_by<CudaPlan>(std::move(implementation), workspace_bytes,
                                 [held = std::move(binder)](std::span<const Tensor> tensors, Workspace workspace) {
                                   return launch_of(held(tensors, workspace));
                                 });
}

/// A plan of own kernels: calls `launch(args, stream)`, with operand addresses stored at `places`, and checks the
/// launch. `variant`: suffix of the name if there are several kernels.
template <class Args, class LaunchFunction>
[[nodiscard]] Plan own_plan(const OpCall& call, const CudaContext& context, const Args& args, LaunchFunction launch,
                            std::initializer_list<OperandPlace<Args>> places, std::size_t workspace_bytes = 0,
                            std::string_view variant = {}) {
  return plan_of(own_implementation(context) + std::string(variant), workspace_bytes,
                 [args, launch, kernel = std::string(call.kind.name), binder = OperandBinder<Args>(call, places)](
                     std::span<const Tensor> tensors, Workspace workspace) {
                   const auto never = [](const Tensor&) { return false; };
                   return [work = binder.bound(args, tensors, workspace, never), launch, kernel](cudaStream_t stream) {
                     launch(work, stream);
                     check_launch(kernel);
                   };
                 });
}

template <class T>
[[nodiscard]] T* elements_of(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.data);
}

/// Throws Unsupported: "cuda <kind> '<label>': <why>".
[[noreturn]] void refuse(const OpCall& call, const std::string& why);

/// Throws Unsupported naming the tensor unless it is dense with the last axis fastest.
void expect_row_major(const OpCall& call, const TensorSpec& tensor);
/// Throws Unsupported naming the tensor unless it has this type.
void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// row_view() of the tensor. Throws Unsupported naming the layout if it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// Own kernels' name of a type; empty for types they do not compute with.
[[nodiscard]] std::optional<Element> element_of(DType dtype);

/// The tensor's type. Throws Unsupported unless it is f32, f16 or bf16.
[[nodiscard]] Element float_element(const OpCall& call, const TensorSpec& tensor);

/// As float_element(), and f64.
[[nodiscard]] Element any_element(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless both have one type.
void expect_same_type(const OpCall& call, const TensorSpec& a, const TensorSpec& b);

}  // namespace gpubench::cuda
