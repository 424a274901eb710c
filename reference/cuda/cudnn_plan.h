// Ways to run a graph on a chip, found and built: engines in the order of cuDNN's heuristics, those whose arithmetic
// the op does not allow left out, each finalized to an execution plan whose workspace is known before any memory is
// asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/recipe.h"
#include "reference/cuda/cudnn.h"
#include "reference/cuda/cudnn_graph.h"

namespace gpubench::cuda {

/// What an engine may do with numbers: it follows from what the op promises (Math), never from speed.
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

/// One way in which cuDNN could run a graph: an engine (a family of kernels) with its knobs, and what cuDNN notes about
/// its arithmetic.
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

/// Work bound to memory. Running it allocates nothing and chooses nothing.
class CudnnLaunch {
 public:
  struct State;
  explicit CudnnLaunch(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  /// Enqueues on `stream`; may be captured. Throws BackendError, also where the plan is for a described chip.
  void operator()(cudaStream_t stream) const;

 private:
  std::shared_ptr<const State> state_;
};

class CudnnPlan {
 public:
  struct State;
  explicit CudnnPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  /// "cudnn:eng=6,tile_size=5"
  [[nodiscard]] std::string implementation() const;
  [[nodiscard]] const CudnnEngine& engine() const;
  /// What the engine needs, and the graph's scratch tensors.
  [[nodiscard]] std::size_t workspace_bytes() const;
  /// `arguments`: addresses of the op call's tensors, in its order, each a multiple of 16; `workspace`:
  /// workspace_bytes() bytes on a multiple of 256, or less where less is asked for. Cheap, any number of times. Throws
  /// BackendError naming a misaligned address.
  [[nodiscard]] CudnnLaunch bind(std::span<std::byte* const> arguments, std::byte* workspace) const;

 private:
  std::shared_ptr<const State> state_;
};

/// How many plans are wanted, and how much memory each may ask for.
struct CudnnSearch {
  CudnnNumerics numerics = {};
  std::size_t most = 1;
  std::size_t workspace_limit = std::numeric_limits<std::size_t>::max();
  /// Modes after the first one that has a plan are not asked: their engines would be built to lose.
  bool first_mode_only = false;
  /// The one engine that is wanted, as CudnnEngine::name() has it: no other is built. Empty: any.
  std::string engine{};
  std::function<void()> alive{};  ///< PlanOptions::alive, before an engine's plan is built
  /// What the graph computes, for the store of plans (Cudnn::store()): the same text, the same graph. Empty: plans are
  /// neither looked for there nor kept.
  std::string key{};
};

/// At least one plan, at most `search.most`, in the order of heuristics: mode A, then B, then fallback, each asked only
/// while plans are missing. `cudnn` must outlive plans and launches. Where there is none, throws Unsupported with
/// cuDNN's words and what was left out, and why; BackendError where something failed that is no lack of support.
[[nodiscard]] std::vector<CudnnPlan> cudnn_plans(const Cudnn& cudnn, std::shared_ptr<const CudnnGraph> graph,
                                                 const CudnnSearch& search);

}  // namespace gpubench::cuda
