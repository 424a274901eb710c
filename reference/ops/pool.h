// Two-dimensional pooling, NHWC, and its two gradients: the largest element of each window, or the mean.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct Pool {
  std::int64_t window_h = 1, window_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0;  ///< less than the window, so that no window lies in the padding
  /// Means count the padding's zeros as elements (PyTorch's default, but not ONNX's).
  bool counts_padding = false;
  /// A last window may reach past the padding if it begins in the image or before. The first fits the padded image.
  bool ceil_mode = false;
  static void visit(auto&& attribute) {
    attribute.always("window_h", &Pool::window_h);
    attribute.always("window_w", &Pool::window_w);
    attribute("stride_h", &Pool::stride_h);
    attribute("stride_w", &Pool::stride_w);
    attribute("pad_h", &Pool::pad_h);
    attribute("pad_w", &Pool::pad_w);
    attribute("counts_padding", &Pool::counts_padding);
    attribute("ceil_mode", &Pool::ceil_mode);
  }
};

inline constexpr OpKind max_pool_forward_kind{"max_pool_forward", "x", "y index", defaults_of<Pool>, R"(
The largest element of each window, NHWC, and which one it is.
x: [n, h, w, c]
y: [n, p, q, c]
index: u8 [n, p, q, c], which element of its window y is: r window_w + s

y = the largest of window_h x window_w elements, p = (h + 2 pad_h - window_h) / stride_h + 1, q likewise with pad_w,
stride_w. Padding is never the largest; any of equal elements may be chosen. A NaN exceeds every number. Windows have
at most 256 elements; padding is less than the window.
With ceil_mode, p and q are rounded up if the last window begins in the image or in the padding before it.
counts_padding is not used (means).)"};

inline constexpr OpKind max_pool_backward_kind{"max_pool_backward", "dy index", "dx", defaults_of<Pool>, R"(
The gradient of max_pool_forward.
dy: [n, p, q, c]
index: u8 [n, p, q, c]
dx: [n, h, w, c]

dx = the sum of dy over the windows that chose this element. window_h, window_w, stride_h, stride_w, pad_h, pad_w and
ceil_mode are the forward's; counts_padding is not used (means).)"};

inline constexpr OpKind average_pool_forward_kind{"average_pool_forward", "x", "y", defaults_of<Pool>, R"(
The mean of each window, NHWC.
x: [n, h, w, c]
y: [n, p, q, c]

y = the sum of a window's elements, window_h x window_w, divided by their number; with counts_padding (PyTorch's
default, but not ONNX's) padding counts in the number. p = (h + 2 pad_h - window_h) / stride_h + 1, q likewise with
pad_w, stride_w; padding is less than the window. With ceil_mode, p and q are rounded up if the last window begins in
the image or in the padding before it; positions past the padding never count.)"};

inline constexpr OpKind average_pool_backward_kind{"average_pool_backward", "dy", "dx", defaults_of<Pool>, R"(
The gradient of average_pool_forward.
dy: [n, p, q, c]
dx: [n, h, w, c]

dx = the sum of dy / (the forward's divisor) over the windows that contain the element. window_h, window_w, stride_h,
stride_w, pad_h, pad_w, counts_padding and ceil_mode are the forward's.)"};

/// One axis: windows of `window` elements, `stride` apart, over `extent` elements with `pad` on both sides.
struct PoolAxis {
  std::int64_t extent = 0, window = 1, stride = 1, pad = 0;
  bool ceil_mode = false;

  struct Range {
    std::int64_t begin = 0, end = 0;
    [[nodiscard]] std::int64_t size() const { return end - begin; }
  };
  [[nodiscard]] std::int64_t outputs() const {
    const std::int64_t last = extent + 2 * pad - window;  // start of the last window that fits, from the padding's edge
    return (ceil_mode && last % stride != 0 && (last / stride + 1) * stride < extent + pad) ? last / stride + 2
                                                                                            : last / stride + 1;
  }
  /// The first element of window `p`; negative in the padding.
  [[nodiscard]] std::int64_t first(std::int64_t p) const { return p * stride - pad; }
  /// Input elements in window `p`; never empty.
  [[nodiscard]] Range elements(std::int64_t p) const {
    return {first(p) > 0 ? first(p) : 0, first(p) + window < extent ? first(p) + window : extent};
  }
  [[nodiscard]] std::int64_t padded_elements(std::int64_t p) const {
    return (first(p) + window < extent + pad ? first(p) + window : extent + pad) - first(p);
  }
  /// Windows that contain input element `h`.
  [[nodiscard]] Range windows(std::int64_t h) const {
    const std::int64_t past = h + pad - window;  // the last position whose window ends before h
    const std::int64_t last = (h + pad) / stride;
    return {past < 0 ? 0 : past / stride + 1, last < outputs() ? last + 1 : outputs()};
  }
};

struct PoolExtents {
  std::int64_t n = 0, c = 0;
  PoolAxis vertical, horizontal;
  [[nodiscard]] Shape input() const { return {n, vertical.extent, horizontal.extent, c}; }
  [[nodiscard]] Shape output() const { return {n, vertical.outputs(), horizontal.outputs(), c}; }
};
[[nodiscard]] PoolExtents pool_extents(OpKind kind, const Pool& attributes, const Shape& x);

struct MaxPoolForward {
  ValueId y, index;
};
/// Windows have at most 256 elements.
MaxPoolForward max_pool_forward(Program& program, const Pool& attributes, const Math& math, std::string label,
                                ValueId x);
/// `h`, `w`: extents of dx, which a stride leaves ambiguous.
ValueId max_pool_backward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId dy,
                          ValueId index, std::int64_t h, std::int64_t w);
ValueId average_pool_forward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId x);
ValueId average_pool_backward(Program& program, const Pool& attributes, const Math& math, std::string label, ValueId dy,
                              std::int64_t h, std::int64_t w);
/// The mean of each channel: a single window. y [n, 1, 1, c].
ValueId global_average_pool_forward(Program& program, const Math& math, std::string label, ValueId x);

}  // namespace gpubench
