// Each element is the dot product of a patch of data and a line of the filter. Taps in the padding or between strides
// are not terms, so borders have tighter bounds than the interior.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "reference/ops/conv2d.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

struct AxisTap {
  std::int64_t stride, pad, dilation, extent;  // `extent`: of the axis that is read

  // The input position that output position `p` reads through tap `r`.
  [[nodiscard]] std::optional<std::int64_t> input(std::int64_t p, std::int64_t r) const {
    const std::int64_t at = p * stride - pad + r * dilation;
    return at >= 0 && at < extent ? std::optional(at) : std::nullopt;
  }
  // The output position that reads input `h` through tap `r`, if any.
  [[nodiscard]] std::optional<std::int64_t> output(std::int64_t h, std::int64_t r) const {
    const std::int64_t scaled = h + pad - r * dilation;
    if (scaled < 0 || scaled % stride != 0 || scaled / stride >= extent) return std::nullopt;
    return scaled / stride;
  }
};

// Along one axis: positions that the filter's middle tap joins, for products through that tap alone.
struct MiddleTap {
  std::int64_t tap, first, count;  // `first`, `count`: output positions that read inside the image
  std::int64_t image;              // image position that `first` reads
  std::int64_t apart;              // distance of output positions whose filters do not overlap

  MiddleTap(std::int64_t taps, std::int64_t stride, std::int64_t pad, std::int64_t dilation, std::int64_t image_extent,
            std::int64_t output_extent)
      : tap((taps - 1) / 2), apart((taps - 1) * dilation / stride + 1) {
    const std::int64_t before = pad - tap * dilation;  // position 0 reads at -before
    first = before > 0 ? (before + stride - 1) / stride : 0;
    const std::int64_t last = image_extent - 1 + before < 0 ? -1 : (image_extent - 1 + before) / stride;
    count = std::max<std::int64_t>(0, std::min(last, output_extent - 1) - first + 1);
    image = first * stride - before;
  }
};

// All positions that the middle taps join, in the image [n, h, w, c] and the output [n, p, q, k]; or only
// non-overlapping ones, as even zero times NaN is NaN.
struct MiddleTaps {
  MiddleTap vertical, horizontal;
  Offsets image, output;

  MiddleTaps(const Conv2d& conv, const Conv2dExtents& e, bool apart)
      : vertical(e.r, conv.stride_h, conv.pad_h, conv.dilation_h, e.h, e.p),
        horizontal(e.s, conv.stride_w, conv.pad_w, conv.dilation_w, e.w, e.q) {
    const MiddleTap& v = vertical;
    const MiddleTap& h = horizontal;
    const std::int64_t down = apart ? v.apart : 1, across = apart ? h.apart : 1;
    const std::int64_t rows = (v.count + down - 1) / down, columns = (h.count + across - 1) / across;
    image = Offsets(
        {{e.n, e.h * e.w * e.c}, {rows, down * conv.stride_h * e.w * e.c}, {columns, across * conv.stride_w * e.c}},
        (v.image * e.w + h.image) * e.c);
    output = Offsets({{e.n, e.p * e.q * e.k}, {rows, down * e.q * e.k}, {columns, across * e.k}},
                     (v.first * e.q + h.first) * e.k);
  }
  [[nodiscard]] std::int64_t in_filter(const Conv2dExtents& e, std::int64_t channels) const {
    return (vertical.tap * e.s + horizontal.tap) * channels;
  }
};

Cost cost_of_conv(const CallSpecs& op, const Shape& x, const Shape& filter) {
  const Conv2d& conv = op.call.attributes.as<Conv2d>();
  const Conv2dExtents e = extents_of(conv, x, filter);
  const double positions = static_cast<double>(e.n) * static_cast<double>(e.p) * static_cast<double>(e.q);
  const double products =
      static_cast<double>(e.k) * static_cast<double>(e.r * e.s) * static_cast<double>(e.c / conv.groups);
  return {2.0 * positions * products, op.bytes()};
}

// Filter lines [taps and contracted channels], one per output channel, cached if they fit.
class FilterLines {
 public:
  FilterLines(std::int64_t count, std::int64_t length)
      : keep_(count * length <= largest_kept), length_(static_cast<std::size_t>(length)) {
    lines_.resize(keep_ ? static_cast<std::size_t>(count) : 1);
  }

