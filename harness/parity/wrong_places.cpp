#include "harness/parity/compare_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "harness/core/dtype.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_bands = 32;

struct Span {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = 0;
  std::int64_t step = 0;  // greatest common divisor of the distances from the first index
  std::int64_t first = -1;

  void add(std::int64_t index) {
    if (first < 0) first = index;
    low = std::min(low, index);
    high = std::max(high, index);
    step = std::gcd(step, index > first ? index - first : first - index);
  }
  [[nodiscard]] bool whole(std::int64_t extent) const { return low == 0 && high == extent - 1 && step <= 1; }
  [[nodiscard]] std::string text() const {
    if (low == high) return fmt::format("{}", low);
    const std::string range = fmt::format("{}-{}", low, high);
    return step > 1 && high - low > step ? fmt::format("{} in steps of {}", range, step) : range;
  }
};

std::string words(const Shape& shape, std::span<const Span> spans, std::size_t wrong) {
  std::string box;
  bool whole = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Span& span = spans[static_cast<std::size_t>(axis)];
    whole = whole && span.whole(shape[axis]);
    box += (axis == 0 ? "" : ", ") + span.text();
  }
  if (wrong == 1) return fmt::format("1 at [{}]", box);
  return whole ? "spread over all of it" : fmt::format("all {} are in [{}]", wrong, box);
}

}  // namespace

std::vector<std::int64_t> multi_index(const Shape& shape, std::int64_t linear) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = linear % shape[axis];
    linear /= shape[axis];
  }
  return index;
}

WrongPlaces wrong_places(const TensorSpec& spec, std::span<const std::int64_t> wrong) {
  const Shape& shape = spec.shape;
  const std::int64_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const std::int64_t rows = shape.elements() / std::max<std::int64_t>(1, columns);
  WrongPlaces places;
  places.tensor = spec.name;
  places.rows = rows;
  places.columns = columns;
  const std::int64_t row_bands = std::min(rows, max_bands), column_bands = std::min(columns, max_bands);
  places.column_bands = column_bands;
  places.counts.assign(static_cast<std::size_t>(row_bands * column_bands), 0);
  std::vector<Span> spans(static_cast<std::size_t>(shape.rank()));
  for (const std::int64_t linear : wrong) {
    const std::vector<std::int64_t> index = multi_index(shape, linear);
    for (std::size_t axis = 0; axis < spans.size(); ++axis) spans[axis].add(index[axis]);
    const std::int64_t row = linear / columns * row_bands / rows;
    const std::int64_t column = linear % columns * column_bands / columns;
    ++places.counts[static_cast<std::size_t>(row * column_bands + column)];
  }
  places.words = words(shape, spans, wrong.size());
  return places;
}

namespace {

constexpr std::int64_t bits_stretch = std::int64_t{1} << 16U;  // equal stretches are skipped by memcmp
constexpr std::size_t max_places = std::size_t{1} << 20U;      // used for the smallest box
constexpr std::uint64_t lanes_of_warp = 32;

// Calls visit(linear, a, b, at) for each element that differs: element `at` of the stretches a and b.
template <class Visit>
void each_difference(const TensorView& got, const TensorView& expected, const Visit& visit) {
  const DType type = got.dtype();
  const std::int64_t elements = got.shape().elements();
  std::vector<std::byte> a(static_cast<std::size_t>(bytes_of(type, std::min(elements, bits_stretch)))), b(a.size());
  for (std::int64_t first = 0; first < elements; first += bits_stretch) {
    const std::int64_t count = std::min(elements - first, bits_stretch);
    got.read_bits(first, count, a.data());
    expected.read_bits(first, count, b.data());
    if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(bytes_of(type, count))) == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (load_bits(type, a.data(), i) != load_bits(type, b.data(), i)) visit(first + i, a.data(), b.data(), i);
    }
  }
}

std::string bit_ranges(std::uint64_t bits) {
  std::string text;
  for (int low = 0; low < 64; ++low) {
    if ((bits >> static_cast<unsigned>(low) & 1U) == 0) continue;
    const int length = std::countr_one(bits >> static_cast<unsigned>(low));
    text += fmt::format("{}{}", text.empty() ? "" : ", ", low);
    if (length > 1) text += fmt::format("-{}", low + length - 1);
    low += length - 1;
  }
  return text;
}

std::string_view ending_of(std::uint64_t bits) { return std::popcount(bits) == 1 ? "" : "s"; }

