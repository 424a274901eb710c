#include "harness/parity/scan.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace gpubench {
namespace {

// An element deserves a closer look when (bits & mask) == pattern: an exponent of all ones, or an integer's poison.
template <class Bits>
struct Suspicion {
  Bits mask;
  Bits pattern;
};

template <class Bits>
Suspicion<Bits> suspicion(DType type) {
  Bits poison = 0;
  store_poison(type, reinterpret_cast<std::byte*>(&poison));
  switch (type) {
    case DType::f64: return {static_cast<Bits>(0x7ff0000000000000ULL), static_cast<Bits>(0x7ff0000000000000ULL)};
    case DType::f32: return {static_cast<Bits>(0x7f800000U), static_cast<Bits>(0x7f800000U)};
    case DType::f16: return {static_cast<Bits>(0x7c00U), static_cast<Bits>(0x7c00U)};
    case DType::bf16: return {static_cast<Bits>(0x7f80U), static_cast<Bits>(0x7f80U)};
    case DType::f8_e5m2: return {static_cast<Bits>(0x7cU), static_cast<Bits>(0x7cU)};
    case DType::f8_e4m3: return {static_cast<Bits>(0x7fU), static_cast<Bits>(0x7fU)};
    case DType::i32:
    case DType::u8: return {static_cast<Bits>(~Bits{0}), poison};
  }
  return {0, 1};
}

constexpr std::size_t most_largest = 8;
constexpr std::size_t most_smallest = 4;

// The bits that say how large an element is: without its sign they are in the order of the magnitudes.
template <class Bits>
constexpr Bits magnitude_mask = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1U);

// The elements that come first by `Before`, at most so many; of equals those that came first.
template <class Bits, class Before>
class First {
 public:
  explicit First(std::size_t most) : most_(most) {}
  [[nodiscard]] bool wants(Bits magnitude) const {
    return found_.size() < most_ || Before()(magnitude, found_.back().first);
  }
  void offer(Bits magnitude, std::int64_t linear) {
    if (!wants(magnitude)) return;
    const auto after =
        std::find_if(found_.begin(), found_.end(), [&](const auto& other) { return Before()(magnitude, other.first); });
    found_.insert(after, {magnitude, linear});
    if (found_.size() > most_) found_.pop_back();
  }
  void append_to(std::vector<std::int64_t>& all) const {
    for (const auto& [magnitude, linear] : found_) all.push_back(linear);
  }

 private:
  std::size_t most_;
  std::vector<std::pair<Bits, std::int64_t>> found_;
};

template <class Bits>
struct Extremes {
  First<Bits, std::greater<>> largest{most_largest};
  First<Bits, std::less<>> smallest{most_smallest};
};

template <class Bits>
Bits read_bits(const std::byte* element) {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return bits;
}

class Scanner {
 public:
  Scanner(const TensorView& output, std::int64_t most) : output_(output), most_(static_cast<std::size_t>(most)) {}

  template <class Bits>
  Scan run() {
    const TensorSpec& spec = output_.spec();
    const std::int64_t elements = spec.shape.elements();
    const bool row_major = spec.layout.is_row_major(spec.shape);
    const bool strided = spec.layout.blocks.empty() && spec.shape.rank() > 0;
    const std::int64_t run = row_major ? elements : strided ? spec.shape[-1] : 1;
    const std::int64_t stride = row_major || !strided ? 1 : spec.layout.strides.back();
    Extremes<Bits> extremes;
    for (std::int64_t first = 0; first < elements; first += run) scan_run<Bits>(first, run, stride, extremes);
    if (is_float(output_.dtype())) {
      extremes.largest.append_to(found_.extremes);
      extremes.smallest.append_to(found_.extremes);
    }
    return std::move(found_);
  }

 private:
  // Blocks small enough to stay in cache, large enough that the common case (nothing to see) is one vector loop.
  template <class Bits>
  void scan_run(std::int64_t first, std::int64_t count, std::int64_t stride, Extremes<Bits>& extremes) {
    constexpr std::int64_t block = 4096;
    const Suspicion<Bits> look = suspicion<Bits>(output_.dtype());
    const std::byte* base = output_.address(first);
    const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(Bits));
    for (std::int64_t begin = 0; begin < count; begin += block) {
      const std::int64_t end = std::min(count, begin + block);
      const Sight<Bits> seen =
          stride == 1 ? glance<Bits>(base, begin, end, look) : glance<Bits>(base, begin, end, look, step);
      if (!seen.any && !extremes.largest.wants(seen.largest) && !extremes.smallest.wants(seen.smallest)) continue;
      for (std::int64_t i = begin; i < end; ++i) {
        const auto bits = read_bits<Bits>(base + i * step);
        if ((bits & look.mask) == look.pattern) {
          note(first + i, base + i * step);
        } else {
          const auto magnitude = static_cast<Bits>(bits & magnitude_mask<Bits>);
          extremes.largest.offer(magnitude, first + i);
          extremes.smallest.offer(magnitude, first + i);
        }
      }
    }
  }

  template <class Bits>
  struct Sight {
    Bits any = 0;
    Bits largest = 0;
    Bits smallest = magnitude_mask<Bits>;
  };
  // `step` is known to the compiler where elements lie side by side.
  template <class Bits>
  static Sight<Bits> glance(const std::byte* base, std::int64_t begin, std::int64_t end, Suspicion<Bits> look,
                            std::int64_t step = static_cast<std::int64_t>(sizeof(Bits))) {
    Sight<Bits> seen;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto bits = read_bits<Bits>(base + i * step);
      const auto magnitude = static_cast<Bits>(bits & magnitude_mask<Bits>);
      seen.any |= static_cast<Bits>((bits & look.mask) == look.pattern);
      seen.largest = std::max(seen.largest, magnitude);
      seen.smallest = std::min(seen.smallest, magnitude);
    }
    return seen;
  }

  void note(std::int64_t linear, const std::byte* element) {
    if (!poison_is_ambiguous(output_.dtype()) && is_poison(output_.dtype(), element)) {
      if (found_.unwritten++ == 0) found_.first_unwritten = linear;
    }
    if (found_.suspects.size() < most_) found_.suspects.push_back(linear);
  }

  const TensorView& output_;
  std::size_t most_;
  Scan found_;
};

}  // namespace

bool poison_is_ambiguous(DType type) { return !is_float(type) || size_of(type) == 1; }

Scan scan(const TensorView& output, std::int64_t most) {
  Scanner scanner(output, most);
  switch (size_of(output.dtype())) {
    case 8: return scanner.run<std::uint64_t>();
    case 4: return scanner.run<std::uint32_t>();
    case 2: return scanner.run<std::uint16_t>();
    default: return scanner.run<std::uint8_t>();
  }
}

}  // namespace gpubench
