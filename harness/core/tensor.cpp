#include "harness/core/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/error.h"

namespace gpubench {

std::int64_t TensorSpec::bytes() const {
  const std::int64_t elements = layout.span_elements(shape);
  if (elements < 0 || elements > max_tensor_bytes * 8 / bits_of(dtype))
    throw ProgramError("tensor " + to_string() + " has more than 2^50 bytes");
  return bytes_of(dtype, elements);
}

std::string TensorSpec::to_string() const {
  return name + ": " + std::string(gpubench::name(dtype)) + shape.to_string();
}

std::string_view TensorSpec::global_name() const {
  const std::string_view whole = name;
  return placement.ranks == 1 ? whole : whole.substr(0, whole.rfind('@'));
}

namespace {

/// Position in the whole of an index along an axis that is cut in sections.
std::int64_t index_in_sections(const AxisSpread& spread, std::int64_t index) {
  std::int64_t before = 0;  // elements of the sections before, in the whole
  for (const std::int64_t section : spread.sections) {
    const std::int64_t mine = section / spread.parts;
    if (index < mine) return before + spread.part * mine + index;
    index -= mine;
    before += section;
  }
  throw ProgramError("an index is beyond all sections of a tensor's axis");
}

}  // namespace

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
    std::int64_t here = linear % extent;
    std::int64_t whole = extent;
    for (auto spread = spreads.rbegin(); spread != spreads.rend(); ++spread) {  // the finest first
      if (spread->kind != AxisSpread::Kind::sharded || spread->tensor_axis != axis) continue;
      here = spread->sections.empty() ? spread->part * whole + here : index_in_sections(*spread, here);
      whole *= spread->parts;
    }
    index += here * step;
    step *= whole;
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
  std::int64_t along = spec.shape.rank() == 0 ? 1 : spec.shape[first];  // of the innermost axis that is cut
  for (const AxisSpread& spread : spec.placement.spread) {
    if (spread.tensor_axis != first) continue;
    for (const std::int64_t section : spread.sections) along = std::gcd(along, section / spread.parts);
  }
  std::int64_t run = along;
  for (int axis = first + 1; axis < spec.shape.rank(); ++axis) run *= spec.shape[axis];
  return run;
}

std::string name_on_rank(std::string_view name, int rank, int ranks) {
  return ranks == 1 ? std::string(name) : std::string(name) + "@" + std::to_string(rank);
}

TensorSpec tensor(std::string name, DType dtype, Shape shape, Role role, Fill fill) {
  Layout layout = Layout::row_major(shape);
  return {std::move(name), std::move(shape), dtype, std::move(layout), role, fill, {}};
}

namespace {

// Calls work(offset, stride, count, done), in elements, for each evenly strided run of `count` logical elements from
// `linear`. A run ends at a row's end; `done` elements precede it.
template <class Work>
void each_run(const TensorSpec& spec, bool row_major, std::int64_t linear, std::int64_t count, const Work& work) {
  if (row_major) return work(linear, std::int64_t{1}, count, std::int64_t{0});
  const bool strided = spec.layout.blocks.empty() && spec.shape.rank() > 0;
  const std::int64_t row = strided ? spec.shape[-1] : 1;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t run = std::min(row - (linear + done) % row, count - done);
    work(spec.layout.offset(spec.shape, linear + done), strided ? spec.layout.strides.back() : 1, run, done);
    done += run;
  }
}

void expect_axes(const TensorSpec& spec, std::size_t axes) {
  if (axes != static_cast<std::size_t>(spec.shape.rank()))
    throw ProgramError(spec.to_string() + " has " + std::to_string(spec.shape.rank()) + " axes; the textbook expects " +
                       std::to_string(axes));
}

}  // namespace

TensorView::TensorView(const TensorSpec& spec, const std::byte* data)
    : spec_(&spec),
      data_(data),
      span_(spec.layout.span_elements(spec.shape)),
      row_major_(spec.layout.is_row_major(spec.shape)) {}

TensorView::TensorView(const TensorSpec& spec, const std::byte* data, Backend& device, const RowView& rows)
    : spec_(&spec),
      data_(data),
      device_(&device),
      span_(spec.layout.span_elements(spec.shape)),
      rows_(rows.rows == 1 || rows.stride == rows.columns ? RowView{1, rows.elements(), rows.elements()} : rows),
      row_major_(spec.layout.is_row_major(spec.shape)) {}

