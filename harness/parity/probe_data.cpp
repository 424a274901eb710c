#include "harness/parity/probe_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace gpubench {
namespace {

// Scales of 4-bit numbers, as powers of two. E8M0: as far as products are normal in f32. e4m3: denormals too, because
// the widest accumulator of such products keeps more bits than normal scales span.
constexpr Exponents e8m0_scales{-30, 30}, e4m3_scales{-9, 8};
// Of e2m1 only the numbers 1 to 6.
constexpr int max_f4 = 2;
// The stored bits of an E8M0 scale of 1.
constexpr double e8m0_one = 127.0;

const Exponents& range_of_scale(DType type) { return type == DType::u8 ? e8m0_scales : e4m3_scales; }

}  // namespace

HostTensor SparseTensor::dense() const {
  HostTensor tensor(spec);
  for (std::int64_t e = 0; rest != 0.0 && e < tensor.elements(); ++e) tensor.set(e, rest);
  for (const Element& element : elements) tensor.set(element.linear, element.value);
  return tensor;
}

ProbeData::ProbeData(const CallSpecs& op, const OpProduct& product)
    : op_(op), product_(product), turned_(product.m() > product.n()) {
  const auto scales = [](const std::optional<OpProductScales>& of) { return of ? &*of : nullptr; };
  const Side a{product.a, &op.inputs[product.a], &product.a_rows, &product.a_k, scales(product.a_scales)};
  const Side b{product.b, &op.inputs[product.b], &product.b_columns, &product.b_k, scales(product.b_scales)};
  left_ = turned_ ? b : a;
  right_ = turned_ ? a : b;
  for (const Side* side : {&left_, &right_}) {
    if (bits_of(side->spec->dtype) == 4 && side->scales != nullptr) step_ = side->scales->block;
  }
  for (const TensorSpec& input : op.inputs) inputs_.push_back({input});
  for (const OpProduct::Other& other : product.others) {
    inputs_[other.input].rest = other.rest;
    if (other.first != other.rest) inputs_[other.input].elements.push_back({0, other.first});
  }
  for (const Side* side : {&left_, &right_}) {
    if (side->scales == nullptr) continue;
    SparseTensor& stored = inputs_[side->scales->input];
    stored.rest = stored.spec.dtype == DType::u8 ? e8m0_one : 1.0;
  }
}

Exponents ProbeData::range(const Side& side, bool denormals) const {
  const auto least = [denormals](int normal, int smallest) { return denormals ? smallest : normal; };
  switch (side.spec->dtype) {
    case DType::f64: return {-300, 300};
    case DType::f32:
    case DType::bf16: return {-60, 66};
    case DType::f16: return {least(-14, -24), 15};
    case DType::f8_e5m2: return {least(-14, -16), 15};
    case DType::f8_e4m3: return {least(-6, -9), 8};
    case DType::f4_e2m1: {
      if (side.scales == nullptr) return {0, max_f4};
      const Exponents& scale = range_of_scale(inputs_[side.scales->input].spec.dtype);
      return {scale.least, scale.most + max_f4};
    }
    default: return {0, 0};
  }
}

void ProbeData::put(const Side& side, std::int64_t line, std::int64_t position, double value) {
  const std::int64_t k = position * step_;
  double stored = value;
  if (step_ > 1 && side.scales != nullptr && value != 0.0) {
    SparseTensor& scales = inputs_[side.scales->input];
    const Exponents& range = range_of_scale(scales.spec.dtype);
    const int exponent = std::clamp(std::ilogb(value), range.least, range.most);
    scales.elements.push_back({side.scales->lines[line] + k / side.scales->block,
                               scales.spec.dtype == DType::u8 ? e8m0_one + exponent : std::ldexp(1.0, exponent)});
    stored = std::ldexp(value, -exponent);
  }
  SparseTensor& tensor = inputs_[side.input];
  const double held = round_to(tensor.spec.dtype, stored);
  if (held != stored && !(std::isnan(held) && std::isnan(stored)))
    throw std::logic_error(fmt::format("{} can't hold {} for a probe", name(tensor.spec.dtype), stored));
  tensor.elements.push_back({(*side.lines)[line] + (*side.along)[k], stored});
}

std::int64_t ProbeData::element(std::int64_t left_line, std::int64_t right_line) const {
  return turned_ ? product_.rows[right_line] + product_.columns[left_line]
                 : product_.rows[left_line] + product_.columns[right_line];
}

ProbeLaunch ProbeData::launch() {
  std::sort(wanted_.begin(), wanted_.end());
  wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
  return {std::move(inputs_), product_.output, wanted_};
}

void ProbeData::take(std::span<const double> values) { values_.assign(values.begin(), values.end()); }

double ProbeData::result(std::int64_t left_line, std::int64_t right_line) const {
  const auto at = std::lower_bound(wanted_.begin(), wanted_.end(), element(left_line, right_line)) - wanted_.begin();
  return values_.at(static_cast<std::size_t>(at)) / product_.factor;
}

namespace {

// Fewer E distinguish nothing.
constexpr int fewest = 5;

std::optional<ExponentPlan> plan_up_to(int last, int variants, int unit, const Exponents& left, const Exponents& right,
                                       std::int64_t max_rows) {
  ExponentPlan s;
  s.last = last;
  s.variants = variants;
  s.one_left = std::clamp(unit / 2, std::max(left.least, unit - right.most), std::min(left.most, unit - right.least));
  s.one_right = unit - s.one_left;
  s.rows = (s.count() + variants - 1) / variants;
  const int low = std::max(left.least, s.first + unit + (variants - 1) * s.rows - right.most);
  const int high = std::min(left.most - s.rows + 1, s.first + unit - right.least);
  if (s.rows > max_rows || low > high) return std::nullopt;
  s.left = std::clamp((s.first + unit) / 2, low, high);
  s.right = s.first + unit - s.left;
  return s;
}

}  // namespace

int min_unit(const ProbeData& data) {
  const Exponents left = data.left_range(), right = data.right_range();
  const bool narrow = left.most < max_exponent || right.most < max_exponent;
  int unit = narrow ? left.least + right.least : 0;
  if (narrow && bits_of(data.left_type()) != 4) unit = std::max(unit, min_f16_exponent);
  if (data.output_type() == DType::f16) unit = std::max(unit, min_f16_exponent - data.factor_exponent());
  return unit;
}

std::optional<ExponentPlan> plan_exponents(const Exponents& left, const Exponents& right, int unit, int enough,
                                           std::int64_t max_rows, std::int64_t max_columns) {
  const int most = std::min(max_exponent, left.most + right.most - unit);
  std::optional<ExponentPlan> best;
  for (int variants = 1; 2 * variants <= max_columns && variants <= most; ++variants) {
    for (int last = most; last > fewest; --last) {
      const std::optional<ExponentPlan> plan = plan_up_to(last, variants, unit, left, right, max_rows);
      if (!plan) continue;
      if (!best || plan->last > best->last) best = plan;
      break;
    }
    if (best && best->last >= std::min(enough, most)) break;
  }
  return best;
}

}  // namespace gpubench
