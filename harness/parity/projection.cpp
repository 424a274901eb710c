#include "harness/parity/projection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "harness/core/hash.h"
#include "harness/parity/rounding.h"

namespace gpubench {
namespace {

constexpr double chance_of_an_alarm = 1e-12;  // for all sums of an output
constexpr std::int64_t narrowest_group = 16;  // elements in a sum
constexpr std::int64_t elements_at_once = 65536;

/// A tensor's axes, folded: `outer` times [extent, inner], and the groups that the axis is cut into.
struct Folded {
  std::int64_t outer = 1, extent = 1, inner = 1, groups = 1;

  Folded(const Shape& shape, int axis, std::int64_t cut_into) : extent(shape[axis]), groups(cut_into) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  }
  [[nodiscard]] std::int64_t group_of(std::int64_t at) const { return at * groups / extent; }
  /// The first element of a group along the axis.
  [[nodiscard]] std::int64_t first_of(std::int64_t group) const { return (group * extent + groups - 1) / groups; }
  [[nodiscard]] std::int64_t sums() const { return outer * groups * inner; }
};

double sign_of(std::uint64_t key, std::int64_t at) {
  return (mix(key ^ static_cast<std::uint64_t>(at)) & 1U) != 0 ? 1.0 : -1.0;
}

/// Calls add(sum, element along the axis, value) for every element; two threads never have the same sum.
template <class Add>
void for_each_element(const TensorView& view, const Folded& folded, const Parallel& parallel, const Add& add) {
  const std::int64_t row = folded.extent * folded.inner;
  // By outer index, or where there are few of these by the inner one.
  const std::int64_t rows = std::max<std::int64_t>(1, elements_at_once / std::max<std::int64_t>(row, 1));
  const std::int64_t across = folded.outer == 1 && folded.inner > 1
                                  ? std::min<std::int64_t>(folded.inner, std::max<std::int64_t>(64, folded.inner / 16))
                                  : std::max<std::int64_t>(folded.inner, 1);
  const std::int64_t chunks = (folded.outer + rows - 1) / rows, strips = (folded.inner + across - 1) / across;
  const auto work = [&](std::int64_t part) {
    const std::int64_t first = part / strips * rows, last = std::min(folded.outer, first + rows);
    const std::int64_t left = part % strips * across, width = std::min(across, folded.inner - left);
    const bool whole = width == folded.inner;  // then a row's elements follow each other
    std::vector<std::int64_t> firsts;
    for (std::int64_t o = first; o < last; ++o) {
      for (std::int64_t at = 0; at < (whole ? 1 : folded.extent); ++at)
        firsts.push_back(o * row + at * folded.inner + left);
    }
    const std::int64_t run = whole ? row : width;
    std::vector<double> values(firsts.size() * static_cast<std::size_t>(run));
    view.gather(firsts, run, values);
    std::size_t next = 0;
    for (std::int64_t o = first; o < last; ++o) {
      for (std::int64_t at = 0; at < folded.extent; ++at) {
        const std::int64_t sum = (o * folded.groups + folded.group_of(at)) * folded.inner + left;
        for (std::int64_t i = 0; i < width; ++i) add(sum + i, at, values[next++]);
      }
    }
  };
  const auto flop = static_cast<double>(view.shape().elements());
  if (view.is_on_device()) {  // which is asked by one thread
    for (std::int64_t part = 0; part < chunks * strips; ++part) work(part);
  } else {
    parallel(chunks * strips, flop, work);
  }
}

TensorSpec reduced(const TensorSpec& spec, int axis, std::int64_t groups, DType type) {
  std::vector<std::int64_t> extents;
  for (int i = 0; i < spec.shape.rank(); ++i) extents.push_back(i == axis ? groups : spec.shape[i]);
  return tensor(spec.name, type, Shape(extents), spec.role);
}

/// An operand whose elements along an axis were added up in groups.
struct Reduced {
  TensorSpec spec;
  std::vector<double> sums;
};

Reduced reduce(const TensorView& view, int axis, std::int64_t groups, std::uint64_t key, const Parallel& parallel) {
  const Folded folded(view.shape(), axis, groups);
  Reduced result{reduced(view.spec(), axis, groups, DType::f64), {}};
  result.sums.resize(static_cast<std::size_t>(folded.sums()));
  for_each_element(view, folded, parallel, [&](std::int64_t sum, std::int64_t at, double value) {
    result.sums[static_cast<std::size_t>(sum)] += sign_of(key, at) * value;
  });
  return result;
}

class Projector {
 public:
  Projector(const Operands& operands, const TensorView& output, int index, const LinearAxis& linear,
            std::int64_t groups, std::uint64_t key, const Parallel& parallel)
      : operands_(operands), output_(output), linear_(linear), groups_(groups), key_(key), parallel_(parallel) {
    for (const TensorSpec& spec : operands.outputs)
      output_specs_.push_back(reduced(spec, linear.output_axis, groups, spec.dtype));
    evaluate(index);
    add_up();
  }

