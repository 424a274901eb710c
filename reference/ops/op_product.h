// A matrix product that an op computes: where its operands and output hold rows and columns, so that data for dot
// products fit any such op (harness/parity/precision_probe.h). With the rest of a and b zero, other inputs as `others`:
//     output(row, column) = factor * sum over k of a(row, k) b(k, column)
// Places are linear logical indices, sums of one offset for the row (or column) and one for k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gpubench {

/// Offsets with mixed radix: the last axis varies fastest.
class Offsets {
 public:
  struct Axis {
    std::int64_t extent = 1, stride = 0;
  };
  Offsets() = default;
  explicit Offsets(std::vector<Axis> axes, std::int64_t first = 0) : axes_(std::move(axes)), first_(first) {}

  [[nodiscard]] std::int64_t size() const {
    std::int64_t size = 1;
    for (const Axis& axis : axes_) size *= axis.extent;
    return size;
  }
  [[nodiscard]] std::int64_t operator[](std::int64_t index) const {
    std::int64_t offset = first_;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      offset += index % axis->extent * axis->stride;
      index /= axis->extent;
    }
    return offset;
  }

 private:
  std::vector<Axis> axes_;
  std::int64_t first_ = 0;
};

/// Scales of an operand in blocks along k: element (line, k) has that at `lines[line] + k / block`.
struct OpProductScales {
  std::size_t input = 0;
  Offsets lines;
  std::int64_t block = 1;
};

struct OpProduct {
  std::size_t a = 0, b = 1;
  int output = 0;
  Offsets a_rows, a_k;     ///< element (row, k) of a
  Offsets b_k, b_columns;  ///< element (k, column) of b
  Offsets rows, columns;   ///< element (row, column) of the output
  double factor = 1.0;
  /// A fill of another input, whose first element may differ from the rest.
  struct Other {
    std::size_t input = 0;
    double first = 0.0, rest = 0.0;
  };
  std::vector<Other> others{};
  std::optional<OpProductScales> a_scales{}, b_scales{};  ///< filled like `others`, or used to widen a range

  /// a [m, k] (transposed: [k, m]) times b [k, n] (transposed: [n, k]), all row-major.
  [[nodiscard]] static OpProduct of_matrices(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                                             bool transpose_b) {
    return {.a_rows = Offsets({{m, transpose_a ? 1 : k}}),
            .a_k = Offsets({{k, transpose_a ? m : 1}}),
            .b_k = Offsets({{k, transpose_b ? 1 : n}}),
            .b_columns = Offsets({{n, transpose_b ? k : 1}}),
            .rows = Offsets({{m, n}}),
            .columns = Offsets({{n, 1}})};
  }

  [[nodiscard]] std::int64_t m() const { return rows.size(); }
  [[nodiscard]] std::int64_t n() const { return columns.size(); }
  [[nodiscard]] std::int64_t k() const { return a_k.size(); }
};

}  // namespace gpubench
