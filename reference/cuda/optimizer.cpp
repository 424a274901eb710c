// Tables of tensors and chunks belong to the bound work, in device memory of its own: the workspace is shared with
// other ops and may be overwritten between runs.
#include "reference/cuda/plans.h"

#include <fmt/format.h>

#include <vector>

#include "reference/cuda/kernels/optimizer.h"
#include "reference/ops/optimizer.h"

namespace gpubench::cuda {
namespace {

/// Every chunk of tensors of these sizes, in order.
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

/// Both tables in device memory.
template <class Entry>
struct Tables {
  std::shared_ptr<std::byte> memory;
  const Entry* entries = nullptr;
  const TensorChunk* chunks = nullptr;
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
  return tables;
}

void expect_dense(const OpCall& call, const TensorSpec& tensor) {
  if (is_dense(tensor)) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected a dense one", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

/// What gradient norm and clip need to know of the gradients, without addresses.
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

/// The type of the norm: f64, or f32.
Element norm_element(const OpCall& call, const TensorSpec& norm) {
  if (norm.dtype == DType::f64) return Element::f64;
  expect_type(call, norm, DType::f32);
  return Element::f32;
}

}  // namespace

Plan plan_gradient_norm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Element norm_type = norm_element(call, tensors.back());
  const Gradients gradients = gradients_of(call, tensors.first(tensors.size() - 1));
  const int parts = gradient_norm_parts(gradients.chunk_count(), context.device.multiprocessors);
  return plan_of(own_implementation(context), static_cast<std::size_t>(parts) * sizeof(double),
                 [gradients, parts, norm_type](std::span<const Tensor> bound, Workspace space) {
                   std::vector<GradientEntry> entries = gradients.entries;
                   for (std::size_t i = 0; i < entries.size(); ++i) entries[i].gradient = bound[i].data;
                   const auto tables = upload_tables(entries, gradients.chunks);
                   const GradientNormArgs work{tables.entries,
                                               tables.chunks,
                                               gradients.chunk_count(),
                                               bound.back().data,
                                               norm_type,
                                               reinterpret_cast<double*>(space.data),
                                               parts};
                   return [work, held = tables.memory](cudaStream_t stream) {
                     launch_gradient_norm(work, stream);
                     check_launch("gradient_norm");
                   };
                 });
}

Plan plan_clip(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const std::size_t count = call.outputs.size();
  const Element norm_type = norm_element(call, tensors[0]);
  const Gradients gradients = gradients_of(call, tensors.subspan(1, count));
  for (std::size_t i = 0; i < count; ++i) expect_same_type(call, tensors[1 + i], tensors[1 + count + i]);
  return plan_of(own_implementation(context), 0,
                 [gradients, count, norm_type, limit = call.attributes.as<Clip>().limit,
                  multiprocessors = context.device.multiprocessors](std::span<const Tensor> bound, Workspace) {
                   std::vector<GradientEntry> entries = gradients.entries;
                   for (std::size_t i = 0; i < count; ++i) {
                     entries[i].gradient = bound[1 + i].data;
                     entries[i].clipped = bound[1 + count + i].data;
                   }
                   const auto tables = upload_tables(entries, gradients.chunks);
                   const ClipArgs work{tables.entries, tables.chunks, gradients.chunk_count(),
                                       bound[0].data,  norm_type,     limit};
                   return [work, multiprocessors, held = tables.memory](cudaStream_t stream) {
                     launch_clip(work, multiprocessors, stream);
                     check_launch("clip");
                   };
                 });
}

namespace {

/// Tensors per parameter: w, g, m, v, [copy].
std::vector<AdamWEntry> adamw_entries(const OpCall& call, std::span<const TensorSpec> tensors,
                                      std::size_t per_parameter, DType state) {
  std::vector<AdamWEntry> entries;
  for (std::size_t first = 0; first < tensors.size(); first += per_parameter) {
    const auto inputs = tensors.subspan(first, per_parameter);
    for (const std::size_t i : {0U, 2U, 3U}) expect_type(call, inputs[i], state);
    if (state == DType::f64) {
      for (const TensorSpec& tensor : inputs) expect_type(call, tensor, state);
    }
    if (!share_one_run(inputs)) {
      refuse(call,
             fmt::format("{} and what belongs to it have different layouts, or gaps; expected dense ones in one order",
                         inputs[0].to_string()));
    }
    AdamWEntry entry;
    entry.elements = inputs[0].shape.elements();
    entry.gradient_type = any_element(call, inputs[1]);
    if (per_parameter == 5) entry.copy_type = any_element(call, inputs[4]);
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const AdamWCall places = adamw_call(call);
  const DType state = tensors[places.first()].dtype == DType::f64 ? DType::f64 : DType::f32;
  for (std::size_t i = 0; i <= places.lr; ++i) {
    if (tensors[i].dtype != DType::f32) expect_type(call, tensors[i], state);
  }
  expect_type(call, tensors[places.lr + 1], DType::i32);
  const std::vector<AdamWEntry> blank =
      adamw_entries(call, tensors.subspan(places.first(), call.inputs.size() - places.first()), places.inputs, state);
  std::vector<std::int64_t> sizes;
  for (const AdamWEntry& entry : blank) sizes.push_back(entry.elements);
  return plan_of(own_implementation(context), 0,
                 [blank, chunks = chunks_of(sizes), places, state, lr_type = any_element(call, tensors[places.lr]),
                  norm_type = any_element(call, tensors[0]),
                  multiprocessors = context.device.multiprocessors](std::span<const Tensor> bound, Workspace) {
                   std::vector<AdamWEntry> entries = blank;
                   for (std::size_t i = 0; i < entries.size(); ++i) {
                     const auto inputs = bound.subspan(places.first() + i * places.inputs, places.inputs);
                     entries[i].weight = inputs[0].data;
                     entries[i].gradient = inputs[1].data;
                     entries[i].m = inputs[2].data;
                     entries[i].v = inputs[3].data;
                     if (places.adamw.copies) entries[i].copy = inputs[4].data;
                   }
                   const auto tables = upload_tables(entries, chunks);
                   const AdamWArgs work{tables.entries,
                                        tables.chunks,
                                        static_cast<std::int64_t>(chunks.size()),
                                        state == DType::f64 ? Element::f64 : Element::f32,
                                        lr_type,
                                        bound[places.lr].data,
                                        elements_of<const int>(bound[places.lr + 1]),
                                        places.adamw.beta1,
                                        places.adamw.beta2,
                                        places.adamw.epsilon,
                                        places.adamw.weight_decay,
                                        places.limit ? bound[0].data : nullptr,
                                        norm_type,
                                        places.limit.value_or(1.0)};
                   return [work, multiprocessors, held = tables.memory](cudaStream_t stream) {
                     launch_adamw(work, multiprocessors, stream);
                     check_launch("adamw");
                   };
                 });
}

}  // namespace gpubench::cuda
