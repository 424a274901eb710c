#include "reference/cpu/kernel.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/norm.h"

namespace gpubench::cpu {
namespace {

constexpr std::string_view suffix = "+widen";

/// A narrow tensor and its f32 copy, in rows; a dense tensor is one row.
struct Widened {
  DType type = DType::f16;
  RowView rows;
  std::byte* narrow = nullptr;
  float* wide = nullptr;

  template <class Convert>
  void in_pieces(int threads, const Convert& convert) const {
    const auto size = static_cast<std::int64_t>(size_of(type));
    if (rows.rows == 1) {
      return parallel_chunks(threads, rows.columns, element_grain, [&](std::int64_t begin, std::int64_t end) {
        convert(narrow + begin * size, end - begin, wide + begin);
      });
    }
    parallel_chunks(threads, rows.rows, row_grain(rows.columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        convert(narrow + row * rows.stride * size, rows.columns, wide + row * rows.columns);
    });
  }
};

/// Ops that store the sum of two inputs and compute the rest from the stored, rounded sum. One copy holds that sum, the
/// other -0, which does not change the sum.
struct StoredSum {
  OpKind kind;
  std::string_view a, b;
};
constexpr std::array stored_sums{StoredSum{residual_norm_forward_kind, "x", "r"},
                                 StoredSum{batch_norm_relu_backward_kind, "dy", "dy2"}};

struct WidenedWork {
  int threads = 1;
  std::vector<Widened> inputs, outputs;
  std::optional<std::array<Widened, 2>> stored_sum;
  Launch wide;

  void round_sum(const std::array<Widened, 2>& of) const {
    parallel_chunks(threads, of[0].rows.elements(), element_grain, [&](std::int64_t begin, std::int64_t end) {
      float *sum = of[0].wide + begin, *other = of[1].wide + begin;
      runs().add(other, end - begin, sum);
      std::fill_n(other, end - begin, -0.0F);
      round_elements(of[0].type, end - begin, sum);
    });
  }

  void operator()() const {
    for (const Widened& input : inputs) {
      input.in_pieces(threads, [&input](const std::byte* narrow, std::int64_t count, float* to) {
        widen_elements(input.type, narrow, count, to);
      });
    }
    if (stored_sum) round_sum(*stored_sum);
    const auto& launch = static_cast<const CpuLaunch&>(*wide);
    launch();
    for (const Widened& output : outputs) {
      output.in_pieces(threads, [&output](std::byte* narrow, std::int64_t count, const float* from) {
        narrow_elements(output.type, from, count, narrow);
      });
    }
  }
};

/// Specs of a call's f32 copies, and their places in the workspace.
struct Widening {
  struct Copy {
    std::size_t position = 0;
    RowView rows;
    std::size_t offset = 0;
  };
  std::vector<TensorSpec> specs;
  std::vector<Copy> copies;                              // of inputs first
  std::optional<std::array<std::size_t, 2>> stored_sum;  // indices of its copies
  std::size_t bytes = 0;

  [[nodiscard]] std::optional<std::size_t> copy_of(const OpCall& call, std::string_view input) const {
    const auto position = position_of(call.kind.inputs, call.attributes, input);
    const auto copy = std::ranges::find_if(copies, [&](const Copy& one) { return position == one.position; });
    if (!position || copy == copies.end()) return std::nullopt;
    return static_cast<std::size_t>(copy - copies.begin());
  }
};

/// The tensor as its longest contiguous rows, in logical order.
std::optional<RowView> long_rows(TensorSpec spec) {
  const Shape& shape = spec.shape;
  if (!spec.layout.blocks.empty()) return std::nullopt;
  std::int64_t columns = 1;
  int axis = shape.rank() - 1;
  for (; axis >= 0 && (shape[axis] == 1 || spec.layout.strides[static_cast<std::size_t>(axis)] == columns); --axis)
    columns *= shape[axis];
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().begin() + axis + 1);
  spec.layout.strides.resize(extents.size());
  extents.push_back(columns);
  spec.layout.strides.push_back(1);
  spec.shape = Shape(extents);
  return row_view(spec);
}

/// Empty if no operand needs a copy, or one cannot have it. Outputs that cannot be narrowed have none.
std::optional<Widening> widening_of(const OpCall& call, std::span<const TensorSpec> tensors) {
  Widening widening;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorSpec& spec = widening.specs.emplace_back(tensors[i]);
    if (!(i < call.inputs.size() ? widens_to_f32 : narrows_from_f32)(spec.dtype)) continue;
    std::optional<RowView> rows = RowView{1, spec.shape.elements(), spec.shape.elements()};
    if (!is_dense(spec)) {
      rows = long_rows(spec);
      spec.layout = Layout::row_major(spec.shape);
    }
    if (!rows) return std::nullopt;
    spec.dtype = DType::f32;
    widening.copies.push_back({i, *rows, widening.bytes});
    widening.bytes += whole_lines(static_cast<std::size_t>(spec.bytes()));
  }
  if (widening.copies.empty()) return std::nullopt;
  for (const StoredSum& sum : stored_sums) {
    if (call.kind != sum.kind) continue;
    const auto a = widening.copy_of(call, sum.a), b = widening.copy_of(call, sum.b);
    if (a && b) widening.stored_sum = {*a, *b};
  }
  return widening;
}

