// Engines that run a graph on a chip, in the order of cuDNN's heuristics, without those whose arithmetic the op
// forbids. Each is finalized to an execution plan, so that its workspace is known before memory is allocated.
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

/// The arithmetic that an engine may use: follows from the op's Math, not from speed.
struct CudnnNumerics {
  /// Tensor cores round f32 inputs to TF32; they are exact for narrower inputs.
  bool tensor_cores = true;
  /// Every run gives the same bits: no sums in the order in which thread blocks finish.
  bool deterministic = false;
  /// Partial sums may be rounded to the output type.
  bool narrow_partial_sums = false;

  /// `math` applied to tensors of type `inputs`. Narrower inputs, Winograd and Fourier transforms are always forbidden:
  /// their errors exceed the bound of sums of products.
  [[nodiscard]] static CudnnNumerics of(const Math& math, DType inputs, bool deterministic);
};

/// An engine of cuDNN (a family of kernels) with its knobs and its numerical notes.
class CudnnEngine {
 public:
  /// `config`: an engine configuration as heuristics return it.
  explicit CudnnEngine(CudnnDescriptor config);

  /// "eng=6,tile_size=5,stages=2": identifies the engine within a cuDNN version.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<cudnnBackendNumericalNote_t>& notes() const { return notes_; }
  /// Why `numerics` forbid the engine ("tensor cores round f32 inputs to TF32"); empty if they permit it.
  [[nodiscard]] std::string objection(const CudnnNumerics& numerics) const;
  [[nodiscard]] const CudnnDescriptor& config() const { return config_; }

 private:
  CudnnDescriptor config_;
  std::string name_;
  std::vector<cudnnBackendNumericalNote_t> notes_;
};

[[nodiscard]] std::string_view name(cudnnBackendNumericalNote_t note);
/// "tile_size", "stages", ...; "knob<number>" for those unknown to the cuDNN header.
[[nodiscard]] std::string name(cudnnBackendKnobType_t knob);

/// Work bound to memory; running it allocates nothing.
class CudnnLaunch {
 public:
  struct State;
  explicit CudnnLaunch(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  /// Enqueues on `stream`; may be captured. Throws BackendError, also for plans of a described chip.
  void operator()(cudaStream_t stream) const;

 private:
  std::shared_ptr<const State> state_;
};

class CudnnPlan {
 public:
  struct State;
  explicit CudnnPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  [[nodiscard]] std::string implementation() const;
  [[nodiscard]] const CudnnEngine& engine() const;
  /// The engine's workspace plus the graph's scratch tensors.
  [[nodiscard]] std::size_t workspace_bytes() const;
  /// `arguments`: addresses of the op call's tensors, in its order, 16-byte aligned. `workspace`: workspace_bytes()
  /// bytes, 256-byte aligned. Cheap; may be called repeatedly. Throws BackendError naming a misaligned address.
  [[nodiscard]] CudnnLaunch bind(std::span<std::byte* const> arguments, std::byte* workspace) const;

 private:
  std::shared_ptr<const State> state_;
};

struct CudnnSearch {
  CudnnNumerics numerics = {};
  std::size_t most = 1;
  std::size_t workspace_limit = std::numeric_limits<std::size_t>::max();
  /// Stop after the first heuristic mode that yields a plan: engines of later modes would be built in vain.
  bool first_mode_only = false;
  /// The only engine to build, as CudnnEngine::name(); empty: any.
  std::string engine{};
  std::function<void()> alive{};  ///< PlanOptions::alive; called before each plan is built
  /// Key in the plan store (Cudnn::store()): equal keys mean equal graphs. Empty: the store is not used.
  std::string key{};
};

/// Between 1 and `search.most` plans, in the order of the heuristics: mode A, then B, then fallback, until there are
/// enough. `cudnn` must outlive plans and launches.
/// Throws Unsupported with cuDNN's message and the excluded engines with reasons if there is no plan, BackendError for
/// failures other than lack of support.
[[nodiscard]] std::vector<CudnnPlan> cudnn_plans(const Cudnn& cudnn, std::shared_ptr<const CudnnGraph> graph,
                                                 const CudnnSearch& search);

/// q, k, v may be strided parts of a packed storage. Throws Unsupported.
[[nodiscard]] CudnnGraph attention_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors);

/// `direct_dq`: dq is summed within thread blocks. Otherwise atomic additions sum it in an f32 scratch tensor, which is
/// faster but not deterministic.
[[nodiscard]] CudnnGraph attention_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  bool direct_dq);

/// For all three kinds of call. Throws Unsupported for layouts and sums that cuDNN cannot express.
[[nodiscard]] CudnnGraph conv2d_graph(const OpCall& call, std::span<const TensorSpec> tensors);
/// For a conv2d_forward whose y also yields each channel's sum and sum of squares: f32 arguments 3 and 4, [k] each.
[[nodiscard]] CudnnGraph conv2d_sums_graph(const OpCall& call, std::span<const TensorSpec> tensors);

/// Throws Unsupported unless the call's sums are f32.
void expect_f32_sums(const OpCall& call);
/// Throws Unsupported naming the tensor unless strides describe its layout.
void expect_strides(const OpCall& call, const TensorSpec& tensor);

/// Search parameters for a call. Attention, and convolutions with sums, compile for a second or more per engine: only
/// the best two of the first heuristic mode are built. Other convolutions build 12. A pinned or remembered engine is
/// the only one built.
[[nodiscard]] CudnnSearch search_for(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CudaContext& context);

/// cuDNN's plans for the graph, best first, for fastest_of(): arithmetic as the call promises for the first tensor's
/// type, and a workspace that fits in device memory with the tensors. If a remembered engine no longer exists, all
/// others are searched. Throws Unsupported with cuDNN's message if there is none.
[[nodiscard]] std::vector<Plan> graph_plans(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                                            const CudaContext& context);
/// Compiles plans of calls that take seconds each (attention, convolutions with sums) on up to `threads` threads, into
/// the store of `context`'s cuDNN. Does nothing for fewer than two such calls, without a store, or if cuDNN rejected a
/// stored plan. Errors are left for plan() to report. Calls `alive` after each call; if it throws, waits for the plans
/// in progress and rethrows.
void compile_ahead(std::span<const CallToPlan> calls, const CudaContext& context, int threads,
                   const std::function<void()>& alive);

/// The fastest of graph_plans().
[[nodiscard]] Plan plan_graph(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                              const CudaContext& context);

}  // namespace gpubench::cuda
