#include "harness/parity/precision_probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/parity/lower_precision.h"
#include "reference/ops/quantize.h"

namespace gpubench {
namespace {

// Bits lost by the sums are not lost by the inputs.
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

std::string type_of_bits(int bits) {
  if (bits == significant_bits(DType::bf16)) return "bf16";
  if (bits == significant_bits(DType::f16)) return "f16";
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
                               std::int64_t max_ordered)
    : op_(op), product_(product), seed_(seed), max_ordered_(max_ordered) {}

std::optional<ProbeLaunch> PrecisionProbe::next() {
  if (stage_ == Stage::sums && !sum_probe_) {
    sum_probe_.emplace(op_, product_, seed_);
    if (sum_probe_->data() != nullptr) return sum_probe_->data()->launch();
    stage_ = Stage::values;
  }
  if (stage_ == Stage::values && !value_probe_) {
    data_.emplace(op_, product_);
    value_probe_.emplace(*data_, seed_, sums_.bits);
    // With lines enough for both, one launch does. Results spoiled by a lost NaN give no tree.
    const std::int64_t line = value_probe_->next_line();
    if (has_sums_ && OrderProbe::suffice(*data_, line, max_ordered_))
      order_probe_.emplace(*data_, line, sums_, false, max_ordered_);
    return data_->launch();
  }
  if (stage_ == Stage::order && !order_probe_ && has_sums_) {
    const bool denormals = values_.keeps_a.value_or(false) && values_.keeps_b.value_or(false);
    data_.emplace(op_, product_);
    order_probe_.emplace(*data_, 0, sums_, denormals, max_ordered_);
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
    if (sums_.partial_bits) told.partial = type_of_bits(*sums_.partial_bits);
    told.order = order_text(order_, product_.k());
    if (sums_.more_than) told.note = fmt::format("sums lose no bit: they keep more than {}", *sums_.more_than);
    if (!sums_.bits && sums_.kept)
      told.note = fmt::format("sums of few products keep {} bits; more products are needed to read more", *sums_.kept);
  } else {
    told.note = has_sums_ ? "the sums are not plain sums of products" : "too few products to read sums";
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

namespace {

constexpr double small_scale = 0x1p-8, min_normal_scale = 0x1p-6;    // of e4m3
constexpr double e8m0_of_127 = 254.0, e8m0_nan = 255.0;              // OCP Microscaling Formats 1.0, 5.4.1

bool has_two_scales(const CallSpecs& op) {
  return op.call.attributes.as<QuantizeBlocks>().format == BlockFormat::nvfp4;
}

}  // namespace

ProbeLaunch open_result_launch(const CallSpecs& op) {
  const double first = has_two_scales(op) ? small_scale * largest_finite(DType::f4_e2m1) : HUGE_VAL;
  ProbeLaunch launch{{{op.inputs[0], 0.0, {{0, first}}}}, 1, {0}};
  if (has_two_scales(op)) launch.inputs.push_back({op.inputs[1], 1.0});
  return launch;
}

PlanArithmetic open_result(const CallSpecs& op, double scale) {
  PlanArithmetic told;
  told.kind = std::string(op.call.kind.name);
  if (has_two_scales(op)) {
    told.denormals = scale == small_scale        ? "scales below 2^-6 kept"
                     : scale == min_normal_scale ? "scales below 2^-6 raised to it"
                                                 : fmt::format("a scale of 2^-8 becomes {}", scale);
  } else {
    told.specials = scale == e8m0_nan      ? "a block with an infinity is NaN"
                    : scale == e8m0_of_127 ? "an infinity saturates, with a scale of 2^127"
                                           : fmt::format("a block with an infinity has the stored scale {}", scale);
  }
  return told;
}

namespace {

constexpr std::string_view mma_sim = "Xie et al., arXiv 2511.10909";
constexpr std::string_view fasi = "Fasi et al., PeerJ CS 7:e330; Xie et al., arXiv 2511.10909";
constexpr std::string_view ieee = "IEEE 754";

// Sums of 8-bit products on sm_89 and sm_90 keep this many bits (Xie et al.); libraries without fast accumulation empty
// them after this many products (sum_error_bound.cpp).
constexpr int fast_f8_bits = 14;
constexpr std::int64_t declared_interval = 128;

bool fits(const KnownAccumulator& known, const SumReading& sums) {
  const bool at_once =
      known.at_once >= sums.at_once_least && (sums.at_once_most == 0 || known.at_once <= sums.at_once_most);
  const bool fraction = !sums.fraction || known.fraction == 0 || known.fraction == *sums.fraction;
  return known.bits == sums.bits && known.rounding == sums.rounding && at_once && fraction;
}

}  // namespace

std::vector<KnownAccumulator> known_accumulators() {
  using enum SumRounding;
  const int f64 = significant_bits(DType::f64), f32 = significant_bits(DType::f32);
  const int f16 = significant_bits(DType::f16), bf16 = significant_bits(DType::bf16);
  return {
      {"f64, one product at a time", f64, nearest, 1, 0, ieee},
      {"f32, one product at a time", f32, nearest, 1, 0, ieee},
      {"bf16, one product at a time", bf16, nearest, 1, 0, ieee},
      {"f16, one product at a time", f16, nearest, 1, 0, ieee},
      {"f16 on Volta's tensor cores", f16, nearest, 4, 23, fasi},
      {"f16 on Turing's, Ampere's or Ada's tensor cores", f16, nearest, 8, 24, fasi},
      {"f16 on Hopper's or Blackwell's tensor cores", f16, nearest, 16, 25, mma_sim},
      {"Volta", f32, cut, 4, 23, fasi},
      {"Turing, Ampere or Ada", f32, cut, 8, 24, fasi},
      {"Ampere or Ada, tf32", f32, cut, 4, 24, fasi},
      {"Ada, 8-bit", fast_f8_bits, cut, 16, 13, mma_sim},
      {"Hopper or Blackwell", f32, cut, 16, 25, mma_sim},
      {"Hopper or Blackwell, tf32", f32, cut, 8, 25, mma_sim},
      {"Hopper, 8-bit", fast_f8_bits, cut, 32, 13, mma_sim},
      {"CDNA3", f32, nearest, 8, 24, mma_sim},
      {"CDNA3, xf32", f32, nearest, 4, 24, mma_sim},
      {"Blackwell, 8-bit", f32, cut, 32, 25, mma_sim},
      {"Blackwell, 4-bit", f32, cut, 64, 35, mma_sim},
  };
}

std::string accumulator_name(const SumReading& sums) {
  if (!sums.plain || !sums.bits || !sums.rounding || (sums.at_once_least == 1 && sums.at_once_most == 0)) return {};
  std::string name;
  for (const KnownAccumulator& known : known_accumulators()) {
    if (!fits(known, sums)) continue;
    name += fmt::format("{}{}", name.empty() ? "" : " or: ", known.name);
  }
  if (sums.emptied_every && (*sums.bits != fast_f8_bits || *sums.emptied_every != declared_interval ||
                             sums.outer_bits.value_or(significant_bits(DType::f32)) != significant_bits(DType::f32)))
    name.clear();
  if (name.empty()) return "unknown";
  if (sums.emptied_every) name += fmt::format(", emptied every {} products", *sums.emptied_every);
  if (sums.partial_bits) name += fmt::format(", partial sums in {}", type_of_bits(*sums.partial_bits));
  return name;
}

std::vector<Shortfall> shortfalls(const SumReading& sums, const ValueReading& values, const Math& math, DType a,
                                  DType b, bool blocks) {
  std::vector<Shortfall> all;
  using Kind = InputWidth::Kind;
  const auto look_at = [&](const std::optional<InputWidth>& width, DType type) {
    // A product that is added alone is rounded to the sum's bits: inputs that show as many may have more.
    if (!width || (sums.kept && width->bits >= *sums.kept)) return;
    const bool tf32 = math.inputs == Math::Inputs::tf32 && type == DType::f32;
    std::string_view name;
    if (width->kind == Kind::tf32 && !tf32) name = lower_arithmetic::tf32.name;
    if (width->kind == Kind::bf16) name = lower_arithmetic::bf16.name;
    if (width->kind == Kind::two_bf16 && !tf32) name = lower_arithmetic::two_bf16.name;
    if (width->kind == Kind::fewer_bits) name = lower_arithmetic::fewer_input_bits.name;
    if (name.empty() || (!all.empty() && all.back().name == name)) return;
    all.push_back({name, "inputs as " + width->words, tf32 ? "tf32" : "exact inputs"});
  };
  look_at(values.a, a);
  look_at(values.b, b);
  if (!sums.plain) return all;
  const int wanted = significant_bits(math.accumulate);
  const std::optional<int>& kept = sums.kept;
  const std::string declared = fmt::format("{} ({})", wanted, name(math.accumulate));
  if (kept && *kept < wanted) {
    const bool f8 = !blocks && std::max(bits_of(a), bits_of(b)) == 8 && *kept >= fast_f8_bits;
    if (!f8) {
      const std::string_view name = *kept == significant_bits(DType::f16)    ? lower_arithmetic::f16_sums.name
                                    : *kept == significant_bits(DType::bf16) ? lower_arithmetic::bf16_sums.name
                                                                             : lower_arithmetic::fewer_sum_bits.name;
      all.push_back({name, fmt::format("running sums of {} bits", *kept), declared});
    } else if (!math.fast_accumulation &&
               (sums.emptied_every.value_or(0) > declared_interval || sums.not_emptied_within > declared_interval)) {
      all.push_back({lower_arithmetic::fast_f8.name,
                     fmt::format("running sums of {} bits for more than {} products", *kept,
                                 sums.emptied_every ? *sums.emptied_every - 1 : sums.not_emptied_within),
                     fmt::format("at most {}", declared_interval)});
    }
  }
  if (sums.partial_bits && *sums.partial_bits < wanted && !math.split_k_in_output) {
    all.push_back({lower_arithmetic::split_k_in_output.name,
                   fmt::format("partial sums in {}", type_of_bits(*sums.partial_bits)), declared});
  }
  return all;
}

}  // namespace gpubench
