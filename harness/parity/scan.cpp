#include "harness/parity/scan.h"

#include <algorithm>
#include <cstring>

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
    for (std::int64_t first = 0; first < elements; first += run) scan_run<Bits>(first, run, stride);
    return std::move(found_);
  }

 private:
  // Blocks small enough to stay in cache, large enough that the common case (nothing to see) is one vector loop.
  template <class Bits>
  void scan_run(std::int64_t first, std::int64_t count, std::int64_t stride) {
    constexpr std::int64_t block = 4096;
    const Suspicion<Bits> look = suspicion<Bits>(output_.dtype());
    const std::byte* base = output_.address(first);
    const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(Bits));
    for (std::int64_t begin = 0; begin < count; begin += block) {
      const std::int64_t end = std::min(count, begin + block);
      Bits any = 0;
      if (stride == 1) {
        for (std::int64_t i = begin; i < end; ++i) {
          any |= static_cast<Bits>((read_bits<Bits>(base + i * static_cast<std::int64_t>(sizeof(Bits))) & look.mask) ==
                                   look.pattern);
        }
      } else {
        for (std::int64_t i = begin; i < end; ++i)
          any |= static_cast<Bits>((read_bits<Bits>(base + i * step) & look.mask) == look.pattern);
      }
      if (any == 0) continue;
      for (std::int64_t i = begin; i < end; ++i) {
        if ((read_bits<Bits>(base + i * step) & look.mask) == look.pattern) note(first + i, base + i * step);
      }
    }
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
