// Every value is a whole number times a power of two, exact in fp64: the only rounding is the conversion to the storage
// type. Uses no math library, whose results differ between machines.
#include "harness/parity/fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/on_threads.h"
#include "harness/parity/rounding.h"

namespace gpubench {
namespace {

constexpr std::int64_t block_elements = 1024;

// The centred sum of four uniform 16-bit numbers, in [-131070, 131070]. The standard deviation, 37837 = 1.15 x 2^15,
// stands for `scale`.
std::int64_t bell(std::uint64_t h) {
  const std::uint64_t sum = (h & 0xffffU) + ((h >> 16U) & 0xffffU) + ((h >> 32U) & 0xffffU) + (h >> 48U);
  return static_cast<std::int64_t>(sum) - 131070;
}
constexpr int bell_bits = 15;
constexpr std::int64_t one_deviation = std::int64_t{1} << bell_bits;

// One in eight elements of tiny_mix is about 2^-27 = 0.75e-8, the size of an optimizer's epsilon.
constexpr int tiny_exponent = -27;

// Deviations of norm_rows, as powers of two: variances 1, 100 eps and eps for eps = 1e-5; the fourth class is constant.
constexpr std::array<int, 3> row_exponents{0, -5, -9};

// The exponent of the power of two nearest to `scale` on a log scale.
int nearest_exponent(double scale) {
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);  // in [1/2, 1)
  return fraction * fraction >= 0.5 ? exponent : exponent - 1;
}

class Generator {
 public:
  Generator(const TensorSpec& spec, std::uint64_t key)
      : spec_(spec),
        fill_(spec.fill),
        key_(key),
        row_(spec.shape.rank() == 0 ? 1 : std::max<std::int64_t>(global_shape(spec)[-1], 1)),
        run_(global_run(spec)) {
    const bool scaled = fill_.kind != Fill::Kind::integers && fill_.kind != Fill::Kind::boundaries &&
                        fill_.kind != Fill::Kind::sequence && fill_.kind != Fill::Kind::constant &&
                        fill_.kind != Fill::Kind::masked;
    if (scaled && !(fill_.scale > 0.0 && std::isfinite(fill_.scale))) {
      throw ProgramError("fill of '" + spec.name + "' has scale " + std::to_string(fill_.scale) +
                         ", expected a positive number");
    }
    if (fill_.kind == Fill::Kind::sequence && !(fill_.scale >= 1.0)) {
      throw ProgramError("fill of '" + spec.name + "' has step " + std::to_string(fill_.scale) +
                         ", expected 1 or more");
    }
    if (fill_.low > fill_.high) throw ProgramError("fill of '" + spec.name + "' has low above high");
    exponent_ = scaled ? nearest_exponent(fill_.scale) : 0;
    step_ = std::ldexp(1.0, exponent_ - bell_bits);
  }

  // Elements [first, first + count) of the tensor, located in the global tensor.
  void generate(std::int64_t first, std::int64_t count, double* out) const {
    if (spec_.placement.spread.empty()) return generate_global(first, count, out);
    while (count > 0) {
      const std::int64_t run = std::min(count, run_ - first % run_);
      generate_global(global_index(spec_, first), run, out);
      first += run;
      count -= run;
      out += run;
    }
  }

 private:
  void generate_global(std::int64_t first, std::int64_t count, double* out) const {
    switch (fill_.kind) {
      case Fill::Kind::normal: normal(first, count, out); break;
      case Fill::Kind::positive: positive(first, count, out); break;
      case Fill::Kind::integers: integers(first, count, out); break;
      case Fill::Kind::boundaries: boundaries(first, count, out); break;
      case Fill::Kind::constant: std::fill_n(out, count, fill_.scale); break;
      case Fill::Kind::sequence: sequence(first, count, out); break;
      case Fill::Kind::norm_rows: norm_rows(first, count, out); break;
      case Fill::Kind::pointwise: pointwise(first, count, out); break;
      case Fill::Kind::tiny_mix: tiny_mix(first, count, out); break;
      case Fill::Kind::masked: masked(first, count, out); break;
    }
  }

  [[nodiscard]] std::uint64_t at(std::int64_t index) const { return hash_at(key_, static_cast<std::uint64_t>(index)); }

  void normal(std::int64_t first, std::int64_t count, double* out) const {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(bell(at(first + i))) * step_;
  }

