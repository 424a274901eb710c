#include "harness/parity/projection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <list>
#include <mutex>
#include <numeric>
#include <utility>

#include "harness/core/hash.h"
#include "harness/parity/rounding.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {
namespace {

constexpr double chance_of_an_alarm = 1e-12;  // false alarms, for all sums of an output
constexpr std::int64_t narrowest_group = 16;  // elements in a sum
constexpr std::int64_t elements_at_once = 65536;
constexpr double max_factors = 512.0;  // 1 to 1023
// The minimum for making and reading an element of exact data, in fp64 operations.
constexpr double making_flop = 16.0;

/// A tensor's axes, folded to `outer` x [extent, inner]; the axis is cut into `groups`.
struct Folded {
  std::int64_t outer = 1, extent = 1, inner = 1, groups = 1;

  Folded(const Shape& shape, int axis, std::int64_t cut_into) : extent(shape[axis]), groups(cut_into) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  }
  [[nodiscard]] std::int64_t group_of(std::int64_t at) const { return at * groups / extent; }
  [[nodiscard]] std::int64_t first_of(std::int64_t group) const { return (group * extent + groups - 1) / groups; }
  [[nodiscard]] std::int64_t sums() const { return outer * groups * inner; }
  /// The sum of an element, and its place along the axis.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> place_of(std::int64_t linear) const {
    const std::int64_t at = linear / inner % extent;
    return {(linear / inner / extent * groups + group_of(at)) * inner + linear % inner, at};
  }
  [[nodiscard]] std::int64_t element(std::int64_t sum, std::int64_t at) const {
    return (sum / inner / groups * extent + at) * inner + sum % inner;
  }
};

/// Factors along an axis: `numbers` odd whole numbers 1, 3, ... with random signs.
std::vector<double> random_factors(std::int64_t extent, std::uint64_t numbers, std::uint64_t key) {
  std::vector<double> factors(static_cast<std::size_t>(extent));
  for (std::size_t place = 0; place < factors.size(); ++place) {
    const std::uint64_t drawn = mix(key ^ place);
    const auto size = static_cast<double>(2 * ((drawn >> 1U) % numbers) + 1);
    factors[place] = (drawn & 1U) != 0 ? size : -size;
  }
  return factors;
}

