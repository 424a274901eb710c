#include "harness/verify/wrong_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "harness/core/dtype.h"
#include "harness/parity/wrong_places.h"

namespace gpubench {
namespace {

constexpr std::int64_t bits_stretch = std::int64_t{1} << 16U;
constexpr std::size_t most_places = std::size_t{1} << 20U;  // of which the least box is worked out
constexpr std::uint64_t lanes_of_warp = 32;

// "12-14, 30", of a number's bits from 0.
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
    fewest_ = std::min(fewest_, std::popcount(mask));
    most_ = std::max(most_, std::popcount(mask));
    in_lanes_ |= std::uint64_t{1} << (static_cast<std::uint64_t>(linear) % lanes_of_warp);
    if (places_.size() < most_places) places_.push_back(linear);
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
    if (places_.size() < static_cast<std::size_t>(elements_)) return "";  // more than were kept
    return ", " + wrong_places(spec, places_).words;
  }

  // k elements fall into some L of 32 lanes by chance with C(32, L) (L / 32)^k at most: with L a quarter of k and k
  // from 8 on that is below 1e-6.
  [[nodiscard]] std::string lanes_text() const {
    const int used = std::popcount(in_lanes_);
    if (elements_ < 8 || elements_ < 4 * used || used > 8) return "";
    return fmt::format(", all in lane{} {} of {}", ending_of(in_lanes_), bit_ranges(in_lanes_), lanes_of_warp);
  }

  [[nodiscard]] std::string bits_text() const {
    const std::string_view each = elements_ == 1 ? "" : " of each";
    if (same_) return fmt::format(", in bit{} {}{}", ending_of(bits_), bit_ranges(bits_), each);
    return fmt::format(", in {} bit{} of each, among {}",
                       fewest_ == most_ ? std::to_string(fewest_) : fmt::format("{} to {}", fewest_, most_),
                       most_ == 1 ? "" : "s", bit_ranges(bits_));
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
  int fewest_ = 64, most_ = 0;
  std::vector<std::int64_t> places_;
};

}  // namespace

WrongBits wrong_bits(const TensorView& got, const TensorView& expected) {
  const DType type = got.dtype();
  std::vector<std::byte> a(static_cast<std::size_t>(bytes_of(type, bits_stretch))), b(a.size());
  Picture picture;
  for (std::int64_t first = 0; first < got.shape().elements(); first += bits_stretch) {
    const std::int64_t count = std::min(got.shape().elements() - first, bits_stretch);
    got.read_bits(first, count, a.data());
    expected.read_bits(first, count, b.data());
    if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(bytes_of(type, count))) == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t mask = load_bits(type, a.data(), i) ^ load_bits(type, b.data(), i);
      if (mask != 0) picture.add(first + i, mask);
    }
  }
  return picture.found(got.spec());
}

}  // namespace gpubench