  void positive(std::int64_t first, std::int64_t count, double* out) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t size = std::abs(bell(at(first + i)));
      out[i] = static_cast<double>(std::max<std::int64_t>(size, 1)) * step_;
    }
  }

  void integers(std::int64_t first, std::int64_t count, double* out) const {
    const std::uint64_t range = static_cast<std::uint64_t>(fill_.high) - static_cast<std::uint64_t>(fill_.low) + 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t h = at(first + i);
      out[i] = static_cast<double>(fill_.low + static_cast<std::int64_t>(range == 0 ? h : h % range));
    }
  }

  // Inner boundaries move from their even place by half a part at most, so that they keep their order.
  void boundaries(std::int64_t first, std::int64_t count, double* out) const {
    const std::int64_t parts = std::max<std::int64_t>(row_ - 1, 1);
    const std::int64_t most = fill_.high / (2 * parts);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t part = (first + i) % row_;
      const auto moved = static_cast<std::int64_t>(at(first + i) % static_cast<std::uint64_t>(2 * most + 1)) - most;
      const std::int64_t even = fill_.high / parts * part + fill_.high % parts * part / parts;
      out[i] = static_cast<double>(part == 0 || part == parts ? even : even + moved);
    }
  }

  void sequence(std::int64_t first, std::int64_t count, double* out) const {
    const auto step = static_cast<std::int64_t>(fill_.scale);
    const std::int64_t period = (fill_.high - fill_.low) / step + 1;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(fill_.low + (first + i) % period * step);
  }

  // Eight classes of rows: four variances, each with mean 0 and a mean of one deviation. A row without variance is
  // constant and nonzero, so that its mean can be wrong.
  void norm_rows(std::int64_t first, std::int64_t count, double* out) const {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t row = (first + i) / row_;
      const std::int64_t left = std::min(count - i, (row + 1) * row_ - (first + i));
      const auto variance = static_cast<std::size_t>(row % 4);
      const bool shifted = row / 4 % 2 == 1;
      if (variance == row_exponents.size()) {
        std::fill_n(out + i, left, std::ldexp(shifted ? 1.0 : -0.5, exponent_));
      } else {
        const double step = std::ldexp(step_, row_exponents[variance]);
        const std::int64_t mean = shifted ? one_deviation : 0;
        for (std::int64_t j = i; j < i + left; ++j) out[j] = static_cast<double>(bell(at(first + j)) + mean) * step;
      }
      i += left;
    }
  }

  // Half normal, half uniform within two deviations of 0 ([-4, 4) for the usual scale of 2).
  void pointwise(std::int64_t first, std::int64_t count, double* out) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t h = at(first + i);
      const std::int64_t uniform = static_cast<std::int64_t>(h & 0x1ffffU) - 0x10000;
      const std::array<std::int64_t, 2> either{bell(h),
                                               uniform};  // a table: a branch would be mispredicted half the time
      out[i] = static_cast<double>(either[mix(h) & 1U]) * step_;
    }
  }

  void tiny_mix(std::int64_t first, std::int64_t count, double* out) const {
    const double tiny_step = std::ldexp(1.0, tiny_exponent - bell_bits);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t h = at(first + i);
      out[i] = static_cast<double>(bell(h)) * ((mix(h) & 7U) == 0 ? tiny_step : step_);
    }
  }

  // BERT predicts 15% of its tokens (Devlin et al., arXiv 1810.04805). The first is never masked: a mean over no labels
  // is NaN.
  void masked(std::int64_t first, std::int64_t count, double* out) const {
    integers(first, count, out);
    for (std::int64_t i = 0; i < count; ++i) {
      if (first + i == 0) {
        if (out[i] == fill_.scale) out[i] += out[i] < static_cast<double>(fill_.high) ? 1.0 : -1.0;
      } else if (mix(at(first + i)) % 20 >= 3) {
        out[i] = fill_.scale;
      }
    }
  }

  const TensorSpec& spec_;
  Fill fill_;
  std::uint64_t key_;
  std::int64_t row_;
  std::int64_t run_;  // consecutive elements of a part that are consecutive in the whole
  int exponent_ = 0;
  double step_ = 1.0;  // unit of the whole numbers of bell()
};

void convert_to_bf16(const double* values, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!well_inside_f32(values[i])) {
      store(DType::bf16, out + 2 * i, values[i]);
      continue;
    }
    // Eight significant bits fit f32, whose upper half is bf16.
    const auto wide = std::bit_cast<std::uint32_t>(static_cast<float>(round_to_bf16(values[i])));
    const auto bits = static_cast<std::uint16_t>(wide >> 16U);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

void convert(DType type, const double* values, std::int64_t count, std::byte* out) {
  if (type == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(out + 4 * i, &value, sizeof value);
    }
  } else if (type == DType::bf16) {
    convert_to_bf16(values, count, out);
  } else {
    for (std::int64_t i = 0; i < count; ++i) store(type, out, i, values[i]);
  }
}

void fill_range(const TensorSpec& spec, const Generator& generator, bool dense, std::int64_t begin, std::int64_t end,
                std::byte* out) {
  std::array<double, block_elements> values{};
  std::array<std::byte, block_elements * 8> stored{};
  for (std::int64_t first = begin; first < end; first += block_elements) {
    const std::int64_t count = std::min(block_elements, end - first);
    generator.generate(first, count, values.data());
    convert(spec.dtype, values.data(), count, dense ? out + bytes_of(spec.dtype, first) : stored.data());
    if (!dense) write_bits(spec, first, count, stored.data(), out);
  }
}

}  // namespace

void fill(const TensorSpec& spec, std::string_view case_key, std::uint64_t seed, std::span<std::byte> out) {
  if (static_cast<std::int64_t>(out.size()) != spec.bytes()) {
    throw ProgramError("fill of '" + spec.name + "' was given " + std::to_string(out.size()) + " bytes, expected " +
                       std::to_string(spec.bytes()));
  }
  const Generator generator(spec, hash(spec.global_name(), hash(case_key, mix(seed))));
  const std::int64_t elements = spec.shape.elements();
  const bool dense = spec.layout.is_row_major(spec.shape);
  if (!dense) std::fill(out.begin(), out.end(), std::byte{0});  // padding is the same on every machine too

  in_parts(elements, 1, bits_of(spec.dtype),
           [&](std::int64_t first, std::int64_t end) { fill_range(spec, generator, dense, first, end, out.data()); });
}

}  // namespace gpubench
