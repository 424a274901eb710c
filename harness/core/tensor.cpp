#include "harness/core/tensor.h"

#include <algorithm>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {

std::string_view name(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::parameter: return "parameter";
    case Role::state: return "state";
    case Role::activation: return "activation";
    case Role::gradient: return "gradient";
    case Role::statistic: return "statistic";
    case Role::scalar: return "scalar";
  }
  return "?";
}

std::string_view name(Memory memory) {
  switch (memory) {
    case Memory::device: return "device memory";
    case Memory::pinned_host: return "pinned host memory";
    case Memory::pageable_host: return "pageable host memory";
    case Memory::peer: return "another device's memory";
  }
  return "?";
}

std::int64_t TensorSpec::bytes() const {
  const std::int64_t elements = layout.span_elements(shape);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  if (elements < 0 || elements > most_tensor_bytes / size)
    throw ProgramError("tensor " + to_string() + " has more than 2^50 bytes");
  return elements * size;
}

std::string TensorSpec::to_string() const {
  return name + ": " + std::string(gpubench::name(dtype)) + shape.to_string();
}

std::string_view TensorSpec::global_name() const {
  const std::string_view whole = name;
  return placement.ranks == 1 ? whole : whole.substr(0, whole.rfind('@'));
}

Shape global_shape(const TensorSpec& spec) {
  std::vector<std::int64_t> extents(spec.shape.extents().begin(), spec.shape.extents().end());
  std::int64_t addends = 1;
  for (const AxisSpread& spread : spec.placement.spread)
    (spread.kind == AxisSpread::Kind::partial ? addends : extents.at(static_cast<std::size_t>(spread.tensor_axis))) *=
        spread.parts;
  if (addends > 1) extents.insert(extents.begin(), addends);
  return Shape(std::move(extents));
}

std::int64_t global_index(const TensorSpec& spec, std::int64_t linear) {
  const std::vector<AxisSpread>& spreads = spec.placement.spread;
  std::int64_t index = 0;
  std::int64_t step = 1;  // of an axis of the whole
  for (int axis = spec.shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = spec.shape[axis];
    std::int64_t place = 0;  // among the parts along this axis
    std::int64_t parts = 1;
    for (const AxisSpread& spread : spreads) {
      if (spread.kind != AxisSpread::Kind::sharded || spread.tensor_axis != axis) continue;
      place = place * spread.parts + spread.part;
      parts *= spread.parts;
    }
    index += (place * extent + linear % extent) * step;
    step *= extent * parts;
    linear /= extent;
  }
  std::int64_t addend = 0;
  for (const AxisSpread& spread : spreads) {
    if (spread.kind == AxisSpread::Kind::partial) addend = addend * spread.parts + spread.part;
  }
  return addend * step + index;
}

std::int64_t global_run(const TensorSpec& spec) {
  int first = 0;
  for (const AxisSpread& spread : spec.placement.spread) {
    if (spread.kind == AxisSpread::Kind::sharded) first = std::max(first, spread.tensor_axis);
  }
  std::int64_t run = 1;
  for (int axis = first; axis < spec.shape.rank(); ++axis) run *= spec.shape[axis];
  return run;
}

std::string name_on_rank(std::string_view name, int rank, int ranks) {
  return ranks == 1 ? std::string(name) : std::string(name) + "@" + std::to_string(rank);
}

TensorSpec tensor(std::string name, DType dtype, Shape shape, Role role, Fill fill) {
  Layout layout = Layout::row_major(shape);
  return {std::move(name), std::move(shape), dtype, std::move(layout), role, fill, {}};
}

TensorView::TensorView(const TensorSpec& spec, const std::byte* data)
    : spec_(&spec), data_(data), row_major_(spec.layout.is_row_major(spec.shape)) {}

const std::byte* TensorView::address(std::int64_t linear) const {
  const std::int64_t offset = row_major_ ? linear : spec_->layout.offset(spec_->shape, linear);
  return data_ + offset * static_cast<std::int64_t>(size_of(spec_->dtype));
}

double TensorView::operator[](std::int64_t linear) const { return load(spec_->dtype, address(linear)); }

double TensorView::at(std::span<const std::int64_t> index) const {
  return load(spec_->dtype, data_ + spec_->layout.offset(index) * static_cast<std::int64_t>(size_of(spec_->dtype)));
}

double TensorView::at(std::initializer_list<std::int64_t> index) const {
  return at(std::span<const std::int64_t>(index.begin(), index.size()));
}

void TensorView::read(std::initializer_list<std::int64_t> start, int axis, std::span<double> out) const {
  const std::size_t which = static_cast<std::size_t>(axis < 0 ? axis + spec_->shape.rank() : axis);
  if (spec_->layout.blocks.empty()) {
    const std::int64_t offset = spec_->layout.offset(std::span<const std::int64_t>(start.begin(), start.size()));
    load_run(spec_->dtype, data_ + offset * static_cast<std::int64_t>(size_of(spec_->dtype)),
             spec_->layout.strides[which], static_cast<std::int64_t>(out.size()), out.data());
    return;
  }
  std::vector<std::int64_t> index(start);
  for (double& value : out) {
    value = at(index);
    ++index[which];
  }
}

void TensorView::read(std::int64_t linear, std::span<double> out) const {
  if (row_major_) {
    load_run(spec_->dtype, address(linear), 1, static_cast<std::int64_t>(out.size()), out.data());
    return;
  }
  // Runs within the last axis are evenly strided; a run ends where a row does.
  const bool strided = spec_->layout.blocks.empty() && spec_->shape.rank() > 0;
  const std::int64_t row = strided ? spec_->shape[-1] : 1;
  std::size_t done = 0;
  while (done < out.size()) {
    const std::int64_t left = std::min<std::int64_t>(row - linear % row, static_cast<std::int64_t>(out.size() - done));
    load_run(spec_->dtype, address(linear), strided ? spec_->layout.strides.back() : 1, left, out.data() + done);
    linear += left;
    done += static_cast<std::size_t>(left);
  }
}

}  // namespace gpubench
