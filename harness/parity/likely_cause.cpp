#include "harness/parity/likely_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/parity/faults.h"
#include "harness/parity/judge.h"
#include "harness/parity/rounding.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {
namespace {

constexpr double nearly_all = 0.99;   ///< one in 2^13 of bf16 numbers rounds either way
constexpr std::size_t glance = 16;    ///< wrong elements that rule out most faults
constexpr std::size_t min_wrong = 4;  ///< of a type of 16 bits or more; fewer may agree by chance
constexpr std::size_t min_wrong_narrow = 16;
constexpr std::size_t min_fitted = 8;       ///< elements for fitting a factor or an offset
constexpr double min_change = 8.0;          ///< of a factor or offset, in units of the roundoff of the store
constexpr std::int64_t max_sampled = 512;   ///< elements of each kind, judged and wrong
constexpr std::int64_t max_of_a_unit = 16;  ///< of these

using Elements = std::span<const std::int64_t>;

struct Hypothesis {
  std::string words;
  std::function<std::vector<Expected>(Elements)> values;
  std::function<bool(const Expected&, double got)> accepts{};  ///< empty: as rounded to the output's type
};

/// At least one value; none may be NaN.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double min_digits(double value, double u) {
  for (int digits = 1; digits <= 6 && value != 0.0 && std::isfinite(value); ++digits) {
    const double unit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) + 1.0 - digits);
    const double shorter = std::nearbyint(value / unit) * unit;
    if (std::fabs(shorter - value) <= u * std::fabs(value)) return shorter;
  }
  return value;
}

class Search {
 public:
  Search(const Operands& operands, int output, std::span<const CheckedElement> elements, double flop)
      : operands_(operands),
        output_(output),
        flop_(flop),
        spec_(operands.outputs[static_cast<std::size_t>(output)]),
        units_(units_of(operands, output)),
        checked_(elements.begin(), elements.end()) {
    // The wrong ones first: the first few rule out most faults.
    std::stable_partition(checked_.begin(), checked_.end(), [this](const CheckedElement& e) { return is_wrong(e); });
    for (const CheckedElement& e : checked_) places_.push_back(e.linear);
    wrong_ = static_cast<std::size_t>(
        std::ranges::count_if(checked_, [this](const CheckedElement& e) { return is_wrong(e); }));
  }

  std::string run() {
    const bool narrow = !is_float(spec_.dtype) || bits_of(spec_.dtype) < 16;
    if (wrong_ < (narrow ? min_wrong_narrow : min_wrong)) return {};
    if (is_float(spec_.dtype) && std::ranges::all_of(checked_, [](const CheckedElement& e) { return e.got == 0.0; }))
      return fmt::format("{} is all zeros", spec_.name);
    calls();
    formulas();
    if (is_float(spec_.dtype)) stores();
    if (!found_.empty()) return found_.size() == 1 ? found_.front().words : "";
    whole_outputs();
    if (is_float(spec_.dtype)) fits();
    return found_.size() == 1 ? found_.front().words : "";
  }

 private:
  struct Found {
    std::string words;
    std::vector<double> values;
  };

  [[nodiscard]] bool is_wrong(const CheckedElement& e) const { return !accepts(e.judged, spec_.dtype, e.got); }