  template <class Decode>
  std::span<const double> line(std::int64_t channel, Decode decode) {
    std::vector<double>& line = lines_[keep_ ? static_cast<std::size_t>(channel) : 0];
    if (line.empty() || (!keep_ && current_ != channel)) {
      line.resize(length_);
      decode(std::span(line));
      current_ = channel;
    }
    return line;
  }

 private:
  static constexpr std::int64_t largest_kept = std::int64_t{1} << 22;  // 32 MiB of fp64
  bool keep_;
  std::size_t length_;
  std::int64_t current_ = -1;
  std::vector<std::vector<double>> lines_;
};

// The inputs of one output position, tap by tap, `channels` each; zero where a tap reads nothing.
struct Patch {
  std::int64_t position = -1;  // linear, with the group
  std::vector<double> values;
  double terms = 0.0;

  template <class Locate>
  void read(const TensorView& data, std::int64_t image, const Conv2dExtents& e, std::int64_t first,
            std::int64_t channels, Locate locate) {
    values.assign(static_cast<std::size_t>(e.r * e.s * channels), 0.0);
    terms = 0.0;
    for (std::int64_t r = 0; r < e.r; ++r) {
      for (std::int64_t s = 0; s < e.s; ++s) {
        const auto [row, column] = locate(r, s);
        if (!row || !column) continue;
        const auto at = static_cast<std::size_t>((r * e.s + s) * channels);
        data.read({image, *row, *column, first}, 3, std::span(values).subspan(at, static_cast<std::size_t>(channels)));
        terms += static_cast<double>(channels);
      }
    }
  }
};

std::string conv_bound(const CallSpecs& op, std::int64_t max_terms) {
  return bound_text("Rule G: " + contraction_rule(op).formula("K") + ", K <= " + std::to_string(max_terms),
                    op.call.math);
}