/// Calls add(sum, element along the axis, value) for every element; two threads never have the same sum.
template <class Add>
void for_each_element(const TensorView& view, const Folded& folded, const Parallel& parallel, const Add& add) {
  const std::int64_t row = folded.extent * folded.inner;
  // By outer index, or by the inner one where there are few outer ones.
  const std::int64_t rows = std::max<std::int64_t>(1, elements_at_once / std::max<std::int64_t>(row, 1));
  const std::int64_t across = folded.outer == 1 && folded.inner > 1
                                  ? std::min<std::int64_t>(folded.inner, std::max<std::int64_t>(64, folded.inner / 16))
                                  : std::max<std::int64_t>(folded.inner, 1);
  const std::int64_t chunks = (folded.outer + rows - 1) / rows, strips = (folded.inner + across - 1) / across;
  const auto work = [&](std::int64_t part) {
    const std::int64_t first = part / strips * rows, last = std::min(folded.outer, first + rows);
    const std::int64_t left = part % strips * across, width = std::min(across, folded.inner - left);
    const bool whole = width == folded.inner;  // a row's elements are contiguous
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
  if (view.is_on_device()) {  // only one thread reads a device
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

struct Reduced {
  TensorSpec spec;
  std::vector<double> sums;
};

Reduced reduce(const TensorView& view, int axis, std::int64_t groups, std::span<const double> factors,
               const Parallel& parallel) {
  const Folded folded(view.shape(), axis, groups);
  Reduced result{reduced(view.spec(), axis, groups, DType::f64), {}};
  result.sums.resize(static_cast<std::size_t>(folded.sums()));
  for_each_element(view, folded, parallel, [&](std::int64_t sum, std::int64_t at, double value) {
    result.sums[static_cast<std::size_t>(sum)] += factors[static_cast<std::size_t>(at)] * value;
  });
  return result;
}

class Projector {
 public:
  /// Adds up along all of the axes, in `groups` parts of the first, with factors of `numbers` sizes.
  Projector(const Operands& operands, const TensorView& output, int index, std::span<const LinearAxis> axes,
            std::int64_t groups, std::uint64_t numbers, std::uint64_t key, double multiple_of, const Parallel& parallel)
      : operands_(operands),
        output_(output),
        axes_(axes),
        multiple_of_(multiple_of),
        parallel_(parallel),
        output_specs_(operands.outputs.begin(), operands.outputs.end()) {
    Shape shape = output.shape();
    for (const LinearAxis& axis : axes) {
      const std::int64_t cut_into = folds_.empty() ? groups : 1;
      factors_.push_back(random_factors(shape[axis.output_axis], numbers, hash_at(key, folds_.size())));
      folds_.emplace_back(shape, axis.output_axis, cut_into);
      for (TensorSpec& spec : output_specs_) spec = reduced(spec, axis.output_axis, cut_into, spec.dtype);
      shape = output_specs_.front().shape;
    }
    evaluate(index);
    add_up();
  }

  ProjectionResult result(std::span<const CheckedElement> judged, std::int64_t max_suspects) const {
    const double t = std::sqrt(2.0 * std::log(2.0 * static_cast<double>(sums_.size()) / chance_of_an_alarm));
    const double ratio = bound_ratio(judged);
    ProjectionResult result;
    double widest = 0.0;
    std::vector<std::pair<double, std::int64_t>> off;
    for (std::size_t at = 0; at < sums_.size(); ++at) {
      const double limit = multiple_of_ > 0.0 ? 0.0 : t * std::sqrt(squares_[at]) * (1.0 + ratio);
      if (std::isfinite(limit)) widest = std::max(widest, limit);
      const double error = std::fabs(sums_[at] - expected_[at].value);
      if (error <= limit) continue;  // NaN is off
      off.emplace_back(limit > 0.0 && error == error ? error / limit : std::numeric_limits<double>::infinity(),
                       static_cast<std::int64_t>(at));
    }
    // The other errors may compensate half of it.
    if (rms_ > 0.0 && std::isfinite(rms_)) result.smallest_fault = 2.0 * widest / rms_;
    std::stable_sort(off.begin(), off.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& one : off) {
      const std::vector<std::int64_t> sum = elements_of(one.second);
      const auto named = static_cast<std::int64_t>(result.suspects.size() + sum.size());
      if (!result.suspects.empty() && named > max_suspects) break;
      result.suspects.insert(result.suspects.end(), sum.begin(), sum.end());
    }
    result.suspects.insert(result.suspects.end(), odd_.begin(),
                           odd_.begin() + std::min<std::ptrdiff_t>(std::ssize(odd_), max_suspects));
    std::sort(result.suspects.begin(), result.suspects.end());
    return result;
  }

 private:
  void evaluate(int index) {
    std::list<Reduced> held;
    std::vector<TensorView> inputs(operands_.inputs.begin(), operands_.inputs.end());
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      for (const auto& [input, axis] : axes_[i].operands) {
        const Reduced& sums = held.emplace_back(reduce(inputs[input], axis, folds_[i].groups, factors_[i], parallel_));
        inputs[input] = TensorView(sums.spec, reinterpret_cast<const std::byte*>(sums.sums.data()));  // NOLINT
      }
    }
    const OpDefinition& op = definition(operands_.call.kind);
    const std::vector<TensorSpec> specs = specs_of(inputs);
    const CheckUnits units = op.units({operands_.call, specs, output_specs_}, index);
    expected_.resize(static_cast<std::size_t>(units.count * units.elements));
    const std::int64_t per_part = std::max<std::int64_t>(1, units.count / 64);
    const std::int64_t parts = (units.count + per_part - 1) / per_part;
    parallel_(parts, static_cast<double>(units.count) * units.flop_per_unit, [&](std::int64_t part) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t unit = part * per_part; unit < std::min(units.count, (part + 1) * per_part); ++unit)
        wanted.push_back(unit);
      op.evaluate({operands_.call, inputs, output_specs_, {}, operands_.exact_sums}, index, wanted,
                  std::span(expected_).subspan(static_cast<std::size_t>(part * per_part * units.elements),
                                               wanted.size() * static_cast<std::size_t>(units.elements)));
    });
  }

  void add_up() {
    const Folded& folded = folds_.front();
    sums_.resize(static_cast<std::size_t>(folded.sums()));
    squares_.resize(sums_.size());
    const HalfUlp half(output_.dtype());
    const double multiples = multiple_of_ > 0.0 ? 1.0 / multiple_of_ : 0.0;  // a power of two
    constexpr double whole = 0x1.8p52;  // adding it rounds to whole numbers, faster than a call of nearbyint()
    const std::span<const double> factors = factors_.front();
    std::vector<double> magnitudes(sums_.size());
    std::mutex mutex;
    for_each_element(output_, folded, parallel_, [&](std::int64_t sum, std::int64_t at, double value) {
      if ((value * multiples + whole) - whole != value * multiples) {
        const std::lock_guard lock(mutex);
        odd_.push_back(folded.element(sum, at));
      }
      const double h = half(value);
      sums_[static_cast<std::size_t>(sum)] += factors[static_cast<std::size_t>(at)] * value;
      squares_[static_cast<std::size_t>(sum)] += h * h;
      magnitudes[static_cast<std::size_t>(sum)] += value * value;
    });
    rms_ = std::sqrt(std::accumulate(magnitudes.begin(), magnitudes.end(), 0.0) /
                     static_cast<double>(output_.shape().elements()));
    for (std::size_t i = 1; i < folds_.size(); ++i) {
      const std::vector<double> sums = std::move(sums_), squares = std::move(squares_);
      sums_.assign(static_cast<std::size_t>(folds_[i].sums()), 0.0);
      squares_.assign(sums_.size(), 0.0);
      for (std::size_t e = 0; e < sums.size(); ++e) {
        const auto [sum, at] = folds_[i].place_of(static_cast<std::int64_t>(e));
        sums_[static_cast<std::size_t>(sum)] += factors_[i][static_cast<std::size_t>(at)] * sums[e];
        squares_[static_cast<std::size_t>(sum)] += squares[e];
      }
    }
  }

  double bound_ratio(std::span<const CheckedElement> judged) const {
    double ratio = 0.0;
    for (const CheckedElement& element : judged) {
      std::int64_t sum = element.linear;
      double members = 1.0;
      for (const Folded& folded : folds_) {
        const auto [of, at] = folded.place_of(sum);
        const std::int64_t group = folded.group_of(at);
        members *= static_cast<double>(folded.first_of(group + 1) - folded.first_of(group));
        sum = of;
      }
      const double mean = std::sqrt(squares_[static_cast<std::size_t>(sum)] / members);
      if (mean > 0.0 && std::isfinite(element.judged.bound)) ratio = std::max(ratio, element.judged.bound / mean);
    }
    return ratio;
  }

  std::vector<std::int64_t> elements_of(std::int64_t sum) const {
    std::vector<std::int64_t> elements{sum};
    for (auto folded = folds_.rbegin(); folded != folds_.rend(); ++folded) {
      std::vector<std::int64_t> finer;
      for (const std::int64_t coarse : elements) {
        const std::int64_t group = coarse / folded->inner % folded->groups;
        for (std::int64_t at = folded->first_of(group); at < folded->first_of(group + 1); ++at)
          finer.push_back(folded->element(coarse, at));
      }
      elements = std::move(finer);
    }
    return elements;
  }

  const Operands& operands_;
  const TensorView& output_;
  std::span<const LinearAxis> axes_;
  std::vector<Folded> folds_;                 // by axis, each of the shape that the one before leaves
  std::vector<std::vector<double>> factors_;  // by axis
  double multiple_of_;
  const Parallel& parallel_;
  std::vector<TensorSpec> output_specs_;
  std::vector<Expected> expected_;
  std::vector<double> sums_, squares_;  // of the output with signs; of half the distances between numbers
  double rms_ = 0.0;                    // of the output
  std::vector<std::int64_t> odd_;       // elements that are not multiples
};

}  // namespace

