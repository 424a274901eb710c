#include "harness/core/shape.h"

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 62;

std::string joined(std::span<const std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

std::int64_t block_of(const Layout& layout, int axis) {
  std::int64_t size = 1;
  for (const InnerBlock& block : layout.blocks) size *= block.axis == axis ? block.size : 1;
  return size;
}

std::int64_t whole_blocks(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}

Shape::Shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents_) {
    if (extent < 0) throw ProgramError("shape " + to_string() + " has a negative extent");
    if (extent > 0 && count > largest_count / extent) {
      throw ProgramError("shape " + to_string() + " has more than 2^62 elements");
    }
    count *= extent;
  }
}

std::int64_t Shape::operator[](int axis) const {
  const int index = axis < 0 ? axis + rank() : axis;
  if (index < 0 || index >= rank()) {
    throw ProgramError("axis " + std::to_string(axis) + " of shape " + to_string() + " does not exist");
  }
  return extents_[static_cast<std::size_t>(index)];
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents_) count *= extent;
  return count;
}

std::string Shape::to_string() const { return "[" + joined(extents_) + "]"; }

Layout Layout::row_major(const Shape& shape) { return blocked(shape, {}); }

Layout Layout::ordered(const Shape& shape, std::span<const int> order) {
  Layout layout;
  layout.strides.assign(static_cast<std::size_t>(shape.rank()), 0);
  std::vector<int> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  for (int axis = 0; axis < static_cast<int>(sorted.size()); ++axis) {
    if (sorted[static_cast<std::size_t>(axis)] != axis)
      throw ProgramError("layout order is not a permutation of the axes");
  }
  if (static_cast<int>(order.size()) != shape.rank())
    throw ProgramError("layout order does not list every axis of " + shape.to_string());
  std::int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    layout.strides[static_cast<std::size_t>(*axis)] = stride;
    stride *= std::max<std::int64_t>(shape[*axis], 1);
  }
  return layout;
}

Layout Layout::blocked(const Shape& shape, std::vector<InnerBlock> blocks) {
  Layout layout;
  layout.blocks = std::move(blocks);
  std::int64_t stride = 1;
  for (const InnerBlock& block : layout.blocks) {
    if (block.axis < 0 || block.axis >= shape.rank() || block.size < 1) {
      throw ProgramError("inner block of axis " + std::to_string(block.axis) + " does not fit shape " +
                         shape.to_string());
    }
    stride *= block.size;
  }
  layout.strides.assign(static_cast<std::size_t>(shape.rank()), 0);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    layout.strides[static_cast<std::size_t>(axis)] = stride;
    stride *= std::max<std::int64_t>(whole_blocks(shape[axis], block_of(layout, axis)), 1);
  }
  return layout;
}

bool Layout::is_row_major(const Shape& shape) const { return *this == row_major(shape); }

std::int64_t Layout::offset(std::span<const std::int64_t> index) const {
  std::int64_t result = 0;
  if (blocks.empty()) {
    for (std::size_t axis = 0; axis < index.size(); ++axis) result += index[axis] * strides[axis];
    return result;
  }
  std::vector<std::int64_t> outer(index.begin(), index.end());
  std::int64_t inner_stride = 1;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {  // the last block varies fastest
    std::int64_t& position = outer[static_cast<std::size_t>(block->axis)];
    result += (position % block->size) * inner_stride;
    position /= block->size;
    inner_stride *= block->size;
  }
  for (std::size_t axis = 0; axis < outer.size(); ++axis) result += outer[axis] * strides[axis];
  return result;
}

std::int64_t Layout::offset(const Shape& shape, std::int64_t linear) const {
  if (blocks.empty()) {  // the common case, without an allocation
    std::int64_t result = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t extent = shape[axis];
      result += (linear % extent) * strides[static_cast<std::size_t>(axis)];
      linear /= extent;
    }
    return result;
  }
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = linear % shape[axis];
    linear /= shape[axis];
  }
  return offset(index);
}

std::int64_t Layout::span_elements(const Shape& shape) const {
  if (shape.elements() == 0) return 0;
  std::int64_t last = 0, inner = 1;
  bool overflows = false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::int64_t along = 0;
    overflows = overflows ||
                __builtin_mul_overflow(whole_blocks(shape[axis], block_of(*this, axis)) - 1,
                                       strides[static_cast<std::size_t>(axis)], &along) ||
                __builtin_add_overflow(last, along, &last);
  }
  for (const InnerBlock& block : blocks) overflows = overflows || __builtin_mul_overflow(inner, block.size, &inner);
  if (overflows || __builtin_add_overflow(last, inner, &last))
    throw ProgramError("a layout of " + shape.to_string() + " reaches over more than 2^63 elements");
  return last;
}

std::string Layout::to_string(const Shape& shape) const {
  if (is_row_major(shape)) return "row_major";
  std::string text = "strides(" + joined(strides) + ")";
  for (const InnerBlock& block : blocks) {
    text += " block(axis " + std::to_string(block.axis) + ", " + std::to_string(block.size) + ")";
  }
  return text;
}

}  // namespace gpubench