  void consider(const Hypothesis& fault) {
    try {
      if (!agrees(fault, fault.values(Elements(places_).first(std::min(glance, wrong_))))) return;
      const std::vector<Expected> predicted = fault.values(places_);
      if (!agrees(fault, predicted)) return;
      Found found{fault.words, {}};
      for (const Expected& value : predicted) found.values.push_back(value.value);
      const auto is_same = [&](const Found& one) {
        return std::ranges::equal(one.values, found.values,
                                  [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
      };
      if (std::ranges::none_of(found_, is_same)) found_.push_back(std::move(found));
    } catch (const ProgramError&) {
      // the op refuses the faulty call
    }
  }

  /// Whether the prediction for the first elements agrees with nearly all of the wrong ones, and of all.
  [[nodiscard]] bool agrees(const Hypothesis& fault, std::span<const Expected> predicted) const {
    const std::size_t count = predicted.size();
    std::size_t right = 0, explained = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double got = checked_[i].got;
      const bool same = fault.accepts ? fault.accepts(predicted[i], got) : accepts(predicted[i], spec_.dtype, got);
      right += same ? 1 : 0;
      // An accepted number explains no wrong one, and NaN has many causes.
      const bool tells = fault.accepts || (std::isfinite(got) && !accepts(checked_[i].judged, spec_.dtype,
                                                                          round_to(spec_.dtype, predicted[i].value)));
      explained += same && tells && i < wrong_ ? 1 : 0;
    }
    const auto enough = [](std::size_t part, std::size_t all) {
      return static_cast<double>(part) >= nearly_all * static_cast<double>(all);
    };
    return enough(right, count) && enough(explained, std::min(count, wrong_));
  }

  [[nodiscard]] std::vector<Expected> values_on(const OpCall& call, std::span<const TensorView> inputs,
                                                Elements elements) const {
    return expected_elements(replaced(operands_, call, inputs), output_, elements);
  }

  [[nodiscard]] std::vector<Expected> right(Elements first) const {
    std::vector<Expected> values;
    for (std::size_t i = 0; i < first.size(); ++i) values.push_back(checked_[i].judged);
    return values;
  }

  void calls() {
    const std::vector<WrongCall> all = wrong_calls(operands_.call, specs_of(operands_.inputs), operands_.outputs);
    std::int64_t changed_elements = 0;
    for (const WrongCall& wrong : all)
      changed_elements += wrong.change ? operands_.inputs[wrong.input].shape().elements() : 0;
    for (const WrongCall& wrong : all) {
      if (wrong.fault == CallFault::wrong_constant) continue;  // its factor is one of many
      const std::string words = fmt::format("{}: {}", name(wrong.fault), wrong.detail);
      std::vector<TensorView> inputs(operands_.inputs.begin(), operands_.inputs.end());
      if (!wrong.change) {
        consider({words, [&](Elements elements) { return values_on(wrong.call, inputs, elements); }});
        continue;
      }
      if (changed_elements > max_changed_elements) continue;
      HostTensor changed(inputs[wrong.input]);
      wrong.change(changed);
      inputs[wrong.input] = changed.view();
      consider({words, [&](Elements elements) { return values_on(wrong.call, inputs, elements); }});
    }
  }

  void formulas() {
    for (OtherFormula& other : other_formulas(operands_, output_)) consider({other.name, std::move(other.values)});
    unstable();
  }

  /// Formulas that overflow leave NaN, infinities or zeros.
  void unstable() {
    std::int64_t elements = 0;
    std::vector<HostTensor> inputs;
    for (const TensorView& input : operands_.inputs) elements += input.shape().elements();
    for (const TensorSpec& spec : operands_.outputs) elements += spec.shape.elements();
    const auto is_lost = [](const CheckedElement& e) { return !std::isfinite(e.got); };
    if (std::ranges::none_of(checked_, is_lost) || elements > max_changed_elements ||
        static_cast<double>(units_.count) * units_.flop_per_unit > flop_)
      return;
    for (const TensorView& input : operands_.inputs) inputs.emplace_back(input);
    for (const UnstableForm& form : unstable_forms(operands_.call, inputs, textbook_outputs(operands_))) {
      const HostTensor& left = form.left[static_cast<std::size_t>(output_)];
      consider({std::string(form.name),
                [&](Elements wanted) {
                  std::vector<Expected> values = right(wanted);
                  for (std::size_t i = 0; i < wanted.size(); ++i) {
                    if (const double value = left.get(wanted[i]); !std::isfinite(value)) values[i] = {value, 0.0};
                  }
                  return values;
                },
                [type = spec_.dtype](const Expected& e, double got) {
                  // A number over an infinite sum is 0, an infinite one NaN.
                  return std::isfinite(e.value) ? accepts(e, type, got) : got == 0.0 || !std::isfinite(got);
                }});
    }
  }

  /// The right numbers, stored wrongly. A bound too wide to show the rounding rules this out.
  void stores() {
    const auto as_right = [this](Elements elements) { return right(elements); };
    for (const DType narrow : {DType::bf16, DType::f16}) {
      if (bits_of(spec_.dtype) <= bits_of(narrow)) continue;
      consider({fmt::format("{} rounded to {}", spec_.name, name(narrow)), as_right,
                [narrow](const Expected& e, double got) {
                  return e.bound <= half_ulp(narrow, e.value) && got == round_to(narrow, got) &&
                         accepts(e, narrow, got);
                }});
    }
    consider({fmt::format("{} rounded toward zero", spec_.name), as_right,
              [type = spec_.dtype](const Expected& e, double got) {
                return e.bound <= half_ulp(type, e.value) && got >= toward_zero(type, e.value - e.bound) &&
                       got <= toward_zero(type, e.value + e.bound);
              }});
  }

  void whole_outputs() {
    const Shape& shape = spec_.shape;
    const auto moved = [&](const std::string& how, const std::function<std::int64_t(std::int64_t)>& place) {
      consider({fmt::format("{} has {}", spec_.name, how),
                [this, place](Elements elements) { return expected_elsewhere(operands_, output_, elements, place); }});
    };
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const AxisView along(shape, axis);
      if (along.extent < 2) continue;
      moved(fmt::format("axis {} reversed", axis), [=](std::int64_t e) { return along.reversed(e); });
      for (const std::int64_t by : {std::int64_t{1}, along.extent - 1}) {
        moved(fmt::format("axis {} shifted by {}", axis, by == 1 ? -1 : 1),
              [=](std::int64_t e) { return along.shifted(e, by); });
      }
      for (int other = axis + 1; other < shape.rank(); ++other) {
        if (shape[other] > 1)
          moved(fmt::format("axes {} and {} swapped", axis, other),
                [=](std::int64_t e) { return written_to(shape, axis, other, e); });
      }
    }
    every_tensor_swapped();
  }