// Forward and backward_data contract a patch of a [n, h, w, channels] tensor with filter lines.
template <bool forward>
class ImageDefinition final : public DefinitionOf<(forward ? conv2d_forward_kind : conv2d_backward_data_kind)> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return cost_of_conv(op, (forward ? op.inputs[0] : op.outputs[0]).shape, op.input("filter").shape);
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    const Conv2d& conv = op.call.attributes.as<Conv2d>();
    const Shape& filter = op.input("filter").shape;
    const Shape& out = op.outputs[0].shape;
    const std::int64_t contracted = forward ? filter[3] : filter[0] / conv.groups;
    return {out.elements(), 1, 4.0 * static_cast<double>(filter[1] * filter[2] * contracted),
            image_landmarks(out, forward ? 1 : conv.stride_h, forward ? 1 : conv.stride_w)};
  }

  std::string bound(const CallSpecs& op, int) const override {
    const Geometry g(op.call.attributes.as<Conv2d>(), op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape);
    return conv_bound(op, g.extents.r * g.extents.s * g.contracted);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Conv2d& conv = operands.call.attributes.as<Conv2d>();
    const Shape& out = operands.outputs[0].shape;
    const Geometry g(conv, operands.inputs[0].shape(), operands.inputs[1].shape(), out);
    const ContractionRule rule = contraction_rule(operands);
    FilterLines lines(out[3], g.extents.r * g.extents.s * g.contracted);
    Patch patch;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t channel = wanted[i] % out[3];
      const std::int64_t group = channel / g.produced;
      const std::int64_t position = wanted[i] / out[3];
      if (position * conv.groups + group != patch.position) {
        patch.position = position * conv.groups + group;
        read_patch(patch, operands.inputs[0], g, position, out, group);
      }
      ProductSum sum = dot(patch.values, lines.line(channel, [&](std::span<double> line) {
        read_line(operands.inputs[1], g, group, channel, line);
      }));
      sum.terms = patch.terms;
      judged[i] = {sum.value, rule.bound(sum)};
    }
  }

  // Channels if there is a single group, else images.
  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int) const override {
    if (op.call.attributes.as<Conv2d>().groups != 1) return {{0, {{0, 0}}}};
    return {{3, {{1, forward ? 0 : 3}}}};
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    const Shape& filter = op.input("filter").shape;
    return Contraction{.a_axis = 3,
                       .b_axis = forward ? 3 : 0,
                       .extent = forward ? filter[3] : filter[0] / op.call.attributes.as<Conv2d>().groups,
                       .repeats = filter[1] * filter[2]};
  }

  // Over the channels of the first group, at non-overlapping positions.
  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const Conv2d& conv = op.call.attributes.as<Conv2d>();
    const Geometry g(conv, op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape);
    const Conv2dExtents& e = g.extents;
    const MiddleTaps taps(conv, e, true);
    const std::int64_t channels = e.c / conv.groups, line = e.r * e.s * channels;
    OpProduct product;
    product.a_rows = forward ? taps.image : taps.output;
    product.rows = forward ? taps.output : taps.image;
    product.a_k = Offsets({{g.contracted, 1}});
    product.columns = Offsets({{g.produced, 1}});
    product.b_k = Offsets({{g.contracted, forward ? 1 : line}}, taps.in_filter(e, channels));
    product.b_columns = Offsets({{g.produced, forward ? line : 1}});
    return product.m() > 0 ? std::optional(product) : std::nullopt;
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    if (!forward) return OpDefinition::derivative(program, call, tape);
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy) return;
    const Conv2d& conv = call.attributes.as<Conv2d>();
    const ValueId x = call.input("x"), filter = call.input("filter");
    const Conv2dExtents e = extents_of(conv, program.spec(x).shape, program.spec(filter).shape);
    if (tape.wanted(x)) {
      tape.contribute(x, conv2d_backward_data(program, conv, call.math, tape.label(call, "dx"), *dy, filter, e.h, e.w));
    }
    if (tape.wanted(filter)) {
      tape.contribute(filter,
                      conv2d_backward_filter(program, conv, call.math, tape.label(call, "dfilter"), x, *dy, e.r, e.s));
    }
  }

 private:
  struct Geometry {
    Conv2dExtents extents;
    AxisTap vertical, horizontal;
    std::int64_t contracted, produced;

    Geometry(const Conv2d& conv, const Shape& data, const Shape& filter, const Shape& out)
        : extents(extents_of(conv, forward ? data : out, filter)),
          vertical{conv.stride_h, conv.pad_h, conv.dilation_h, forward ? extents.h : extents.p},
          horizontal{conv.stride_w, conv.pad_w, conv.dilation_w, forward ? extents.w : extents.q},
          contracted((forward ? extents.c : extents.k) / conv.groups),
          produced((forward ? extents.k : extents.c) / conv.groups) {}
  };

  static void read_patch(Patch& patch, const TensorView& data, const Geometry& g, std::int64_t position,
                         const Shape& out, std::int64_t group) {
    const std::int64_t row = position / out[2] % out[1];
    const std::int64_t column = position % out[2];
    patch.read(data, position / (out[1] * out[2]), g.extents, group * g.contracted, g.contracted,
               [&](std::int64_t r, std::int64_t s) {
                 return forward ? std::pair(g.vertical.input(row, r), g.horizontal.input(column, s))
                                : std::pair(g.vertical.output(row, r), g.horizontal.output(column, s));
               });
  }

  static void read_line(const TensorView& filter, const Geometry& g, std::int64_t group, std::int64_t channel,
                        std::span<double> line) {
    if (forward) return filter.read(channel * static_cast<std::int64_t>(line.size()), line);
    const auto width = static_cast<std::size_t>(g.contracted);
    for (std::int64_t r = 0; r < g.extents.r; ++r) {
      for (std::int64_t s = 0; s < g.extents.s; ++s) {
        const std::size_t at = static_cast<std::size_t>(r * g.extents.s + s) * width;
        filter.read({group * g.contracted, r, s, channel % g.produced}, 0, line.subspan(at, width));
      }
    }
  }
};

