// What the CPU backend is made of: plans that bind to work. Start here to add an op.
//
// 1. Write x.cpp with `Plan plan_x(const OpCall&, std::span<const TensorSpec>, const CpuContext&)`, declared in
// plans.h.
//    It reads the attributes and the specs, throws Unsupported for types and layouts it lacks, and returns own_plan():
//    a struct that is callable and holds plain pointers and numbers, and where it keeps each operand.
// 2. Running it must allocate nothing, choose nothing, log nothing; binding is cheap and may happen many times. What
//    binds in another way returns plan_of(name, workspace bytes, binder).
// 3. Loops that matter: write one chunk as a function marked GPUBENCH_VECTOR_CLONES (parallel.h) and call it
//    through parallel_chunks() (parallel.h). block_io.h converts bf16. Sums are taken in an order that depends on the
//    arguments only.
// 4. Add one line to ops_table.cpp and the file to CMakeLists.txt, and tests in tests/reference/cpu/x_test.cpp.
// README.md here walks through a real op.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/core/planning.h"
#include "harness/core/row_view.h"

namespace gpubench::cpu {

class OneDnn;

/// What a plan may use: how many threads, and the library for contractions. Lives as long as the backend.
struct CpuContext {
  int threads = 1;
  const OneDnn& onednn;
};

/// Bound work of this backend.
class CpuLaunch : public LaunchImpl {
 public:
  virtual void operator()() const = 0;
};

/// A plan of this backend.
class CpuPlan : public PlanImpl {
 public:
  [[nodiscard]] virtual Launch bind(std::span<const Tensor> tensors, Workspace workspace) const = 0;
};

/// How ops_table.cpp lists an op.
using OpImplementation = OpEntry<CpuContext>;

/// The implementation of `kind`. Throws Unsupported when the backend has none.
[[nodiscard]] const OpImplementation& implementation_of(OpKind kind);

/// A callable as a launch.
template <std::invocable Work>
[[nodiscard]] Launch launch_of(Work work) {
  class WorkLaunch final : public CpuLaunch {
   public:
    explicit WorkLaunch(Work held) : work_(std::move(held)) {}
    void operator()() const override { work_(); }

   private:
    Work work_;
  };
  return std::make_shared<WorkLaunch>(std::move(work));
}

/// A plan whose bind calls `binder(std::span<const Tensor> tensors, Workspace workspace)`, which returns the work to
/// run.
template <class Binder>
[[nodiscard]] Plan plan_of(std::string implementation, std::size_t workspace_bytes, Binder binder) {
  return plan_bound_by<CpuPlan>(std::move(implementation), workspace_bytes,
                                [held = std::move(binder)](std::span<const Tensor> tensors, Workspace workspace) {
                                  return launch_of(held(tensors, workspace));
                                });
}

/// What own kernels are called in records: "gpubench:avx512", by the vector units that their clones use here.
[[nodiscard]] std::string own_implementation();

/// True when an output of `bytes` should be streamed: it could not stay in the caches until somebody reads it.
[[nodiscard]] bool worth_streaming(std::int64_t bytes);

/// A plan of own work, which is callable, with the operands put where `work` keeps them. Outputs that would not stay in
/// the caches are stored around them, except those in an input's memory, which was just read.
template <std::invocable Work>
[[nodiscard]] Plan own_plan(const OpCall& call, const Work& work, std::initializer_list<OperandPlace<Work>> places,
                            std::size_t workspace_bytes = 0) {
  return plan_of(own_implementation(), workspace_bytes,
                 [work, binder = OperandBinder<Work>(call, places)](std::span<const Tensor> tensors, Workspace space) {
                   return binder.bound(work, tensors, space,
                                       [](const Tensor& tensor) { return worth_streaming(tensor.spec.bytes()); });
                 });
}

/// The first element of a tensor, as the type that the kernel reads.
template <class T>
[[nodiscard]] T* elements_of(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.data);
}

/// Throws Unsupported: "cpu <kind> '<label>': <why>".
[[noreturn]] void refuse(const OpCall& call, const std::string& why);

/// Throws Unsupported naming the tensor unless it is dense with the last axis fastest.
void expect_row_major(const OpCall& call, const TensorSpec& tensor);

// Rows of a tensor, and how much work is worth a thread.

/// row_view() of the tensor. Throws Unsupported naming the layout where it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is f32 or bf16.
void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is `type`.
void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// The same of those operands that the call has.
void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names);
void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type);
void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names);

/// How many rows of `columns` elements are worth a thread.
[[nodiscard]] std::int64_t row_grain(std::int64_t columns);

/// How many elements are worth a thread; a multiple of every block size and cache line.
inline constexpr std::int64_t element_grain = 8192;

}  // namespace gpubench::cpu
