#include "reference/cuda/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "harness/core/tuning_cache.h"
#include "reference/cuda/autotune.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d_batch_norm.h"

namespace gpubench::cuda {
namespace {

// Heuristics list dozens of engines for a convolution; the fastest is among the first.
constexpr std::size_t max_candidates = 12;
// Each takes a second or more to compile.
constexpr std::size_t max_compiled = 2;

constexpr std::string_view of_cudnn = "cudnn:";

/// Whether planning compiles the engine's code.
bool is_compiled(const OpCall& call) {
  return call.kind == attention_forward_kind || call.kind == attention_backward_kind ||
         call.kind == conv2d_batch_norm_forward_kind;
}

Plan plan_from(const CudnnPlan& plan) {
  return plan_of(plan.implementation(), plan.workspace_bytes(),
                 [plan](std::span<const Tensor> bound, Workspace workspace) {
                   std::vector<std::byte*> addresses;
                   for (const Tensor& tensor : bound) addresses.push_back(tensor.data);
                   return plan.bind(addresses, workspace.data);
                 });
}

/// Plans the call for the described chip; compiled plans go to the context's store.
void compile(const CallToPlan& next, const std::string& chip, const CudaContext& context) {
  PlanOptions options = next.options;
  options.alive = nullptr;  // belongs to the caller's thread
  try {
    const Cudnn described = Cudnn::for_chip(chip, context.cudnn.store());
    (void)implementation_of(next.call->kind)
        .plan(*next.call, next.tensors, {context.device, context.cublaslt, described, nullptr, options});
  } catch (const std::exception&) {
    // plan() reports the error.
  }
}

/// Empty if this cuDNN cannot describe the chip.
std::string description(const Cudnn& cudnn) {
  try {
    return cudnn.properties();
  } catch (const BackendError&) {
    return {};
  }
}

std::size_t memory_left_by(std::span<const TensorSpec> tensors, const DeviceTraits& device) {
  std::int64_t bytes = device.memory_bytes;
  for (const TensorSpec& tensor : tensors) bytes -= tensor.bytes();
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
}

}  // namespace

void expect_f32_sums(const OpCall& call) {
  if (call.math.accumulate == DType::f32) return;
  refuse(call, fmt::format("sums in {}; expected f32 on cuDNN", name(call.math.accumulate)));
}

void expect_strides(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.blocks.empty()) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected strides", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

CudnnSearch search_for(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const std::string& named = context.options.pinned.empty() ? context.options.remembered : context.options.pinned;
  return {.numerics = CudnnNumerics::of(call.math, tensors[0].dtype, context.options.deterministic),
          .most = is_compiled(call) ? max_compiled : max_candidates,
          .workspace_limit = memory_left_by(tensors, context.device),
          .first_mode_only = is_compiled(call),
          .engine = named.starts_with(of_cudnn) ? named.substr(of_cudnn.size()) : std::string(),
          .alive = context.options.alive,
          .key = choice_key(call, tensors) + (context.options.deterministic ? " deterministic" : "")};
}

std::vector<Plan> graph_plans(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                              const CudaContext& context) {
  CudnnSearch search = search_for(call, tensors, context);
  const auto shared = std::make_shared<const CudnnGraph>(std::move(graph));
  const auto found = [&] {
    std::vector<Plan> plans;
    for (const CudnnPlan& plan : cudnn_plans(context.cudnn, shared, search)) plans.push_back(plan_from(plan));
    return plans;
  };
  try {
    return found();
  } catch (const Unsupported& e) {
    if (search.engine.empty() || !context.options.pinned.empty()) refuse(call, e.what());
  }
  search.engine.clear();  // remembered, but no longer available
  try {
    return found();
  } catch (const Unsupported& e) {
    refuse(call, e.what());
  }
}

void compile_ahead(std::span<const CallToPlan> calls, const CudaContext& context, int threads,
                   const std::function<void()>& alive) {
  const Cudnn& cudnn = context.cudnn;
  if (cudnn.store() == nullptr || cudnn.store()->is_refused()) return;
  std::set<std::string> distinct;
  std::vector<const CallToPlan*> jobs;
  for (const CallToPlan& next : calls) {
    if (is_compiled(*next.call) && distinct.insert(choice_key(*next.call, next.tensors)).second) jobs.push_back(&next);
  }
  if (jobs.size() < 2) return;
  const std::string chip = description(cudnn);
  if (chip.empty()) return;

  std::mutex mutex;
  std::condition_variable changed;
  std::size_t begun = 0, done = 0;
  const auto work = [&] {
    (void)cudaSetDevice(context.device.ordinal);  // else the library would use device 0
    std::unique_lock lock(mutex);
    while (begun < jobs.size()) {
      const CallToPlan& next = *jobs[begun++];
      lock.unlock();
      compile(next, chip, context);
      lock.lock();
      ++done;
      changed.notify_one();
    }
  };
  std::vector<std::jthread> team;
  try {
    for (std::size_t i = 0; i < std::min(jobs.size(), static_cast<std::size_t>(std::max(threads, 1))); ++i)
      team.emplace_back(work);
  } catch (const std::system_error&) {
    if (team.empty()) return;  // the system's thread limit may be below the team size
  }
  std::unique_lock lock(mutex);
  for (std::size_t seen = 0; seen < jobs.size();) {
    changed.wait(lock, [&] { return done > seen; });
    seen = done;
    if (!alive) continue;
    lock.unlock();
    try {
      alive();
    } catch (...) {
      lock.lock();
      begun = jobs.size();
      throw;
    }
    lock.lock();
  }
}

Plan plan_graph(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph, const CudaContext& context) {
  const TuningData data{.judged = call.kind != attention_backward_kind};
  return fastest_of(call, graph_plans(call, tensors, std::move(graph), context), tensors, data, context);
}

}  // namespace gpubench::cuda
