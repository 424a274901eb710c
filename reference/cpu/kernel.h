// Plans of the CPU backend. README.md walks through an op.
//
// A plan throws Unsupported for what it lacks (narrow types are then widened). Binding is cheap and may be repeated;
// running must not allocate, choose or log.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// What a plan may use. `type_before_widening`: type of the first operand if plan_or_widen() passes f32 copies.
struct CpuContext {
  int threads = 1;
  const OneDnn& onednn;
  PlanOptions options{};
  std::optional<DType> type_before_widening{};
  [[nodiscard]] DType stored_type(const TensorSpec& first) const { return type_before_widening.value_or(first.dtype); }
};

class CpuLaunch : public LaunchImpl {
 public:
  virtual void operator()() const = 0;
};

class CpuPlan : public PlanImpl {
 public:
  [[nodiscard]] virtual Launch bind(std::span<const Tensor> tensors, Workspace workspace) const = 0;
};

using OpImplementation = OpEntry<CpuContext>;

/// Returned by <file>_ops() of each op file. A plan gets the specs of the call's inputs, then of its outputs. The
/// comment above a plan lists what it supports without widening (plan_or_widen()); the default is f32 and bf16, with
/// strided rows.
/// memory_bench measures gains: of_two_ops.
using Ops = OpEntries<CpuContext>;

[[nodiscard]] std::span<const Ops> op_files();

/// Throws Unsupported if the backend does not implement `kind`.
[[nodiscard]] const OpImplementation& implementation_of(OpKind kind);

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

/// A plan whose bind() returns `binder(std::span<const Tensor> tensors, Workspace workspace)`: the work to run.
template <class Binder>
[[nodiscard]] Plan plan_of(std::string implementation, std::size_t workspace_bytes, Binder binder) {
  return plan_bound_by<CpuPlan>(std::move(implementation), workspace_bytes,
                                [held = std::move(binder)](std::span<const Tensor> tensors, Workspace workspace) {
                                  return launch_of(held(tensors, workspace));
                                });
}

/// `bytes` rounded up to whole cache lines, the alignment of workspace parts.
[[nodiscard]] constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Allocates arrays in a workspace, each at a cache line.
class Arena {
 public:
  explicit Arena(std::byte* base = nullptr) : base_(base) {}
  template <class T>
  [[nodiscard]] T* take(std::int64_t elements) {
    std::byte* start = base_ == nullptr ? nullptr : base_ + used_;
    used_ += whole_lines(static_cast<std::size_t>(elements) * sizeof(T));
    return reinterpret_cast<T*>(start);
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Implementation name of own kernels, with the vector units in use: "gpubench:avx512".
[[nodiscard]] std::string own_implementation();

/// Whether to stream an output of `bytes`: it would leave the caches before it is read.
[[nodiscard]] bool should_stream(std::int64_t bytes);

/// A plan of callable own work, with operand addresses stored at `places`. Streams outputs that would not stay in the
/// caches, except in-place ones, which were just read.
template <std::invocable Work>
[[nodiscard]] Plan own_plan(const OpCall& call, const Work& work, std::initializer_list<OperandPlace<Work>> places,
                            std::size_t workspace_bytes = 0) {
  return plan_of(own_implementation(), workspace_bytes,
                 [work, binder = OperandBinder<Work>(call, places)](std::span<const Tensor> tensors, Workspace space) {
                   return binder.bound(work, tensors, space,
                                       [](const Tensor& tensor) { return should_stream(tensor.spec.bytes()); });
                 });
}

template <class T>
[[nodiscard]] T* elements_of(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.data);
}

/// Throws Unsupported: "cpu <kind> '<label>': <why>".
[[noreturn]] void refuse(const OpCall& call, const std::string& why);

/// refuse() with "tensor <tensor> has layout <layout>; expected <expected>".
[[noreturn]] void refuse_layout(const OpCall& call, const TensorSpec& tensor, std::string_view expected);

/// Throws Unsupported naming the tensor unless it is dense with the last axis fastest.
void expect_row_major(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported naming the tensor unless its last axis is contiguous.
void expect_contiguous_last_axis(const OpCall& call, const TensorSpec& tensor);

/// row_view() of the tensor. Throws Unsupported naming the layout if it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor);

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// For the named operands that the call has. Throw Unsupported for other types.
void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names);
void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type);
void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names);

void expect_f32_sums(const OpCall& call);

/// Minimum number of rows of `columns` elements per thread.
[[nodiscard]] std::int64_t row_grain(std::int64_t columns);

/// Minimum number of elements per thread; a multiple of every block size and cache line.
inline constexpr std::int64_t element_grain = 8192;

/// Number of candidates to try for `flop` operations: 1 if the gain is smaller than the cost of trying, a few tenths of
/// a millisecond per run.
[[nodiscard]] inline std::size_t candidate_count(double flop) { return flop < 0x1p29 ? 1 : 4; }

/// The fastest candidate, timed in turns on scratch tensors like `tensors`; the first, unless another takes at least 3%
/// less time.
/// Results are not checked here: usable_isa.h has tested the instruction sets, and the check tests the case.
///
/// The first is also chosen for deterministic plans, since timings vary, and if the scratch tensors would take most of
/// the free memory. A pinned or remembered implementation is chosen untimed.
/// Throws Unsupported ("cpu <kind> '<label>': ...") if the pinned one is missing.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const CpuContext& context);

// Types that an implementation lacks: it runs on exact f32 copies, and results are rounded once.

/// The implementation's plan. If it throws Unsupported and operands are narrower than f32: its plan for f32 copies,
/// with the name suffix "+widen". Throws the first Unsupported if both fail.
/// A pinned name with that suffix selects the plan for copies, other names the own plan.
[[nodiscard]] Plan plan_or_widen(const OpImplementation& implementation, const OpCall& call,
                                 std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
