// Tables of tensors and chunks are in separate device memory: other ops share the workspace and overwrite it.
#include "reference/cuda/kernel.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "reference/cuda/kernels/optimizer.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

std::vector<TensorChunk> chunks_of(const std::vector<std::int64_t>& sizes) {
  std::vector<TensorChunk> chunks;
  for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    const std::int64_t count = (sizes[tensor] + chunk_elements - 1) / chunk_elements;
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      chunks.push_back({static_cast<std::int32_t>(tensor), static_cast<std::int32_t>(chunk)});
    }
  }
  return chunks;
}

template <class Entry>
struct Tables {
  std::shared_ptr<std::byte> memory;
  const Entry* entries = nullptr;
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
};

template <class Entry>
Tables<Entry> upload_tables(const std::vector<Entry>& entries, const std::vector<TensorChunk>& chunks) {
  static_assert(sizeof(Entry) % alignof(TensorChunk) == 0);
  const auto entry_bytes = std::as_bytes(std::span(entries));
  const auto chunk_bytes = std::as_bytes(std::span(chunks));
  std::vector<std::byte> bytes(entry_bytes.begin(), entry_bytes.end());
  bytes.insert(bytes.end(), chunk_bytes.begin(), chunk_bytes.end());
  Tables<Entry> tables;
  tables.memory = upload(bytes);
  tables.entries = reinterpret_cast<const Entry*>(tables.memory.get());
  tables.chunks = reinterpret_cast<const TensorChunk*>(tables.memory.get() + entry_bytes.size());
  tables.chunk_count = static_cast<std::int64_t>(chunks.size());
  return tables;
}

void expect_dense(const OpCall& call, const TensorSpec& tensor) {
  if (is_dense(tensor)) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected dense", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

/// Gradients of a norm or clip; addresses not set.
struct Gradients {
  std::vector<GradientEntry> entries;
  std::vector<TensorChunk> chunks;

  [[nodiscard]] std::int64_t chunk_count() const { return static_cast<std::int64_t>(chunks.size()); }
};

Gradients gradients_of(const OpCall& call, std::span<const TensorSpec> tensors) {
  Gradients gradients;
  std::vector<std::int64_t> sizes;
  for (const TensorSpec& tensor : tensors) {
    expect_dense(call, tensor);
    gradients.entries.push_back({nullptr, nullptr, tensor.shape.elements(), any_element(call, tensor)});
    sizes.push_back(tensor.shape.elements());
  }
  gradients.chunks = chunks_of(sizes);
  return gradients;
}

/// f64 or f32. Throws Unsupported for other types.
Element norm_element(const OpCall& call, const TensorSpec& norm) {
  if (norm.dtype == DType::f64) return Element::f64;
  expect_type(call, norm, DType::f32);
  return Element::f32;
}

/// The plan of one launch over all gradients. `work_of(operands, tables, workspace)` makes the kernel's arguments from
/// tables of the gradients and of their results, if any.
template <class WorkOf, class Launch>
Plan plan_over(const Gradients& gradients, const OpCall& call, const CudaContext& context, std::size_t workspace_bytes,
               WorkOf work_of, Launch launch) {
  return plan_of(own_implementation(context), workspace_bytes, [=](std::span<const Tensor> bound, Workspace space) {
    const Named<Tensor> at(call, bound);
    std::vector<GradientEntry> entries = gradients.entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].gradient = at.at("g", i).data;
      if (const Tensor* made = at.find("g'", i)) entries[i].clipped = made->data;
    }
    const auto tables = upload_tables(entries, gradients.chunks);
    return [work = work_of(at, tables, space), launch, name = std::string(call.kind.name),
            held = tables.memory](cudaStream_t stream) {
      launch(work, stream);
      check_launch(name);
    };
  });
}

using GradientTables = Tables<GradientEntry>;

// Dense gradients, possibly of different types; the norm is f32 or f64. One launch for all tensors.
Plan plan_gradient_norm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Element norm_type = norm_element(call, tensors.back());
  const Gradients gradients = gradients_of(call, tensors.first(tensors.size() - 1));
  const int parts = gradient_norm_parts(gradients.chunk_count(), context.device.multiprocessors);
  const auto work_of = [=](const Named<Tensor>& at, const GradientTables& tables, Workspace space) {
    return GradientNormArgs{tables.entries,
                            tables.chunks,
                            tables.chunk_count,
                            at["norm"].data,
                            norm_type,
                            reinterpret_cast<double*>(space.data),
                            parts};
  };
  return plan_over(gradients, call, context, static_cast<std::size_t>(parts) * sizeof(double), work_of,
                   launch_gradient_norm);
}