double TensorView::operator[](std::int64_t linear) const {
  return element(row_major_ ? linear : spec_->layout.offset(spec_->shape, linear));
}

void TensorView::expect_inside(std::int64_t offset) const {
  if (offset < 0 || offset >= span_)
    throw ProgramError("the textbook reads outside " + spec_->to_string() +
                       ": the operands' shapes, values or attributes don't match");
}

double TensorView::element(std::int64_t offset) const {
  expect_inside(offset);
  if (device_ == nullptr) return load(spec_->dtype, data_, offset);
  std::array<std::byte, sizeof(double)> bits{};
  device_->read(std::span(bits).first(size_of(spec_->dtype)), data_ + bytes_of(spec_->dtype, offset));
  return load(spec_->dtype, bits.data());
}

double TensorView::at(std::span<const std::int64_t> index) const {
  expect_axes(*spec_, index.size());
  return element(spec_->layout.offset(index));
}

double TensorView::at(std::initializer_list<std::int64_t> index) const {
  return at(std::span<const std::int64_t>(index.begin(), index.size()));
}

void TensorView::read(std::initializer_list<std::int64_t> start, int axis, std::span<double> out) const {
  expect_axes(*spec_, start.size());
  const std::size_t which = static_cast<std::size_t>(axis < 0 ? axis + spec_->shape.rank() : axis);
  if (spec_->layout.blocks.empty()) {
    const std::int64_t offset = spec_->layout.offset(std::span<const std::int64_t>(start.begin(), start.size()));
    return load_strided(offset, spec_->layout.strides[which], out);
  }
  std::vector<std::int64_t> index(start);
  for (double& value : out) {
    value = at(index);
    ++index[which];
  }
}

void TensorView::read(std::int64_t linear, std::span<double> out) const {
  each_run(*spec_, row_major_, linear, static_cast<std::int64_t>(out.size()),
           [&](std::int64_t offset, std::int64_t stride, std::int64_t count, std::int64_t done) {
             load_strided(offset, stride, out.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)));
           });
}

void TensorView::load_strided(std::int64_t offset, std::int64_t stride, std::span<double> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (count == 0) return;
  expect_inside(offset);
  expect_inside(offset + (count - 1) * stride);
  if (device_ == nullptr) return load_run(spec_->dtype, data_, offset, stride, count, out.data());
  std::vector<std::int64_t> offsets(out.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = offset + static_cast<std::int64_t>(i) * stride;
  std::vector<std::byte> bits(static_cast<std::size_t>(bytes_of(spec_->dtype, count)));
  fetch(offsets, 1, bits.data());
  load_run(spec_->dtype, bits.data(), 0, 1, count, out.data());
}

// On the device: runs of `run` stored elements from each of `offsets` (elements, ascending). If the gaps take fewer
// bytes than the offsets would, the gaps are read as well.
void TensorView::fetch(std::span<std::int64_t> offsets, std::int64_t run, std::byte* out) const {
  if (offsets.empty()) return;
  const std::int64_t size = bytes_of(spec_->dtype, run);
  const auto count = static_cast<std::int64_t>(offsets.size());
  for (std::int64_t& offset : offsets) offset = bytes_of(spec_->dtype, offset);
  const std::int64_t first = offsets.front();
  const std::int64_t between = offsets.back() - first + size;
  if (between > count * (size + static_cast<std::int64_t>(sizeof first)))
    return device_->gather({out, static_cast<std::size_t>(count * size)}, data_, offsets);
  if (between == count * size) return device_->read({out, static_cast<std::size_t>(between)}, data_ + first);
  std::vector<std::byte> all(static_cast<std::size_t>(between));
  device_->read(all, data_ + first);
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * size, all.data() + (offsets[static_cast<std::size_t>(i)] - first),
                static_cast<std::size_t>(size));
}

