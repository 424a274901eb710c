// Position and ticks of values along an axis.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

struct Extent {
  std::optional<double> low{};
  std::optional<double> high{};

  void include(double value);
};

/// False for values that are not finite, and for values up to zero on a logarithmic axis.
[[nodiscard]] bool drawable(const Axis& axis, double value);

enum class Ends { data, nice };

/// The range of an axis, mapped to positions from 0 to 1.
class AxisScale {
 public:
  /// `axis.low` and `axis.high` override the data unless they are not drawable or low is not below high. A single value
  /// gets room on both sides: half of it, a factor of two on a logarithmic axis, 1 around zero.
  AxisScale(const Axis& axis, const Extent& data, Ends ends);

  [[nodiscard]] const Axis& axis() const { return axis_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// 0 at low, 1 at high; linear in the value or its logarithm; not clamped.
  [[nodiscard]] double position(double value) const;
  [[nodiscard]] bool holds(double value) const;

 private:
  Axis axis_;
  double low_ = 0.0;
  double high_ = 1.0;
};

struct Tick {
  double value = 0.0;
  std::string label;
};

/// The first set of at most `most` ticks that `fits` accepts, from dense to sparse: multiples of 1, 2 or 5 times a
/// power of ten (bytes: of two); powers of two; powers of ten, with 2 and 5 times them if they are few. Else the two
/// ends of the last set.
[[nodiscard]] std::vector<Tick> ticks(const AxisScale& scale, int most,
                                      const std::function<bool(std::span<const Tick>)>& fits);

struct PlacedTick {
  Tick tick;
  double label_middle = 0.0;  ///< moved inwards to stay in the drawing
};

/// At most eight, fewer if labels would overlap. `at`: x of a value.
[[nodiscard]] std::vector<PlacedTick> ticks_below(const AxisScale& scale, const std::function<double(double)>& at);

/// The labels of values on one axis. `step`: the distance of ticks on a linear axis, which sets the decimals; 0: as
/// many as needed.
[[nodiscard]] std::vector<std::string> tick_labels(const AxisScale& scale, std::span<const double> values, double step);

/// "rate (GFLOP/s)": title and unit with the labels' common prefix, or one of them.
[[nodiscard]] std::string axis_title(const AxisScale& scale);

/// The largest 1, 2 or 5 times a power of ten (bytes: power of two) up to `value`.
[[nodiscard]] double round_step(double value, TickLabels labels);

}  // namespace gpubench::chart