WidenedWork work_of(const Widening& widening, std::size_t inputs, int threads, std::vector<Tensor>& tensors,
                    std::byte* workspace) {
  WidenedWork work{threads, {}, {}, {}, nullptr};
  for (const Widening::Copy& copy : widening.copies) {
    const Tensor narrow = tensors[copy.position];
    auto* wide = reinterpret_cast<float*>(workspace + copy.offset);
    // An in-place output shares the input's copy.
    const auto shared = std::ranges::find_if(work.inputs, [&](const Widened& input) {
      return copy.position >= inputs && input.narrow == narrow.data && input.rows == copy.rows;
    });
    if (shared != work.inputs.end()) wide = shared->wide;
    (copy.position < inputs ? work.inputs : work.outputs).push_back({narrow.spec.dtype, copy.rows, narrow.data, wide});
    tensors[copy.position] = {widening.specs[copy.position], reinterpret_cast<std::byte*>(wide)};
  }
  if (const auto& sum = widening.stored_sum) work.stored_sum = {work.inputs[(*sum)[0]], work.inputs[(*sum)[1]]};
  return work;
}

Plan plan_widened(const OpImplementation& implementation, const OpCall& call, const Widening& widening,
                  const CpuContext& context) {
  const Plan wide = implementation.plan(call, widening.specs, context);
  const auto binder = [=, inputs = call.inputs.size(), threads = context.threads](std::span<const Tensor> tensors,
                                                                                  Workspace workspace) {
    std::vector<Tensor> bound(tensors.begin(), tensors.end());
    WidenedWork work = work_of(widening, inputs, threads, bound, workspace.data);
    work.wide = static_cast<const CpuPlan&>(*wide).bind(
        bound, {workspace.data + widening.bytes, workspace.bytes - widening.bytes});
    return work;
  };
  const Plan plan =
      plan_of(wide->implementation() + std::string(suffix), widening.bytes + wide->workspace_bytes(), binder);
  return chosen<CpuPlan>(plan, wide->choice(), wide->rejected());
}

/// "a" for "a+widen"; "" for other names.
std::string without_suffix(const std::string& name) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string();
}

}  // namespace

Plan plan_or_widen(const OpImplementation& implementation, const OpCall& call, std::span<const TensorSpec> tensors,
                   const CpuContext& context) {
  const std::string pinned_copies = without_suffix(context.options.pinned);
  std::optional<Unsupported> refusal;
  if (pinned_copies.empty()) {
    try {
      return implementation.plan(call, tensors, context);
    } catch (const Unsupported& error) {
      if (!context.options.pinned.empty()) throw;
      refusal = error;
    }
  }
  const std::optional<Widening> widening = widening_of(call, tensors);
  if (!widening) {
    if (refusal) throw *refusal;
    refuse(call, "pinned to " + context.options.pinned + ", but no operand has a type to widen");
  }
  CpuContext wide = context;
  wide.options.pinned = pinned_copies;
  wide.type_before_widening = tensors.front().dtype;
  wide.options.remembered = without_suffix(context.options.remembered);
  try {
    return plan_widened(implementation, call, *widening, wide);
  } catch (const Unsupported&) {
    if (refusal) throw *refusal;
    throw;
  }
}

}  // namespace gpubench::cpu
