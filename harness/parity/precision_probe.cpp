#include "harness/parity/precision_probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gpubench {
namespace {

// Bits that the sums lose are none of the inputs'.
std::string inputs_text(ValueReading values, const SumReading& sums) {
  for (std::optional<InputWidth>* one : {&values.a, &values.b}) {
    using Kind = InputWidth::Kind;
    const bool few = *one && (*one)->kind != Kind::exact && (*one)->kind != Kind::three_bf16;
    if (few && sums.kept && (*one)->bits >= *sums.kept)
      *one = InputWidth{InputWidth::Kind::unknown, 0, fmt::format("{} bits or more", *sums.kept)};
  }
  if (!values.a || !values.b) return values.a ? "a: " + values.a->words : values.b ? "b: " + values.b->words : "";
  if (*values.a == *values.b) return values.a->words;
  return fmt::format("a: {}, b: {}", values.a->words, values.b->words);
}

std::string store_text(const std::optional<StoreRounding>& store) {
  if (!store) return {};
  switch (*store) {
    case StoreRounding::nearest_even: return "nearest even";
    case StoreRounding::nearest_away: return "nearest, ties away";
    case StoreRounding::toward_zero: return "toward zero";
    case StoreRounding::other: return "neither to nearest nor toward zero";
  }
  return {};
}

std::string denormals_text(const ValueReading& values) {
  std::vector<std::string> flushed;
  bool any = false;
  const auto add = [&](const std::optional<bool>& kept, const char* what) {
    any = any || kept;
    if (kept && !*kept) flushed.emplace_back(what);
  };
  add(values.keeps_a, "a");
  add(values.keeps_b, "b");
  add(values.keeps_output, "output");
  if (!any) return {};
  return flushed.empty() ? "kept" : fmt::format("flushed: {}", fmt::join(flushed, ", "));
}

std::string specials_text(const ValueReading& values) {
  std::vector<std::string> all = values.departures.value_or(std::vector<std::string>{});
  if (values.overflow == Overflow::saturated) all.emplace_back("overflow saturates");
  if (values.overflow == Overflow::nan) all.emplace_back("overflow is NaN");
  if (values.overflow == Overflow::other) all.emplace_back("overflow is neither infinite nor the largest number");
  if (all.empty()) return values.departures || values.overflow ? "as IEEE 754" : "";
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string partial_text(int bits) {
  for (const DType type : {DType::bf16, DType::f16}) {
    if (unit_roundoff(type) == std::ldexp(1.0, -bits)) return std::string(name(type));
  }
  return fmt::format("{} bits", bits);
}

}  // namespace

bool is_readable(const CallSpecs& op, const OpProduct& product) {
  const DType out = op.outputs[static_cast<std::size_t>(product.output)].dtype;
  int exponent = 0;
  if (std::fabs(std::frexp(product.factor, &exponent)) != 0.5) return false;
  return is_float(op.inputs[product.a].dtype) && is_float(op.inputs[product.b].dtype) && is_float(out) &&
         bits_of(out) >= 16 && product.m() > 0 && product.n() > 0 && product.k() > 0;
}

PrecisionProbe::PrecisionProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed,
                               std::int64_t most_ordered)
    : op_(op), product_(product), seed_(seed), most_ordered_(most_ordered) {}

std::optional<ProbeLaunch> PrecisionProbe::next() {
  if (stage_ == Stage::sums && !sum_probe_) {
    sum_probe_.emplace(op_, product_, seed_);
    if (sum_probe_->data() != nullptr) return sum_probe_->data()->launch();
    stage_ = Stage::values;
  }
  if (stage_ == Stage::values && !value_probe_) {
    data_.emplace(op_, product_);
    value_probe_.emplace(*data_, seed_, sums_.bits);
    // With lines enough for both, one launch does. Results that a lost NaN spoils are no tree then, and no harm.
    const std::int64_t line = value_probe_->next_line();
    if (has_sums_ && OrderProbe::suffice(*data_, line, most_ordered_))
      order_probe_.emplace(*data_, line, sums_, false, most_ordered_);
    return data_->launch();
  }
  if (stage_ == Stage::order && !order_probe_ && has_sums_) {
    const bool denormals = values_.keeps_a.value_or(false) && values_.keeps_b.value_or(false);
    data_.emplace(op_, product_);
    order_probe_.emplace(*data_, 0, sums_, denormals, most_ordered_);
    if (order_probe_->usable()) return data_->launch();
  }
  stage_ = Stage::done;
  return std::nullopt;
}

void PrecisionProbe::take(std::span<const double> values) {
  switch (stage_) {
    case Stage::sums:
      sum_probe_->data()->take(values);
      sums_ = sum_probe_->read();
      has_sums_ = true;
      stage_ = Stage::values;
      return;
    case Stage::values:
      data_->take(values);
      values_ = value_probe_->read();
      if (order_probe_ && order_probe_->usable()) order_ = order_probe_->read();
      stage_ = order_probe_ ? Stage::done : Stage::order;
      return;
    case Stage::order:
      data_->take(values);
      order_ = order_probe_->read();
      stage_ = Stage::done;
      return;
    case Stage::done: return;
  }
}

PlanArithmetic PrecisionProbe::arithmetic(std::span<const std::string> allowed) const {
  PlanArithmetic told;
  told.kind = std::string(op_.call.kind.name);
  told.inputs = inputs_text(values_, sums_);
  if (values_.fused) told.products = *values_.fused ? "fused" : "rounded before they are added";
  told.store = store_text(values_.store);
  told.denormals = denormals_text(values_);
  told.specials = specials_text(values_);
  if (has_sums_ && sums_.plain) {
    told.unit = accumulator_name(sums_);
    told.bits = sums_.bits;
    if (sums_.rounding) told.rounding = *sums_.rounding == SumRounding::nearest ? "nearest" : "cut";
    told.at_once = sums_.at_once();
    told.fraction = sums_.fraction;
    told.emptied = sums_.emptied_every;
    if (sums_.partial_bits) told.partial = partial_text(*sums_.partial_bits);
    told.order = order_words(order_, product_.k());
    if (sums_.more_than) told.note = fmt::format("no bit of a sum is lost: it keeps more than {}", *sums_.more_than);
    if (!sums_.bits && sums_.kept)
      told.note = fmt::format("sums of few products keep {} bits; there are too few to read more", *sums_.kept);
  } else {
    told.note = has_sums_ ? "its sums are not plain sums of products" : "too few products for sums to be read";
  }
  const std::vector<Shortfall> below = shortfalls(sums_, values_, op_.call.math, op_.inputs[product_.a].dtype,
                                                  op_.inputs[product_.b].dtype, product_.a_scales.has_value());
  for (const Shortfall& one : below) {
    if (std::find(allowed.begin(), allowed.end(), one.name) != allowed.end()) continue;
    told.verdict = Verdict::downgraded;
    told.reason += fmt::format("{}{}, declared: {} (--arithmetic {})", told.reason.empty() ? "" : "; ", one.seen,
                               one.declared, one.name);
  }
  return told;
}

}  // namespace gpubench