void TensorView::gather_bits(std::span<const std::int64_t> firsts, std::int64_t run, std::byte* out) const {
  const auto offset = [this](std::int64_t linear) {
    return rows_.rows == 1 ? linear : linear / rows_.columns * rows_.stride + linear % rows_.columns;
  };
  const bool within_rows = rows_.rows == 1 || rows_.columns % run == 0;
  std::vector<std::int64_t> offsets;
  for (const std::int64_t first : firsts) {
    for (std::int64_t i = 0; i < run; i += within_rows ? run : 1) offsets.push_back(offset(first + i));
  }
  fetch(offsets, within_rows ? run : 1, out);
}

void TensorView::gather(std::span<const std::int64_t> firsts, std::int64_t run, std::span<double> out) const {
  if (device_ != nullptr) {
    const auto count = static_cast<std::int64_t>(out.size());
    std::vector<std::byte> bits(static_cast<std::size_t>(bytes_of(spec_->dtype, count)));
    gather_bits(firsts, run, bits.data());
    return load_run(spec_->dtype, bits.data(), 0, 1, count, out.data());
  }
  if (run == 1 && row_major_ && !firsts.empty()) {
    expect_inside(firsts.front());
    expect_inside(firsts.back());
    return load_each(spec_->dtype, data_, firsts, out.data());
  }
  const auto length = static_cast<std::size_t>(run);
  for (std::size_t i = 0; i < firsts.size();) {
    std::size_t last = i + 1;  // adjacent runs are read together
    while (last < firsts.size() && firsts[last] == firsts[last - 1] + run) ++last;
    read(firsts[i], out.subspan(i * length, (last - i) * length));
    i = last;
  }
}

void TensorView::read_bits(std::int64_t linear, std::int64_t count, std::byte* out) const {
  if (device_ != nullptr) {
    std::vector<std::int64_t> all(rows_.rows == 1 ? 1 : static_cast<std::size_t>(count), linear);
    if (rows_.rows > 1) std::iota(all.begin(), all.end(), linear);
    return gather_bits(all, rows_.rows == 1 ? count : 1, out);
  }
  each_run(*spec_, row_major_, linear, count,
           [&](std::int64_t offset, std::int64_t stride, std::int64_t run, std::int64_t done) {
             copy_elements(spec_->dtype, data_, offset, stride, run, out, done);
           });
}

void write_bits(const TensorSpec& spec, std::int64_t linear, std::int64_t count, const std::byte* packed,
                std::byte* to) {
  each_run(spec, spec.layout.is_row_major(spec.shape), linear, count,
           [&](std::int64_t offset, std::int64_t stride, std::int64_t run, std::int64_t done) {
             const std::int64_t together = stride == 1 ? run : 1;
             for (std::int64_t i = 0; i < run; i += together)
               copy_elements(spec.dtype, packed, done + i, 1, together, to, offset + i * stride);
           });
}

std::vector<ChunkScan> TensorView::scan() const {
  const std::int64_t elements = spec_->shape.elements();
  std::vector<ChunkScan> chunks(static_cast<std::size_t>(scan_chunks(elements)));
  if (device_ != nullptr) {
    device_->scan(chunks, data_, spec_->dtype, rows_);
    return chunks;
  }
  std::vector<std::byte> bits(row_major_ ? 0 : static_cast<std::size_t>(bytes_of(spec_->dtype, scan_chunk_elements)));
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * scan_chunk_elements;
    const std::int64_t count = std::min(scan_chunk_elements, elements - first);
    if (!row_major_) read_bits(first, count, bits.data());
    chunks[i] = scan_chunk(spec_->dtype, row_major_ ? data_ + bytes_of(spec_->dtype, first) : bits.data(), count);
  }
  return chunks;
}

bool TensorView::surely_equal(const TensorView& a, const TensorView& b) {
  if (!a.row_major_ || !b.row_major_) return false;
  if (bits_of(a.dtype()) < 8 && a.shape().elements() % 2 != 0) return false;  // the last byte has unused bits
  const auto bytes = static_cast<std::size_t>(bytes_of(a.dtype(), a.shape().elements()));
  if (a.device_ != nullptr && b.device_ != nullptr)
    return a.device_->fingerprint(a.data_, bytes) == b.device_->fingerprint(b.data_, bytes);
  return a.device_ == nullptr && b.device_ == nullptr && (bytes == 0 || std::memcmp(a.data_, b.data_, bytes) == 0);
}

}  // namespace gpubench