  ProjectionResult result(std::span<const CheckedElement> judged, std::int64_t most_suspects) const {
    const Folded folded(output_.shape(), linear_.output_axis, groups_);
    const double t = std::sqrt(2.0 * std::log(2.0 * static_cast<double>(folded.sums()) / chance_of_an_alarm));
    const double ratio = bound_ratio(folded, judged);
    ProjectionResult result;
    double widest = 0.0;
    std::vector<std::pair<double, std::int64_t>> off;
    for (std::int64_t sum = 0; sum < folded.sums(); ++sum) {
      const auto at = static_cast<std::size_t>(sum);
      const double limit = t * std::sqrt(squares_[at]) * (1.0 + ratio);
      if (std::isfinite(limit)) widest = std::max(widest, limit);
      const double error = std::fabs(sums_[at] - expected_[at].value);
      if (error <= limit) continue;  // NaN is off
      off.emplace_back(limit > 0.0 && error == error ? error / limit : std::numeric_limits<double>::infinity(), sum);
    }
    // The other errors may make up for half of it.
    if (rms_ > 0.0 && std::isfinite(rms_)) result.smallest_fault = 2.0 * widest / rms_;
    std::stable_sort(off.begin(), off.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& one : off) {
      const std::vector<std::int64_t> sum = elements_of(folded, one.second);
      const auto named = static_cast<std::int64_t>(result.suspects.size() + sum.size());
      if (!result.suspects.empty() && named > most_suspects) break;
      result.suspects.insert(result.suspects.end(), sum.begin(), sum.end());
    }
    std::sort(result.suspects.begin(), result.suspects.end());
    return result;
  }

