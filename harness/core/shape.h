// 64-bit shapes and memory layouts.
//
// A Layout maps each logical index to a place in storage by strides (row-major, NHWC, transposed, a part of a packed
// storage), optionally with inner blocks as oneDNN uses for weights:
// https://uxlfoundation.github.io/oneDNN/dev_guide_understanding_memory_formats.html
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace gpubench {

/// Logical extents, outermost first. An empty shape is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  /// Throws ProgramError for a negative extent, or an element count above 2^62.
  explicit Shape(std::vector<std::int64_t> extents);

  [[nodiscard]] int rank() const { return static_cast<int>(extents_.size()); }
  /// Negative axes count from the back, -1 is the last.
  [[nodiscard]] std::int64_t operator[](int axis) const;
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::span<const std::int64_t> extents() const { return extents_; }
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> extents_;
};

/// One level of inner blocking: `size` consecutive indices of `axis` are adjacent.
struct InnerBlock {
  int axis = 0;
  std::int64_t size = 1;
  friend bool operator==(const InnerBlock&, const InnerBlock&) = default;
};

/// The offset of a logical index, in elements from the tensor's first element.
struct Layout {
  std::vector<std::int64_t> strides;  ///< per axis; of the outer (block) index if the axis is blocked
  std::vector<InnerBlock> blocks;     ///< outermost first; the last varies fastest
  friend bool operator==(const Layout&, const Layout&) = default;

  /// Dense, last axis fastest.
  [[nodiscard]] static Layout row_major(const Shape& shape);
  /// Dense; `order` lists the axes from slowest to fastest: {0, 2, 3, 1} stores [N, C, H, W] as NHWC.
  [[nodiscard]] static Layout ordered(const Shape& shape, std::span<const int> order);
  /// Dense outer axes in natural order around the inner blocks; extents are padded to whole blocks.
  [[nodiscard]] static Layout blocked(const Shape& shape, std::vector<InnerBlock> blocks);

  [[nodiscard]] bool is_row_major(const Shape& shape) const;
  [[nodiscard]] std::int64_t offset(std::span<const std::int64_t> index) const;
  /// Of a logical linear index (row-major order of `shape`).
  [[nodiscard]] std::int64_t offset(const Shape& shape, std::int64_t linear) const;
  /// Elements from the first to one past the last touched (blocked: with padding). Throws ProgramError above 2^63.
  [[nodiscard]] std::int64_t span_elements(const Shape& shape) const;
  /// "row_major", "strides(2304, 1)", "blocked(...)".
  [[nodiscard]] std::string to_string(const Shape& shape) const;
};

/// `rows` runs of `columns` consecutive elements; starts are `stride` elements apart.
struct RowView {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t stride = 1;

  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  friend bool operator==(const RowView&, const RowView&) = default;
};

}  // namespace gpubench
