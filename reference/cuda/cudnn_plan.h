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

#include "harness/core/program.h"
#include "harness/core/recipe.h"
#include "reference/cuda/cudnn.h"
#include "reference/cuda/cudnn_graph.h"
#include "reference/cuda/kernel.h"

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

// Attention and convolution on cuDNN: ops as its graphs, and from such a graph to plans of this backend.

/// q, k, v may be strided parts of a packed storage. Throws Unsupported.
[[nodiscard]] CudnnGraph attention_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors);

/// `direct_dq`: dq is summed up within thread blocks; else in an f32 scratch tensor, by atomic additions, which is
/// faster and gives other bits each time.
[[nodiscard]] CudnnGraph attention_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  bool direct_dq);

/// For all three kinds of call. Throws Unsupported for layouts and sums that cuDNN cannot be told of.
[[nodiscard]] CudnnGraph conv2d_graph(const OpCall& call, std::span<const TensorSpec> tensors);
/// Of a conv2d_forward; with y come the sum of each of its channels and that of squares: f32 arguments 3 and 4, [k]
/// each.
[[nodiscard]] CudnnGraph conv2d_sums_graph(const OpCall& call, std::span<const TensorSpec> tensors);

/// Throws Unsupported unless the call's sums are f32.
void expect_f32_sums(const OpCall& call);
/// Throws Unsupported naming the tensor where its layout is more than strides.
void expect_strides(const OpCall& call, const TensorSpec& tensor);

/// How plans for the call are looked for. Of a convolution many are raced: they are there at once. Code for attention,
/// and for a convolution with sums, takes a second or more to compile for each, so that only the best two by the first
/// heuristics are. A pinned or remembered
/// engine is the only one that is built.
[[nodiscard]] CudnnSearch search_for(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CudaContext& context);

/// cuDNN's ways to run the graph, best first by its heuristics, for fastest_of(): only those with the arithmetic that
/// the call promises for tensors of the first tensor's type, and with a workspace that fits the device's memory beside
/// the tensors. A remembered engine that is no more is no reason to fail: then all the others are looked for. Throws
/// Unsupported with cuDNN's words where there is none.
[[nodiscard]] std::vector<Plan> graph_plans(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                                            const CudaContext& context);
/// Compiles on as many threads what the calls' plans will be made of, where that takes seconds for each (attention,
/// convolutions with sums), into the store of `context`'s cuDNN, which then has only to read it. Does nothing for fewer
/// than two such calls, without a store, or where cuDNN has not taken what was compiled this way. What can't be
/// compiled is left to plan(). Calls `alive` after each call; when it throws, ends with what is begun, and throws.
void compile_ahead(std::span<const CallToPlan> calls, const CudaContext& context, int threads,
                   const std::function<void()>& alive);

/// The fastest of them.
[[nodiscard]] Plan plan_graph(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                              const CudaContext& context);

}  // namespace gpubench::cuda