Plan plan_clip(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const std::size_t count = call.outputs.size();
  const Element norm_type = norm_element(call, tensors[0]);
  const Gradients gradients = gradients_of(call, tensors.subspan(1, count));
  for (std::size_t i = 0; i < count; ++i) expect_same_type(call, tensors[1 + i], tensors[1 + count + i]);
  const auto work_of = [norm_type, limit = call.attributes.as<Clip>().limit](const Named<Tensor>& at,
                                                                             const GradientTables& tables, Workspace) {
    return ClipArgs{tables.entries, tables.chunks, tables.chunk_count, at["norm"].data, norm_type, limit};
  };
  const auto launch = [multiprocessors = context.device.multiprocessors](const ClipArgs& work, cudaStream_t stream) {
    launch_clip(work, multiprocessors, stream);
  };
  return plan_over(gradients, call, context, 0, work_of, launch);
}

// Unscaled gradients are f32, or f64 for f64 gradients.
Plan plan_unscale(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const Element scale_type = norm_element(call, operand["scale"]);
  expect_same_type(call, operand["scale"], operand["found_inf"]);
  const std::size_t count = call.inputs.size() - 1;
  const Gradients gradients = gradients_of(call, tensors.subspan(1, count));
  for (std::size_t i = 0; i < count; ++i) {
    const TensorSpec& unscaled = operand.at("g'", i);
    expect_type(call, unscaled, statistic_type(tensors[1 + i].dtype));
    if (!share_one_run(std::array{tensors[1 + i], unscaled})) {
      refuse(call, fmt::format("{} and its result have different layouts; expected the same", unscaled.to_string()));
    }
  }
  const int parts = gradient_norm_parts(gradients.chunk_count(), context.device.multiprocessors);
  const auto work_of = [=](const Named<Tensor>& at, const GradientTables& tables, Workspace space) {
    return UnscaleArgs{tables.entries,
                       tables.chunks,
                       tables.chunk_count,
                       at["scale"].data,
                       at["found_inf"].data,
                       scale_type,
                       reinterpret_cast<double*>(space.data),
                       parts};
  };
  return plan_over(gradients, call, context, static_cast<std::size_t>(parts) * sizeof(double), work_of, launch_unscale);
}

Plan plan_update_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const auto& attributes = call.attributes.as<UpdateScale>();
  expect_type(call, operand["tracker"], DType::i32);
  using Args = UpdateScaleArgs;
  Args args;
  args.scale_type = norm_element(call, operand["scale"]);
  args.found_type = norm_element(call, operand["found_inf"]);
  args.growth = attributes.growth;
  args.backoff = attributes.backoff;
  args.interval = attributes.interval;
  return own_plan(
      call, context, args, launch_update_scale,
      {{"scale'", to<&Args::scale>}, {"tracker'", to<&Args::tracker>}, {"found_inf", to<&Args::found_inf>}});
}

/// Parameters of an optimizer call; addresses not set.
std::vector<ParameterEntry> parameters_of(const OpCall& call, const Named<TensorSpec>& operand,
                                          std::span<const TensorSpec> tensors, DType state) {
  std::vector<ParameterEntry> entries;
  const std::size_t lists = operand_names(call.kind.outputs, call.attributes, 1).size() + 1;  // and the gradients
  for (std::size_t t = 0; const TensorSpec* weight = operand.find("w", t); ++t) {
    const auto inputs = tensors.subspan(*operand.position("w", t), lists);
    for (const char* name : {"w", "m", "v"}) {
      if (const TensorSpec* master = operand.find(name, t)) expect_type(call, *master, state);
    }
    if (state == DType::f64) {
      for (const TensorSpec& tensor : inputs) expect_type(call, tensor, state);
    }
    if (!share_one_run(inputs)) {
      refuse(call, fmt::format("{} and its gradient, moments or copy have different layouts or gaps; expected dense "
                               "tensors in one order",
                               weight->to_string()));
    }
    ParameterEntry entry;
    entry.elements = weight->shape.elements();
    entry.gradient_type = any_element(call, operand.at("g", t));
    if (const TensorSpec* copy = operand.find("copy", t)) entry.copy_type = any_element(call, *copy);
    entries.push_back(entry);
  }
  return entries;
}