class Picture {
 public:
  void add(std::int64_t linear, std::uint64_t mask) {
    if (elements_++ == 0) {
      first_ = linear;
      mask_ = mask;
    } else {
      if (elements_ == 2) step_ = linear - last_;
      even_ = even_ && linear - last_ == step_;
    }
    last_ = linear;
    same_ = same_ && mask == mask_;
    bits_ |= mask;
    min_ = std::min(min_, std::popcount(mask));
    max_ = std::max(max_, std::popcount(mask));
    in_lanes_ |= std::uint64_t{1} << (static_cast<std::uint64_t>(linear) % lanes_of_warp);
    if (places_.size() < max_places) places_.push_back(linear);
  }

  [[nodiscard]] WrongBits found(const TensorSpec& spec) const {
    if (elements_ == 0) return {};
    return {elements_, first_, where(spec) + lanes_text() + bits_text()};
  }

 private:
  [[nodiscard]] std::string where(const TensorSpec& spec) const {
    if (elements_ == 1) return "";
    if (elements_ == spec.shape.elements()) return ", all of it";
    if (elements_ > 2 && even_)
      return step_ == 1 ? ", in a row" : fmt::format(", every {}{} from there", step_, ordinal_ending(step_));
    if (places_.size() < static_cast<std::size_t>(elements_)) return "";  // only a part of the places is stored
    return ", " + wrong_places(spec, places_).words;
  }

  // k elements fall into some L of 32 lanes by chance with probability C(32, L) (L / 32)^k at most: below 1e-6 for L =
  // k / 4 and k >= 8.
  [[nodiscard]] std::string lanes_text() const {
    const int used = std::popcount(in_lanes_);
    if (elements_ < 8 || elements_ < 4 * used || used > 8) return "";
    return fmt::format(", all in lane{} {} of {}", ending_of(in_lanes_), bit_ranges(in_lanes_), lanes_of_warp);
  }

  [[nodiscard]] std::string bits_text() const {
    const std::string_view each = elements_ == 1 ? "" : " of each";
    if (same_) return fmt::format(", in bit{} {}{}", ending_of(bits_), bit_ranges(bits_), each);
    return fmt::format(", in {} bit{} of each, among {}",
                       min_ == max_ ? std::to_string(min_) : fmt::format("{} to {}", min_, max_), max_ == 1 ? "" : "s",
                       bit_ranges(bits_));
  }

  static std::string_view ordinal_ending(std::int64_t number) {
    const std::int64_t tens = number % 100;
    if (tens >= 11 && tens <= 13) return "th";
    switch (number % 10) {
      case 1: return "st";
      case 2: return "nd";
      case 3: return "rd";
      default: return "th";
    }
  }

  std::int64_t elements_ = 0, first_ = -1, last_ = -1, step_ = 0;
  bool even_ = true, same_ = true;
  std::uint64_t mask_ = 0, bits_ = 0, in_lanes_ = 0;
  int min_ = 64, max_ = 0;
  std::vector<std::int64_t> places_;
};

}  // namespace

WrongBits wrong_bits(const TensorView& got, const TensorView& expected) {
  Picture picture;
  each_difference(got, expected, [&](std::int64_t linear, const std::byte* a, const std::byte* b, std::int64_t at) {
    picture.add(linear, load_bits(got.dtype(), a, at) ^ load_bits(got.dtype(), b, at));
  });
  return picture.found(got.spec());
}

ElementDifferences difference(const TensorView& got, const TensorView& expected, std::int64_t most) {
  const DType type = got.dtype();
  ElementDifferences found;
  using Apart = std::pair<double, std::int64_t>;  // negated index: of equal distances the first is kept
  std::priority_queue<Apart, std::vector<Apart>, std::greater<>> largest;
  each_difference(got, expected, [&](std::int64_t linear, const std::byte* a, const std::byte* b, std::int64_t at) {
    if (found.elements++ == 0) found.first = linear;
    const double apart = std::fabs(load(type, a, at) - load(type, b, at));
    largest.emplace(std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart, -linear);
    if (static_cast<std::int64_t>(largest.size()) > most) largest.pop();
  });
  found.largest.resize(largest.size());
  for (auto at = found.largest.rbegin(); at != found.largest.rend(); ++at, largest.pop()) *at = -largest.top().second;
  return found;
}

}  // namespace gpubench
