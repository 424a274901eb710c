#include "tests/reference/cuda/suite_graphs.h"

#include <fmt/format.h>

#include <set>

#include "harness/plan/plan.h"
#include "reference/cuda/cudnn_plan.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d.h"
#include "suites/suites.h"

namespace gpubench::cuda {
namespace {

using GraphOf = CudnnGraph (*)(const OpCall&, std::span<const TensorSpec>);

// Null if the call does not belong to the family.
GraphOf graph_of(GraphFamily family, const OpCall& call) {
  const GraphOf conv2d = conv2d_graph;
  const GraphOf attention_backward = [](const OpCall& c, std::span<const TensorSpec> t) {
    return attention_backward_graph(c, t, false);
  };
  const GraphOf attention_backward_direct = [](const OpCall& c, std::span<const TensorSpec> t) {
    return attention_backward_graph(c, t, true);
  };
  switch (family) {
    case GraphFamily::convolution:
      if (call.kind == conv2d_forward_kind || call.kind == conv2d_backward_data_kind) return conv2d;
      return call.kind == conv2d_backward_filter_kind ? conv2d : nullptr;
    case GraphFamily::attention:
      if (call.kind == attention_forward_kind) return attention_forward_graph;
      return call.kind == attention_backward_kind ? attention_backward : nullptr;
    case GraphFamily::deterministic:
      if (call.kind == attention_backward_kind) return attention_backward_direct;
      return call.kind == conv2d_backward_filter_kind ? conv2d : nullptr;
  }
  return nullptr;
}

// Everything up to tier standard, the default on a GPU, and larger cases in bf16.
bool chosen(GraphFamily family, const Case& c, Sorts sorts) {
  const bool standard = c.tier <= Tier::standard;
  if (sorts == Sorts::few && family != GraphFamily::convolution) return c.tier <= Tier::quick && c.recipe == "bf16";
  if (family == GraphFamily::deterministic) return standard && c.recipe == "bf16";
  return standard || c.recipe == "bf16";
}

AttentionExtents extents_of_call(const OpCall& call, const std::vector<TensorSpec>& tensors) {
  const std::size_t q = call.kind == attention_forward_kind ? 0 : 1;
  return extents_of(tensors[q].shape, tensors[q + 1].shape, tensors[q + 2].shape);
}

// Properties that distinguish attention graphs: engines compile code for them, a second each; batch, heads and length
// are run-time arguments.
std::string sort_of(const OpCall& call, const std::vector<TensorSpec>& tensors) {
  std::string sort = fmt::format("{} {} {} {}", call.kind.name, call.attributes.to_string(),
                                 call.math.inputs == Math::Inputs::tf32, tensors.back().layout.strides.size());
  for (const TensorSpec& tensor : tensors)
    sort += fmt::format(" {}[{}]", name(tensor.dtype), tensor.layout.is_row_major(tensor.shape));
  if (call.kind == attention_forward_kind || call.kind == attention_backward_kind) {
    const AttentionExtents e = extents_of_call(call, tensors);
    return sort + fmt::format(" group={} d={} d_v={} whole_tiles={} as_many_keys={}", e.hq / e.hkv, e.d, e.d_v,
                              e.s % 128 == 0, e.s == e.t);
  }
  return sort + fmt::format(" n={}", tensors[0].shape[-1]);
}

// Tensor names do not matter to a graph.
std::string text_of(const OpCall& call, const std::vector<TensorSpec>& tensors) {
  std::string text(call.kind.name);
  if (const std::string attributes = call.attributes.to_string(); !attributes.empty()) text += " " + attributes;
  if (call.math.inputs == Math::Inputs::tf32) text += " tf32";
  for (const TensorSpec& tensor : tensors) {
    text += " " + std::string(name(tensor.dtype)) + tensor.shape.to_string();
    if (!tensor.layout.is_row_major(tensor.shape)) text += tensor.layout.to_string(tensor.shape);
  }
  return text;
}

}  // namespace

std::string_view name(GraphFamily family) {
  switch (family) {
    case GraphFamily::convolution: return "convolution";
    case GraphFamily::attention: return "attention";
    case GraphFamily::deterministic: return "deterministic";
  }
  return "";
}

std::vector<SuiteGraph> suite_graphs(GraphFamily family, Sorts sorts) {
  Selection selection;
  selection.tier = Tier::large;
  std::set<std::string> seen;
  std::vector<SuiteGraph> graphs;
  for (const PlannedCase& planned : plan_cases(all_suites(), selection)) {
    if (!chosen(family, planned.c, sorts)) continue;
    const Program program = planned.workload->build(planned.c);
    for (const OpCall& call : program.ops()) {
      const GraphOf build = graph_of(family, call);
      if (build == nullptr) continue;
      std::vector<ValueId> ids = call.inputs;
      ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
      std::vector<TensorSpec> tensors = specs_of(program, ids);
      std::string text = text_of(call, tensors);
      const bool convolution = call.kind.name.starts_with("conv2d");
      if (!seen.insert(convolution ? text : sort_of(call, tensors)).second) continue;
      const bool deterministic = family == GraphFamily::deterministic;
      graphs.push_back(
          {std::move(text), CudnnNumerics::of(call.math, tensors[0].dtype, deterministic),
           [call, tensors, build] { return build(call, tensors); },
           !convolution && (tensors[0].dtype == DType::f32 || call.attributes.has("documents") ||
                            extents_of_call(call, tensors).d != extents_of_call(call, tensors).d_v ||
                            (call.kind == attention_backward_kind &&
                             (call.attributes.has("sinks") || call.attributes.as<Attention>().softcap != 0.0)))});
    }
  }
  return graphs;
}

}  // namespace gpubench::cuda