class Conv2dBackwardFilterDefinition final : public DefinitionOf<conv2d_backward_filter_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return cost_of_conv(op, op.input("x").shape, op.outputs[0].shape); }

  CheckUnits units(const CallSpecs& op, int) const override {
    const Shape& dy = op.input("dy").shape;
    const Shape& filter = op.outputs[0].shape;
    std::set<std::int64_t> landmarks;
    for (const std::int64_t tap : {std::int64_t{0}, filter[1] * filter[2] / 2, filter[1] * filter[2] - 1}) {
      landmarks.insert(tap * filter[3]);
      landmarks.insert(((filter[0] - 1) * filter[1] * filter[2] + tap) * filter[3] + filter[3] - 1);
    }
    const double terms = static_cast<double>(dy[0] * dy[1] * dy[2]);
    return {filter.elements(), 1, (4.0 + 2.0 * strided_read_flop) * terms, {landmarks.begin(), landmarks.end()}};
  }

  std::string bound(const CallSpecs& op, int) const override {
    const Shape& dy = op.input("dy").shape;
    return conv_bound(op, dy[0] * dy[1] * dy[2]);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Shape& filter = operands.outputs[0].shape;
    const ContractionRule rule = contraction_rule(operands);
    std::vector<ProductSum> sums(wanted.size());
    // Neighbouring input channels of a tap share all gradients.
    for (std::size_t first = 0, last = 0; first < wanted.size(); first = last) {
      const std::int64_t tap = wanted[first] / filter[3];
      while (last < wanted.size() && wanted[last] / filter[3] == tap &&
             wanted[last] - wanted[first] == static_cast<std::int64_t>(last - first)) {
        ++last;
      }
      sum_tap(operands, tap, wanted[first] % filter[3], std::span(sums).subspan(first, last - first));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) judged[i] = {sums[i].value, rule.bound(sums[i])};
  }

  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int) const override {
    if (op.call.attributes.as<Conv2d>().groups != 1) return {};
    return {{0, {{1, 3}}}, {3, {{0, 3}}}};
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    const Shape& dy = op.input("dy").shape;
    return Contraction{.extent = dy[0], .repeats = dy[1] * dy[2]};
  }

  // Over all positions, for the middle tap in the first group.
  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const Conv2d& conv = op.call.attributes.as<Conv2d>();
    const Conv2dExtents e = extents_of(conv, op.input("x").shape, op.outputs[0].shape);
    const MiddleTaps taps(conv, e, false);
    const std::int64_t channels = e.c / conv.groups, filters = e.k / conv.groups;
    OpProduct product;
    product.a = 1;
    product.b = 0;
    product.a_rows = Offsets({{filters, 1}});
    product.a_k = taps.output;
    product.b_k = taps.image;
    product.b_columns = Offsets({{channels, 1}});
    product.rows = Offsets({{filters, e.r * e.s * channels}}, taps.in_filter(e, channels));
    product.columns = Offsets({{channels, 1}});
    return product.k() > 0 ? std::optional(product) : std::nullopt;
  }

 private:
  // dfilter[k, r, s, channel ...] for consecutive channels; `tap` is the linear index of (k, r, s).
  static void sum_tap(const Operands& operands, std::int64_t tap, std::int64_t channel, std::span<ProductSum> sums) {
    const Conv2d& conv = operands.call.attributes.as<Conv2d>();
    const TensorView& x = operands.input("x");
    const TensorView& dy = operands.input("dy");
    const Conv2dExtents e = extents_of(conv, x.shape(), operands.outputs[0].shape);
    const std::int64_t k = tap / (e.r * e.s);
    const std::int64_t r = tap / e.s % e.r;
    const std::int64_t s = tap % e.s;
    const std::int64_t first = k / (e.k / conv.groups) * (e.c / conv.groups) + channel;
    const AxisTap vertical{conv.stride_h, conv.pad_h, conv.dilation_h, e.h};
    const AxisTap horizontal{conv.stride_w, conv.pad_w, conv.dilation_w, e.w};
    std::vector<double> gradients(static_cast<std::size_t>(e.q));
    // Few channels (a sample) are read along the row, many (a full check) position by position.
    const bool along_row = sums.size() < 8;
    std::vector<double> values(along_row ? static_cast<std::size_t>(e.w) : sums.size());
    for (std::int64_t n = 0; n < e.n; ++n) {
      for (std::int64_t p = 0; p < e.p; ++p) {
        const auto h = vertical.input(p, r);
        if (!h) continue;
        dy.read({n, p, 0, k}, 2, gradients);
        for (std::size_t c = 0; along_row && c < sums.size(); ++c) {
          x.read({n, *h, 0, first + static_cast<std::int64_t>(c)}, 2, values);
          for (std::int64_t q = 0; q < e.q; ++q) {
            const auto w = horizontal.input(q, s);
            if (w) sums[c].add(values[static_cast<std::size_t>(*w)] * gradients[static_cast<std::size_t>(q)]);
          }
        }
        for (std::int64_t q = 0; !along_row && q < e.q; ++q) {
          const auto w = horizontal.input(q, s);
          if (!w) continue;
          x.read({n, *h, *w, first}, 3, values);
          const double gradient = gradients[static_cast<std::size_t>(q)];
          for (std::size_t c = 0; c < sums.size(); ++c) sums[c].add(values[c] * gradient);
        }
      }
    }
  }
};

}  // namespace

Definitions conv2d_definitions() {
  return definitions_of<ImageDefinition<false>, Conv2dBackwardFilterDefinition, ImageDefinition<true>>();
}

}  // namespace gpubench