 private:
  void evaluate(int index) {
    std::vector<Reduced> held;
    held.reserve(linear_.operands.size());
    std::vector<TensorView> inputs(operands_.inputs.begin(), operands_.inputs.end());
    for (const auto& [input, axis] : linear_.operands) {
      held.push_back(reduce(inputs[input], axis, groups_, key_, parallel_));
      inputs[input] =
          TensorView(held.back().spec, reinterpret_cast<const std::byte*>(held.back().sums.data()));  // NOLINT
    }
    const OpDefinition& op = definition(operands_.call.kind);
    std::vector<TensorSpec> specs;
    for (const TensorView& input : inputs) specs.push_back(input.spec());
    const CheckUnits units = op.units({operands_.call, specs, output_specs_}, index);
    expected_.resize(static_cast<std::size_t>(units.count * units.elements));
    const std::int64_t per_part = std::max<std::int64_t>(1, units.count / 64);
    const std::int64_t parts = (units.count + per_part - 1) / per_part;
    parallel_(parts, static_cast<double>(units.count) * units.flop_per_unit, [&](std::int64_t part) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t unit = part * per_part; unit < std::min(units.count, (part + 1) * per_part); ++unit)
        wanted.push_back(unit);
      op.evaluate({operands_.call, inputs, output_specs_}, index, wanted,
                  std::span(expected_).subspan(static_cast<std::size_t>(part * per_part * units.elements),
                                               wanted.size() * static_cast<std::size_t>(units.elements)));
    });
  }

  void add_up() {
    const Folded folded(output_.shape(), linear_.output_axis, groups_);
    sums_.resize(static_cast<std::size_t>(folded.sums()));
    squares_.resize(sums_.size());
    const HalfUlp half(output_.dtype());
    std::vector<double> magnitudes(sums_.size());
    for_each_element(output_, folded, parallel_, [&](std::int64_t sum, std::int64_t at, double value) {
      const double h = half(value);
      sums_[static_cast<std::size_t>(sum)] += sign_of(key_, at) * value;
      squares_[static_cast<std::size_t>(sum)] += h * h;
      magnitudes[static_cast<std::size_t>(sum)] += value * value;
    });
    rms_ = std::sqrt(std::accumulate(magnitudes.begin(), magnitudes.end(), 0.0) /
                     static_cast<double>(output_.shape().elements()));
  }

  // The largest of T / (root mean square of h), over the judged elements.
  double bound_ratio(const Folded& folded, std::span<const CheckedElement> judged) const {
    double ratio = 0.0;
    for (const CheckedElement& element : judged) {
      const std::int64_t at = element.linear / folded.inner % folded.extent, group = folded.group_of(at);
      const std::int64_t outer = element.linear / folded.inner / folded.extent;
      const auto sum =
          static_cast<std::size_t>((outer * groups_ + group) * folded.inner + element.linear % folded.inner);
      const auto members = static_cast<double>(folded.first_of(group + 1) - folded.first_of(group));
      const double mean = std::sqrt(squares_[sum] / members);
      if (mean > 0.0 && std::isfinite(element.judged.bound)) ratio = std::max(ratio, element.judged.bound / mean);
    }
    return ratio;
  }

  static std::vector<std::int64_t> elements_of(const Folded& folded, std::int64_t sum) {
    const std::int64_t inner = sum % folded.inner, group = sum / folded.inner % folded.groups;
    const std::int64_t outer = sum / folded.inner / folded.groups;
    std::vector<std::int64_t> elements;
    for (std::int64_t at = folded.first_of(group); at < folded.first_of(group + 1); ++at)
      elements.push_back((outer * folded.extent + at) * folded.inner + inner);
    return elements;
  }

  const Operands& operands_;
  const TensorView& output_;
  const LinearAxis& linear_;
  std::int64_t groups_;
  std::uint64_t key_;
  const Parallel& parallel_;
  std::vector<TensorSpec> output_specs_;
  std::vector<Expected> expected_;
  std::vector<double> sums_, squares_;  // of the output with signs; of half the distances between numbers
  double rms_ = 0.0;                    // of the output
};

}  // namespace

std::optional<ProjectionResult> project(const Operands& operands, const TensorView& output, int index,
                                        std::span<const CheckedElement> judged, std::int64_t most_suspects,
                                        double flop_budget, std::uint64_t key, const Parallel& parallel) {
  if (output.dtype() == DType::f64 || output.shape().elements() == 0) return std::nullopt;
  std::vector<TensorSpec> inputs;
  for (const TensorView& input : operands.inputs) inputs.push_back(input.spec());
  const OpDefinition& op = definition(operands.call.kind);
  const CallSpecs specs{operands.call, inputs, operands.outputs};
  const std::optional<LinearAxis> linear = op.linear_axis(specs, index);
  if (!linear) return std::nullopt;

  const std::int64_t extent = output.shape()[linear->output_axis];
  double reading = static_cast<double>(output.shape().elements());
  for (const auto& operand : linear->operands) reading += static_cast<double>(inputs[operand.first].shape.elements());
  const CheckUnits units = op.units(specs, index);
  const double of_a_group =
      static_cast<double>(units.count * units.elements) / static_cast<double>(extent) * units.flop_per_unit;
  const double affordable = (flop_budget - reading) / std::max(of_a_group, 1.0);
  const std::int64_t most = std::max<std::int64_t>(1, extent / narrowest_group);
  if (!(affordable >= 1.0) || extent < 2 * narrowest_group) return std::nullopt;
  const std::int64_t groups = affordable < static_cast<double>(most) ? static_cast<std::int64_t>(affordable) : most;
  return Projector(operands, output, index, *linear, groups, key, parallel).result(judged, most_suspects);
}

}  // namespace gpubench
