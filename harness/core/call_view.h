#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/implementation.h"
#include "harness/core/program.h"

namespace gpubench {

template <>
inline constexpr auto enum_names<Math::Inputs> = std::to_array<std::string_view>({"exact", "tf32", "emulated", "bf16",
                                                                                  "bf16x2"});

[[nodiscard]] DLDataType dlpack_type(DType type);

/// Owns the memory that the C call points to.
class CallView {
 public:
  /// `tensors`: the specs of the call's inputs, then outputs. Throws Unsupported with the tensor's name for blocked
  /// layouts, which have no strides.
  CallView(const OpCall& call, std::span<const TensorSpec> tensors, DLDevice device, bool deterministic);
  CallView(const CallView&) = delete;
  CallView& operator=(const CallView&) = delete;

  [[nodiscard]] const gpubench_call& call() const { return call_; }
  /// The tensors with their addresses; they point into this view.
  [[nodiscard]] std::vector<gpubench_tensor> placed(std::span<const Tensor> bound) const;

 private:
  std::vector<Attribute> attributes_;
  std::vector<std::string> words_;  // zero-terminated names and values
  std::vector<OperandName> operands_;
  std::vector<std::vector<std::int64_t>> extents_;  // shape and strides of each tensor, mutable for DLPack
  std::vector<gpubench_attribute> c_attributes_;
  std::vector<gpubench_tensor> c_tensors_;
  std::string op_, inputs_;
  gpubench_call call_{};
};

}  // namespace gpubench