/// The plan of an optimizer's launch: `args` has its constants; bind(args, operands) adds its other operands.
template <class Args, class Bind>
Plan plan_update(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context, Args args,
                 Bind bind) {
  const Named<TensorSpec> operand(call, tensors);
  const DType state = statistic_type(operand["w"].dtype);
  operand.each({"norm", "lr", "found_inf"}, [&](const TensorSpec& scalar) {
    if (scalar.dtype != DType::f32) expect_type(call, scalar, state);
  });
  operand.each({"step"}, [&](const TensorSpec& step) { expect_type(call, step, DType::i32); });
  args.state = state == DType::f64 ? Element::f64 : Element::f32;
  args.lr_type = any_element(call, operand["lr"]);
  if (const TensorSpec* found = operand.find("found_inf")) args.found_type = any_element(call, *found);
  const std::vector<ParameterEntry> blank = parameters_of(call, operand, tensors, state);
  std::vector<std::int64_t> sizes;
  for (const ParameterEntry& entry : blank) sizes.push_back(entry.elements);
  return plan_of(own_implementation(context), 0,
                 [=, chunks = chunks_of(sizes), multiprocessors = context.device.multiprocessors](
                     std::span<const Tensor> bound, Workspace) {
                   const Named<Tensor> at(call, bound);
                   std::vector<ParameterEntry> entries = blank;
                   for (std::size_t t = 0; t < entries.size(); ++t) {
                     entries[t].weight = at.at("w", t).data;
                     entries[t].gradient = at.at("g", t).data;
                     entries[t].m = at.at("m", t).data;
                     if (const Tensor* v = at.find("v", t)) entries[t].v = v->data;
                     if (const Tensor* copy = at.find("copy", t)) entries[t].copy = copy->data;
                   }
                   const auto tables = upload_tables(entries, chunks);
                   Args work = args;
                   work.entries = tables.entries;
                   work.chunks = tables.chunks;
                   work.chunk_count = tables.chunk_count;
                   work.lr = at["lr"].data;
                   if (const Tensor* found = at.find("found_inf")) work.found_inf = found->data;
                   bind(work, at);
                   return [work, multiprocessors, name = std::string(call.kind.name),
                           held = tables.memory](cudaStream_t stream) {
                     launch_update(work, multiprocessors, stream);
                     check_launch(name);
                   };
                 });
}

// adamw, clip_adamw, lion, sgd. Masters and moments f32 with gradients and copies in f32, f16 or bf16; or all f64.
// Dense, one order per parameter. The learning rate is f32, or f64 with the rest.
Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const AdamWCall places = adamw_call(call);
  AdamWArgs args;
  args.beta1 = places.adamw.beta1;
  args.beta2 = places.adamw.beta2;
  args.epsilon = places.adamw.epsilon;
  (places.adamw.l2 ? args.l2 : args.weight_decay) = places.adamw.weight_decay;
  args.limit = places.limit.value_or(1.0);
  if (places.limit) args.norm_type = any_element(call, tensors[0]);
  return plan_update(call, tensors, context, args, [](AdamWArgs& work, const Named<Tensor>& at) {
    work.step = elements_of<const int>(at["step"]);
    if (const Tensor* norm = at.find("norm")) work.norm = norm->data;
  });
}

Plan plan_lion(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const auto& attributes = call.attributes.as<Lion>();
  LionArgs args;
  args.beta1 = attributes.beta1;
  args.beta2 = attributes.beta2;
  args.weight_decay = attributes.weight_decay;
  return plan_update(call, tensors, context, args, [](LionArgs&, const Named<Tensor>&) {});
}

Plan plan_sgd(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const auto& attributes = call.attributes.as<Sgd>();
  SgdArgs args;
  args.momentum = attributes.momentum;
  args.weight_decay = attributes.weight_decay;
  args.nesterov = attributes.nesterov;
  return plan_update(call, tensors, context, args, [](SgdArgs&, const Named<Tensor>&) {});
}

}  // namespace

Ops optimizer_ops() {
  return {{adamw_kind, plan_adamw},     {clip_adamw_kind, plan_adamw, Gain::expected},
          {clip_kind, plan_clip},       {gradient_norm_kind, plan_gradient_norm},
          {lion_kind, plan_lion},       {sgd_kind, plan_sgd},
          {unscale_kind, plan_unscale}, {update_scale_kind, plan_update_scale}};
}

}  // namespace gpubench::cuda
