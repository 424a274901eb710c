// The position of a value along an axis, and which values get a tick.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

/// What the data of an axis spans.
struct Extent {
  std::optional<double> low{};
  std::optional<double> high{};

  void include(double value);
};

/// Whether the axis can show the value at all: finite, and above zero where it is logarithmic.
[[nodiscard]] bool drawable(const Axis& axis, double value);

enum class Ends {
  data,  ///< the axis starts and ends with the data
  nice   ///< at the next round number outside of it
};

/// The stretch of values that an axis shows, as positions from 0 to 1.
class AxisScale {
 public:
  /// The axis's own low and high take precedence over the data's, unless they are not drawable or low is not below
  /// high. One value alone gets room on both sides: half of it, a factor of two on a logarithmic axis, 1 around zero.
  AxisScale(const Axis& axis, const Extent& data, Ends ends);

  [[nodiscard]] const Axis& axis() const { return axis_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// 0 at low, 1 at high, beyond them outside; linear in the value or in its logarithm.
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

/// From dense to sparse, the ticks that suit the scale: multiples of 1, 2 or 5 times a power of ten (of a power of two
/// where labels are bytes); powers of two; powers of ten, with 2 and 5 times them where they are few.
/// The first set of at most `most` ticks that `fits` accepts; if none, those of the last set that are at its ends.
[[nodiscard]] std::vector<Tick> ticks(const AxisScale& scale, int most,
                                      const std::function<bool(std::span<const Tick>)>& fits);

/// Ticks whose labels are side by side below an axis.
struct PlacedTick {
  Tick tick;
  double label_middle = 0.0;  ///< moved inwards where the label would leave the drawing
};

/// At most eight, fewer where the labels need the room; `at` gives the x position of a value.
[[nodiscard]] std::vector<PlacedTick> ticks_below(const AxisScale& scale, const std::function<double(double)>& at);

/// The labels of values on one axis (TickLabels). step: the distance of ticks on a linear axis, which says how many
/// decimals they need; 0: as many as they have.
[[nodiscard]] std::vector<std::string> tick_labels(const AxisScale& scale, std::span<const double> values, double step);

/// "title (unit)", or whichever of them is set; the unit carries the prefix that the labels leave out: "rate
/// (GFLOP/s)".
[[nodiscard]] std::string axis_title(const AxisScale& scale);

/// The largest number of the form 1, 2 or 5 times a power of ten (bytes: a power of two) that is at most `value`.
[[nodiscard]] double round_step(double value, TickLabels labels);

}  // namespace gpubench::chart
