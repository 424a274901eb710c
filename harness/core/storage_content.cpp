#include "harness/core/storage_content.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace gpubench {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15ULL;

std::uint64_t term(const std::byte* at, std::uint64_t key) {
  std::array<std::uint64_t, 2> words;
  std::memcpy(words.data(), at, sizeof words);
  const Wide product = static_cast<Wide>(words[0] ^ key) * (words[1] ^ std::rotl(key, 32));
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

ChunkScan look_at_each(DType type, const std::byte* elements, std::int64_t count) {
  const ScanPattern look = scan_pattern(type);
  ChunkScan found;
  found.smallest = ~std::uint64_t{0};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = load_bits(type, elements, i);
    const std::uint64_t magnitude = bits & look.magnitude;
    if ((bits & look.mask) != look.pattern) {
      ++found.finite;
      found.largest = std::max(found.largest, magnitude);
      found.smallest = std::min(found.smallest, magnitude);
    } else {
      ++(bits == look.poison ? found.unwritten : magnitude == look.infinity ? found.infinite : found.nan);
    }
  }
  if (found.finite == 0) found.smallest = 0;
  return found;
}

// The common case, no suspects, is one vector loop.
template <class Bits>
ChunkScan look(DType type, const std::byte* elements, std::int64_t count) {
  const ScanPattern wide = scan_pattern(type);
  const auto mask = static_cast<Bits>(wide.mask);
  const auto pattern = static_cast<Bits>(wide.pattern);
  const auto magnitude_mask = static_cast<Bits>(wide.magnitude);
  Bits any = 0;
  Bits largest = 0;
  auto smallest = static_cast<Bits>(~Bits{0});
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, elements + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    const auto magnitude = static_cast<Bits>(bits & magnitude_mask);
    any |= static_cast<Bits>((bits & mask) == pattern);
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  if (any != 0 || count == 0) return look_at_each(type, elements, count);
  return {0, 0, 0, static_cast<std::int32_t>(count), largest, smallest};
}

}  // namespace

std::uint64_t fingerprint_terms(std::span<const std::byte> bytes, std::uint64_t first_term) {
  const std::size_t whole = bytes.size() / fingerprint_term_bytes;
  std::uint64_t key = first_term * golden_ratio;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    key += golden_ratio;
    sum += term(bytes.data() + i * fingerprint_term_bytes, key);
  }
  const std::span<const std::byte> rest = bytes.subspan(whole * fingerprint_term_bytes);
  if (rest.empty()) return sum;
  std::array<std::byte, fingerprint_term_bytes> last{};
  std::copy(rest.begin(), rest.end(), last.begin());
  return sum + term(last.data(), key + golden_ratio);
}

ScanPattern scan_pattern(DType type) {
  constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t poison = 0;
  store_poison(type, reinterpret_cast<std::byte*>(&poison));
  const auto floating = [poison](std::uint64_t exponent, std::uint64_t infinity, int bits) {
    return ScanPattern{exponent, exponent, poison, infinity, none >> (65 - bits)};
  };
  switch (type) {
    case DType::f64: return floating(0x7ff0000000000000ULL, 0x7ff0000000000000ULL, 64);
    case DType::f32: return floating(0x7f800000ULL, 0x7f800000ULL, 32);
    case DType::f16: return floating(0x7c00ULL, 0x7c00ULL, 16);
    case DType::bf16: return floating(0x7f80ULL, 0x7f80ULL, 16);
    case DType::f8_e5m2: return floating(0x7cULL, 0x7cULL, 8);
    case DType::f8_e4m3: return floating(0x7fULL, none, 8);
    case DType::f4_e2m1: return floating(0xfULL, none, 4);  // no NaN: the poison is the suspect
    case DType::i32: return {0xffffffffULL, poison, poison, none, 0};
    case DType::u8: return {0xffULL, poison, poison, none, 0};
  }
  return {};
}

ChunkScan scan_chunk(DType type, const std::byte* elements, std::int64_t count) {
  switch (bits_of(type)) {
    case 64: return look<std::uint64_t>(type, elements, count);
    case 32: return look<std::uint32_t>(type, elements, count);
    case 16: return look<std::uint16_t>(type, elements, count);
    case 8: return look<std::uint8_t>(type, elements, count);
    default: return look_at_each(type, elements, count);
  }
}

}  // namespace gpubench