std::optional<ProjectionResult> project(const Operands& operands, const TensorView& output, int index,
                                        std::span<const CheckedElement> judged, std::int64_t max_suspects,
                                        double flop_budget, std::uint64_t key, const Parallel& parallel,
                                        double multiple_of) {
  const bool exact = multiple_of > 0.0;
  if ((output.dtype() == DType::f64 && !exact) || output.shape().elements() == 0) return std::nullopt;
  const std::vector<TensorSpec> inputs = specs_of(operands.inputs);
  const OpDefinition& op = definition(operands.call.kind);
  const CallSpecs specs{operands.call, inputs, operands.outputs};
  const std::vector<LinearAxis> axes = op.linear_axes(specs, index);
  double reading = static_cast<double>(output.shape().elements());
  for (const LinearAxis& axis : axes) {
    for (const auto& operand : axis.operands) reading += static_cast<double>(inputs[operand.first].shape.elements());
  }
  if (exact) flop_budget = std::max(flop_budget, making_flop * reading);
  const CheckUnits units = op.units(specs, index);
  double of_a_group = static_cast<double>(units.count * units.elements) * units.flop_per_unit;
  double extents = 1.0;
  // Along as few axes as affordable: an element shows less in a larger sum.
  for (std::size_t count = 1; count <= axes.size(); ++count) {
    const std::int64_t extent = output.shape()[axes[count - 1].output_axis];
    of_a_group /= static_cast<double>(extent);
    extents *= static_cast<double>(extent);
    const double affordable = (flop_budget - reading) / std::max(of_a_group, 1.0);
    if (!(affordable >= 1.0) || (!exact && extent < 2 * narrowest_group)) continue;
    std::uint64_t numbers = 1;
    const std::int64_t most = count == 1 ? std::max<std::int64_t>(1, extent / narrowest_group) : 1;
    std::int64_t groups = affordable < static_cast<double>(most) ? static_cast<std::int64_t>(affordable) : most;
    if (exact) {
      // fp64 must hold each sum: its products, fewer than the textbook's operations, are of numbers up to 3 (8 with
      // block scales and addends).
      const double room = 0x1p53 / (64.0 * extents * units.flop_per_unit);
      if (!(room >= 1.0)) return std::nullopt;
      numbers = static_cast<std::uint64_t>(
          std::clamp(0.5 * std::pow(room, 1.0 / static_cast<double>(count)), 1.0, max_factors));
      groups = 1;
    }
    return Projector(operands, output, index, std::span(axes).first(count), groups, numbers, key, multiple_of, parallel)
        .result(judged, max_suspects);
  }
  return std::nullopt;
}

}  // namespace gpubench
