// Attention and convolution on cuDNN: ops as its graphs, and from such a graph to plans of this backend.
#pragma once

#include <span>
#include <vector>

#include "harness/core/program.h"
#include "reference/cuda/cudnn_graph.h"
#include "reference/cuda/cudnn_plan.h"
#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

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
