// Two-dimensional convolution (cross-correlation, as deep learning means it), NHWC, and its two gradients.
// Dumoulin and Visin, arXiv 1603.07285.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct Conv2d {
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  static void visit(auto&& attribute) {
    attribute("stride_h", &Conv2d::stride_h);
    attribute("stride_w", &Conv2d::stride_w);
    attribute("pad_h", &Conv2d::pad_h);
    attribute("pad_w", &Conv2d::pad_w);
    attribute("dilation_h", &Conv2d::dilation_h);
    attribute("dilation_w", &Conv2d::dilation_w);
    attribute("groups", &Conv2d::groups);
  }
};

inline constexpr OpKind conv2d_forward_kind{"conv2d_forward", "x filter", "y", defaults_of<Conv2d>, R"(
Two-dimensional convolution (cross-correlation, as deep learning means it), NHWC.
x: [n, h, w, c]
filter: [k, r, s, c / groups]
y: [n, p, q, k]

p = (h + 2 pad_h - dilation_h (r - 1) - 1) / stride_h + 1, q likewise with pad_w, dilation_w, stride_w
y[n, p, q, k] = sum over r, s, c of x[n, p stride_h - pad_h + r dilation_h, ...] filter[k, r, s, c]
over the channels c of k's group; x is 0 outside.

Source: Dumoulin and Visin, arXiv 1603.07285)"};

inline constexpr OpKind conv2d_backward_data_kind{"conv2d_backward_data", "dy filter", "dx", defaults_of<Conv2d>, R"(
The gradient of conv2d_forward's x.
dy: [n, p, q, k]
filter: [k, r, s, c / groups]
dx: [n, h, w, c]

dx[n, h, w, c] = sum over all k, r, s and those p, q with h = p stride_h - pad_h + r dilation_h (w likewise with
stride_w, pad_w, dilation_w) of dy[n, p, q, k] filter[k, r, s, c])"};

inline constexpr OpKind conv2d_backward_filter_kind{"conv2d_backward_filter", "x dy", "dfilter", defaults_of<Conv2d>,
                                                    R"(
The gradient of conv2d_forward's filter.
x: [n, h, w, c]
dy: [n, p, q, k]
dfilter: [k, r, s, c / groups]

dfilter[k, r, s, c] = sum over n, p, q of dy[n, p, q, k] x[n, p stride_h - pad_h + r dilation_h, ...] (the column
likewise with stride_w, pad_w, dilation_w))"};

struct Conv2dExtents {
  std::int64_t n = 0, h = 0, w = 0, c = 0, k = 0, r = 0, s = 0, p = 0, q = 0;
};
/// Throws ProgramError naming what does not fit (channels and groups, a filter larger than the padded input).
[[nodiscard]] Conv2dExtents extents_of(const Conv2d& attributes, const Shape& x, const Shape& filter);

ValueId conv2d_forward(Program& program, const Conv2d& attributes, const Math& math, std::string label, ValueId x,
                       ValueId filter);
/// `h`, `w`: extents of dx, which a stride leaves ambiguous.
ValueId conv2d_backward_data(Program& program, const Conv2d& attributes, const Math& math, std::string label,
                             ValueId dy, ValueId filter, std::int64_t h, std::int64_t w);
/// `r`, `s`: extents of the filter.
ValueId conv2d_backward_filter(Program& program, const Conv2d& attributes, const Math& math, std::string label,
                               ValueId x, ValueId dy, std::int64_t r, std::int64_t s);

}  // namespace gpubench
