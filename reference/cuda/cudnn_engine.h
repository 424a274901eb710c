// One way in which cuDNN could run a graph: an engine (a family of kernels) with its knobs, and what cuDNN notes about
// its arithmetic. Which notes an op may accept follows from what the op promises (Math), never from speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/recipe.h"
#include "reference/cuda/cudnn.h"

namespace gpubench::cuda {

/// What an engine may do with numbers.
struct CudnnNumerics {
  /// f32 inputs on tensor cores are rounded to TF32 first; with narrower inputs tensor cores lose nothing.
  bool tensor_cores = true;
  /// The same bits from every run: no sums in the order in which thread blocks happen to finish.
  bool deterministic = false;
  /// Partial sums rounded to the type of the output.
  bool narrow_partial_sums = false;

  /// What `math` allows for tensors of type `inputs`. Never: converting inputs to a narrower type, Winograd or Fourier
  /// transforms. Their errors break the bound that sums of products are judged by.
  [[nodiscard]] static CudnnNumerics of(const Math& math, DType inputs, bool deterministic);
};

class CudnnEngine {
 public:
  /// Reads what an engine configuration, as heuristics return it, says about itself.
  explicit CudnnEngine(CudnnDescriptor config);

  /// "eng=6,tile_size=5,stages=2": enough to build the same one again under the same version.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<cudnnBackendNumericalNote_t>& notes() const { return notes_; }
  /// Why these numerics forbid the engine ("tensor cores round f32 inputs to TF32"); empty where they don't.
  [[nodiscard]] std::string objection(const CudnnNumerics& numerics) const;
  [[nodiscard]] const CudnnDescriptor& config() const { return config_; }

 private:
  CudnnDescriptor config_;
  std::string name_;
  std::vector<cudnnBackendNumericalNote_t> notes_;
};

/// "tensor_core", "nondeterministic", ...
[[nodiscard]] std::string_view name(cudnnBackendNumericalNote_t note);
/// "tile_size", "stages", ...; "knob<number>" for one that this header does not know.
[[nodiscard]] std::string name(cudnnBackendKnobType_t knob);

}  // namespace gpubench::cuda