  /// Swapped layouts: [b, h, s, d] for [b, s, h, d] in all tensors of the call with these axes.
  void every_tensor_swapped() {
    const int rank = spec_.shape.rank();
    std::int64_t total = 0;
    for (const TensorView& input : operands_.inputs)
      total += input.shape().rank() == rank ? input.shape().elements() : 0;
    if (total * rank * rank > max_changed_elements) return;
    for (int first = 0; first < rank; ++first) {
      for (int second = first + 1; second < rank; ++second) {
        if (spec_.shape[first] == 1 || spec_.shape[second] == 1) continue;
        std::vector<HostTensor> changed;
        std::vector<TensorView> inputs(operands_.inputs.begin(), operands_.inputs.end());
        changed.reserve(inputs.size());
        for (TensorView& input : inputs) {
          if (input.shape().rank() != rank) continue;
          swap_axes(changed.emplace_back(input), first, second);
          input = changed.back().view();
        }
        consider({fmt::format("axes {} and {} of every tensor swapped", first, second), [&](Elements elements) {
                    return expected_elsewhere(
                        replaced(operands_, operands_.call, inputs), output_, elements,
                        [&](std::int64_t e) { return written_to(spec_.shape, first, second, e); });
                  }});
      }
    }
  }

  /// Fits a factor or an offset to the elements, each with an allowance for one rounding of the store.
  void fits() {
    std::vector<CheckedElement> finite;
    std::ranges::copy_if(checked_, std::back_inserter(finite),
                         [](const CheckedElement& e) { return std::isfinite(e.got) && std::isfinite(e.judged.value); });
    if (finite.size() < min_fitted) return;
    std::vector<double> sizes, ratios, differences;
    for (const CheckedElement& e : finite) sizes.push_back(std::fabs(e.judged.value));
    const double typical = median(sizes);
    std::set<double> distinct;
    for (const CheckedElement& e : finite) {
      differences.push_back(e.got - e.judged.value);
      if (std::fabs(e.judged.value) < typical || typical == 0.0) continue;
      ratios.push_back(e.got / e.judged.value);
      distinct.insert(e.judged.value);
    }
    if (distinct.size() < min_fitted) return;
    const double u = unit_roundoff(spec_.dtype), offset = median(differences);
    const double factor = min_digits(median(ratios), 2.0 * u);
    const auto fitted = [&](const std::string& words, const auto& change) {
      consider({words, [this, u, change](Elements elements) {
                  std::vector<Expected> values = right(elements);
                  for (Expected& e : values) {
                    e = change(e);
                    e.bound += 2.0 * u * std::fabs(e.value);
                  }
                  return values;
                }});
    };
    if (std::fabs(factor - 1.0) > min_change * u) {
      fitted(fmt::format("{} is {:.6g} times what it should be", spec_.name, factor), [factor](const Expected& e) {
        return Expected{factor * e.value, std::fabs(factor) * e.bound};
      });
    }
    if (std::fabs(offset) > min_change * u * typical) {
      fitted(fmt::format("{} is off by {:.6g} everywhere", spec_.name, offset), [offset](const Expected& e) {
        return Expected{e.value + offset, e.bound};
      });
    }
  }

  Operands operands_;
  int output_;
  double flop_;
  const TensorSpec& spec_;
  CheckUnits units_;
  std::vector<CheckedElement> checked_;
  std::vector<std::int64_t> places_;
  std::size_t wrong_ = 0;
  std::vector<Found> found_;
};

}  // namespace

std::string likely_cause(const Operands& operands, int output, std::span<const CheckedElement> elements, double flop) {
  return Search(operands, output, elements, flop).run();
}

std::vector<std::int64_t> cause_sample(const CheckUnits& units, std::int64_t judged,
                                       const std::function<std::int64_t(std::int64_t)>& unit,
                                       std::span<const Mismatch> wrong, double flop) {
  const std::int64_t of_each = std::min(units.elements, max_of_a_unit);
  const double affordable = std::min(flop / (2.0 * units.flop_per_unit), static_cast<double>(max_sampled / of_each));
  const auto most = static_cast<std::int64_t>(std::max(affordable, 1.0));
  std::set<std::int64_t> sample;
  const std::int64_t some = std::min(judged, most);
  for (std::int64_t i = 0; i < some; ++i) {
    const std::int64_t first = unit(i * judged / some) * units.elements;
    for (std::int64_t e = 0; e < of_each; ++e)
      sample.insert(first + e * units.elements / of_each + i % (units.elements / of_each));
  }
  const std::int64_t count = std::ssize(wrong), some_wrong = std::min(count, most);
  for (std::int64_t i = 0; i < some_wrong; ++i) {
    const std::int64_t first = i * count / some_wrong;
    const auto unit_of = [&](std::int64_t at) { return wrong[static_cast<std::size_t>(at)].linear / units.elements; };
    for (std::int64_t at = first; at < std::min(count, first + of_each) && unit_of(at) == unit_of(first); ++at)
      sample.insert(wrong[static_cast<std::size_t>(at)].linear);
  }
  return {sample.begin(), sample.end()};
}

}  // namespace gpubench
