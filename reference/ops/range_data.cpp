#include "reference/ops/range_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

// Rows after which patterns repeat, which makes them cheap. A channel runs through all rows of a pattern; repeating the
// same numbers after few rows would round all sums alike.
constexpr std::int64_t rows_of_a_pattern = 32, rows_of_a_channel_pattern = 4096;
constexpr std::int64_t elements_of_a_pattern = 4096;
constexpr std::int64_t max_terms = 65'536;
// In longer sums, squares of few distinct deviations from a mean that is not a whole number round alike. In shorter
// sums of bf16, squares of deviations from a whole mean would be exact and reveal nothing.
constexpr std::int64_t max_unpaired_terms = 1024;

double whole_number(std::int64_t element, int most) {
  return static_cast<double>(mix(static_cast<std::uint64_t>(element)) % static_cast<std::uint64_t>(2 * most + 1)) -
         most;
}

// Multiples of `step`, up to `most` each way, around a mean whose sums are exact at any length.
struct Around {
  double mean, step;
  int most;
  [[nodiscard]] double deviation() const { return step * std::sqrt(most * (most + 1) / 3.0); }
};
Around around(DType type) {
  if (type == DType::bf16) return {160.0, 1.0, 2};
  if (type == DType::f16) return {512.0, 0.5, 12};
  constexpr double fine = 0x1p-6;  // by choice: a deviation of 0.58
  return {512.0, fine, 64};
}

double to_normalize(DType type, std::int64_t line, std::int64_t at, std::int64_t terms, bool centered) {
  if (line % 4 < 2 && centered) return LargeMeans{type}.element(line, at, terms);
  // Squares of 2^-12 (f16) and 2^-40 are below any epsilon; those of 2^14 exceed f16's range.
  const int exponent = type == DType::f16 ? (line % 2 == 0 ? -12 : 14) : (line % 2 == 0 ? -40 : 40);
  const int bits = bits_of(type) < 32 ? 7 : 13;
  return std::ldexp(whole_number(line * terms + at, (1 << bits) - 1), exponent - bits);
}

using LineElement = std::function<double(std::int64_t line, std::int64_t at, std::int64_t terms)>;

std::int64_t terms_of(const TensorSpec& x, StatisticsOf lines) {
  return lines == StatisticsOf::rows ? x.shape[-1] : x.shape.elements() / x.shape[-1];
}

bool has_line_ranges(DType type, std::int64_t terms) { return has_ranges(type) && terms <= max_terms; }

RevealingData::Input by_line(std::size_t index, const TensorSpec& x, StatisticsOf lines, LineElement value) {
  const std::int64_t width = x.shape[-1], terms = terms_of(x, lines);
  if (lines == StatisticsOf::rows) {
    return {index, [=, value = std::move(value)](std::int64_t e) { return value(e / width, e % width, terms); },
            rows_of_a_pattern * width};
  }
  return {index, [=, value = std::move(value)](std::int64_t e) { return value(e % width, e / width, terms); },
          rows_of_a_channel_pattern * width};
}

}  // namespace

double LargeMeans::mean(std::int64_t line) const { return line % 2 == 0 ? around(type).mean : -around(type).mean; }

double LargeMeans::element(std::int64_t line, std::int64_t at, std::int64_t terms) const {
  const bool is_second = terms > max_unpaired_terms && at % 2 != 0;
  if (terms > max_unpaired_terms && !is_second && at + 1 == terms) return mean(line);
  const double deviation = around(type).step * whole_number(line * terms + at - (is_second ? 1 : 0), around(type).most);
  return mean(line) + (is_second ? -deviation : deviation);
}

double LargeMeans::rstd() const { return 1.0 / around(type).deviation(); }

bool has_ranges(DType type) { return is_float(type) && bits_of(type) >= 16; }

bool show_cancellation(DType type, std::int64_t terms) {
  constexpr std::int64_t min_terms = 32;
  return has_line_ranges(type, terms) && terms >= min_terms && (type != DType::bf16 || terms <= max_unpaired_terms);
}

std::vector<RevealingData> lines_to_normalize(const TensorSpec& x, StatisticsOf lines, bool centered) {
  if (!has_line_ranges(x.dtype, terms_of(x, lines))) return {};
  const auto element = [type = x.dtype, centered](std::int64_t line, std::int64_t at, std::int64_t terms) {
    return to_normalize(type, line, at, terms, centered);
  };
  return {{centered ? "large means, tiny and huge numbers" : "tiny and huge numbers", {by_line(0, x, lines, element)}}};
}

std::vector<RevealingData> normalized_lines(const CallSpecs& op, StatisticsOf lines) {
  const auto at = [&](std::string_view name) { return *position_of(op.call.kind.inputs, op.call.attributes, name); };
  const TensorSpec& x = op.input("x");
  if (!has_line_ranges(x.dtype, terms_of(x, lines))) return {};
  const LargeMeans means{x.dtype};
  const auto element = [means](std::int64_t line, std::int64_t place, std::int64_t terms) {
    return means.element(line, place, terms);
  };
  return {{"large means",
           {by_line(at("x"), x, lines, element),
            {at("mean"), [means](std::int64_t line) { return means.mean(line); }},
            {at("rstd"), [rstd = means.rstd()](std::int64_t) { return rstd; }}}}};
}

// 49152 is 3 x 2^14, whose multiples are exact in sums of any length.
double far_from_zero(std::int64_t row) {
  constexpr std::array places{200.0, -200.0, 49'152.0, -49'152.0};
  return places[static_cast<std::size_t>(row % 4)];
}

std::vector<RevealingData> rows_far_from_zero(const TensorSpec& x) {
  constexpr std::int64_t max_near = 512;   // longer sums of nine different exponentials round alike
  constexpr double lower = -96.0;          // by choice: exp(-96) is below f32's smallest normal number
  if (!has_ranges(x.dtype)) return {};
  const auto element = [=](std::int64_t row, std::int64_t at, std::int64_t width) {
    const std::int64_t every = (width + max_near - 1) / max_near;
    return far_from_zero(row) + (at % every == 0 ? whole_number(row * width + at, 4) : lower);
  };
  return {{"rows far from 0", {by_line(0, x, StatisticsOf::rows, element)}}};
}

RevealingData::Input up_to_100(std::size_t index) {
  return {index, [](std::int64_t e) { return 0.25 * whole_number(e, 400); }, elements_of_a_pattern};
}

// Libraries flush subnormal results of bf16 and f32.
RevealingData::Input wide_range(std::size_t index, const TensorSpec& x, int factors) {
  constexpr int room = 24;  // of f32 and bf16
  const RevealingData::Input moderate = up_to_100(index);
  const int lowest =
      x.dtype == DType::f16 ? std::ilogb(smallest_normal(DType::f16)) : std::ilogb(smallest_normal(DType::bf16)) + room;
  const int highest = std::min(std::ilogb(largest_finite(x.dtype)), 127) - factors;
  const auto value = [=](std::int64_t e) {
    if (e % 8 < 6) return moderate.value(e);
    const auto drawn = static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(e)) >> 1U);
    const double size = std::ldexp(1.0, lowest + static_cast<int>(drawn % (highest - lowest + 1)));
    return e % 8 == 6 ? size : -size;
  };
  return {index, value, moderate.period};
}

}  // namespace gpubench
