// What the CPU backend is made of: plans that bind to work. README.md walks through an op.
//
// A plan reads the attributes and the specs and throws Unsupported for what it lacks (narrow types are then widened).
// Binding is cheap and may happen many times; running allocates nothing, chooses nothing, logs nothing.
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

/// What planning may use: a number of threads, the library for contractions, what the plan is to be like, and the type
/// of the first operand where plan_or_widen() gives f32 copies instead.
struct CpuContext {
  int threads = 1;
  const OneDnn& onednn;
  PlanOptions options{};
  std::optional<DType> type_before_widening{};
  /// The type that the first operand has in memory.
  [[nodiscard]] DType stored_type(const TensorSpec& first) const { return type_before_widening.value_or(first.dtype); }
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

using OpImplementation = OpEntry<CpuContext>;

/// What <file>_ops() of each op file returns. A plan gets the specs of the call's inputs, then of its outputs; the
/// comment above it says what this backend supports of the op without widening (plan_or_widen()): f32 or bf16 where
/// nothing else is said, and rows may have a stride. Gains are measured by memory_bench: of_two_ops.
using Ops = OpEntries<CpuContext>;

/// Of all op files, as CMakeLists.txt lists them.
[[nodiscard]] std::span<const Ops> op_files();

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

/// `bytes` rounded up to whole cache lines: pieces of a workspace begin at one.
[[nodiscard]] constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Lays arrays out in a workspace, each on a cache line of its own.
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

/// The name of own kernels in records: "gpubench:avx512", by the vector units that they use here.
[[nodiscard]] std::string own_implementation();

/// True when an output of `bytes` should be streamed: it would not stay in the caches until it is read.
[[nodiscard]] bool should_stream(std::int64_t bytes);

/// A plan of own work, which is callable, with the operands put where `work` keeps them. Outputs that would not stay in
/// the caches are stored around them, except those in an input's memory, which was just read.
template <std::invocable Work>
[[nodiscard]] Plan own_plan(const OpCall& call, const Work& work, std::initializer_list<OperandPlace<Work>> places,
                            std::size_t workspace_bytes = 0) {
  return plan_of(own_implementation(), workspace_bytes,
                 [work, binder = OperandBinder<Work>(call, places)](std::span<const Tensor> tensors, Workspace space) {
                   return binder.bound(work, tensors, space,
                                       [](const Tensor& tensor) { return should_stream(tensor.spec.bytes()); });
                 });
}

/// The first element of a tensor, as the type that the kernel reads.
template <class T>
[[nodiscard]] T* elements_of(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.data);
}

/// Throws Unsupported: "cpu <kind> '<label>': <why>".
[[noreturn]] void refuse(const OpCall& call, const std::string& why);

/// refuse(): "tensor <tensor> has layout <layout>; expected <expected>".
[[noreturn]] void refuse_layout(const OpCall& call, const TensorSpec& tensor, std::string_view expected);

/// Throws Unsupported naming the tensor unless it is dense with the last axis fastest.
void expect_row_major(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported naming the tensor unless neighbours along its last axis are neighbours in memory.
void expect_contiguous_last_axis(const OpCall& call, const TensorSpec& tensor);

/// row_view() of the tensor. Throws Unsupported naming the layout where it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is f32 or bf16.
void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is `type`.
void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// The same for those of the named operands that the call has.
void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names);
void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type);
void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names);

/// Throws Unsupported unless the call's sums are f32.
void expect_f32_sums(const OpCall& call);

/// How many rows of `columns` elements are worth a thread.
[[nodiscard]] std::int64_t row_grain(std::int64_t columns);

/// How many elements are worth a thread; a multiple of every block size and cache line.
inline constexpr std::int64_t element_grain = 8192;

// Choosing among implementations by timing them, outside of all measurement.

/// How many ways of doing `flop` operations are worth making: one where the best would save less than trying them
/// costs, a few tenths of a millisecond a run.
[[nodiscard]] inline std::size_t candidate_count(double flop) { return flop < 0x1p29 ? 1 : 4; }

/// The fastest of the candidates, which take turns on scratch tensors like `tensors`; the first, unless another takes
/// at least 3% less time. All are of an instruction set that was tried out (usable_isa.h): their results are not looked
/// at here but by the check.
///
/// The first is taken, too, where the same bits are wanted of every run: which is the fastest may depend on the day.
/// A pinned call takes the candidate of that name, untimed; so does one whose remembered implementation is among them.
/// Where the scratch tensors would take most of the free memory, the first candidate is taken.
/// Throws Unsupported ("cpu <kind> '<label>': ...") where the pinned one is not among them.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const CpuContext& context);

// Types that an implementation lacks: exact f32 copies of the operands, the op on those, results rounded once.

/// The implementation's own plan for the call. If that is Unsupported and operands are narrower than f32, its plan for
/// f32 copies of them; the name of that plan ends in "+widen". Throws the first plan's Unsupported if both are. A
/// pinned name with that suffix selects the plan for copies, one without it the own plan.
[[nodiscard]] Plan plan_or_widen(const OpImplementation& implementation, const OpCall& call,
                                 std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
