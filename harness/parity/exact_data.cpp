#include "harness/parity/exact_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "harness/core/hash.h"
#include "harness/parity/fill.h"
#include "harness/parity/on_threads.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_marked_pairs = 64;   // of a column: sums of about +-30
constexpr std::int64_t marked_pair = 2;         // |d|
constexpr std::int64_t max_added = 3;           // c_in and bias

// GELU sums are multiples of 2^-4 up to 3, with a bias of multiples of 2^-6 up to 1: in [-4, 4], exact in bf16.
constexpr double gelu_unit = 0x1p-4, gelu_bias_unit = 0x1p-6;
constexpr std::int64_t gelu_most = 48, gelu_most_bias = 64;

/// Significant bits of an exact sum, or a lower bound of them.
int exact_bits(const Math& math, int widest_operand) {
  if (math.accumulate == DType::f32 && math.fast_accumulation && widest_operand == 8) return 13;  // and a sign
  return static_cast<int>(-std::log2(unit_roundoff(math.accumulate)));
}

struct PairPlan {
  std::int64_t amplitude = 3;  ///< 1: only ones
  std::int64_t marked = 0;
  bool stored_exactly = false;
};

std::int64_t whole(double power) { return static_cast<std::int64_t>(std::min(power, 0x1p52)); }

/// `most`: the largest |sum| that is stored exactly.
std::optional<PairPlan> plan_of(const CallSpecs& op, const Contraction& sums, std::int64_t most, bool blocks) {
  const int widest = std::max(bits_of(op.inputs[sums.a].dtype), bits_of(op.inputs[sums.b].dtype));
  const std::int64_t exact = whole(std::exp2(exact_bits(op.call.math, widest)));
  const std::int64_t pairs = sums.extent / 2;
  const std::int64_t single = sums.ragged ? 2 : sums.extent % 2;  // products without a partner
  std::optional<PairPlan> plan;
  for (const std::int64_t amplitude : {3, 1}) {
    const std::int64_t largest = amplitude * amplitude * (blocks ? 4 : 1);  // of a product
    if (sums.extent * sums.repeats > exact / largest) continue;
    const std::int64_t room = most / sums.repeats - single * largest;
    const std::int64_t marked = room / (amplitude * marked_pair) - (sums.ragged ? 1 : 0);
    const bool fits = room >= 0 && (marked > 0 || pairs == 0) && !blocks;
    if (!plan || (fits && !plan->stored_exactly))
      plan = PairPlan{amplitude, std::min({pairs, max_marked_pairs, fits ? marked : pairs}), fits};
    if (fits) break;
  }
  return plan;
}

/// The stored bits of [-3, -1, 1, 3] times `unit`.
std::array<std::uint64_t, 4> palette_of(DType type, double unit) {
  std::array<std::uint64_t, 4> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::array<std::byte, sizeof(double)> stored{};
    store(type, stored.data(), unit * (2.0 * static_cast<double>(i) - 3.0));
    bits[i] = load_bits(type, stored.data());
  }
  return bits;
}
constexpr unsigned negative(unsigned index) { return 3U - index; }

/// Random indices of elements, 32 from each hash.
class Draw {
 public:
  Draw(std::uint64_t key, std::int64_t amplitude) : key_(key), amplitude_(amplitude) {}
  [[nodiscard]] unsigned at(std::int64_t element) {
    if (element >> 5U != block_) {
      block_ = element >> 5U;
      bits_ = hash_at(key_, static_cast<std::uint64_t>(block_));
    }
    const unsigned index = (bits_ >> (2U * (static_cast<unsigned>(element) & 31U))) & 3U;
    return amplitude_ == 1 ? 1U + (index & 1U) : index;
  }

 private:
  std::uint64_t key_;
  std::int64_t amplitude_;
  std::int64_t block_ = -1;
  std::uint64_t bits_ = 0;
};

class Maker {
 public:
  Maker(const CallSpecs& op, const Contraction& sums, const PairPlan& plan, double unit, std::uint64_t seed)
      : op_(op),
        sums_(sums),
        plan_(plan),
        unit_(unit),
        step_(plan.marked > 0 ? (sums.extent / 2 + plan.marked - 1) / plan.marked : 0),
        seed_(seed),
        of_a_(mix(seed)),
        of_b_(mix(seed + 1)),
        signs_(mix(seed + 2)),
        marks_(mix(seed + 3)) {}

  [[nodiscard]] HostTensor a() const { return products(op_.inputs[sums_.a], sums_.a_axis, 1.0, of_a_, false); }
  [[nodiscard]] HostTensor b() const { return products(op_.inputs[sums_.b], sums_.b_axis, unit_, of_b_, true); }

  [[nodiscard]] HostTensor added(std::size_t input, std::int64_t most, double unit) const {
    HostTensor tensor(op_.inputs[input]);
    const std::uint64_t key = hash(tensor.spec.name, seed_);
    for (std::int64_t e = 0; e < tensor.elements(); ++e) {
      const auto drawn = static_cast<std::int64_t>(hash_at(key, static_cast<std::uint64_t>(e)) %
                                                   static_cast<std::uint64_t>(2 * most + 1));
      tensor.set(e, unit * static_cast<double>(drawn - most));
    }
    return tensor;
  }

  /// Scales of blocks, 1 or 2, as stored.
  [[nodiscard]] HostTensor scales(std::size_t input) const {
    HostTensor tensor(op_.inputs[input]);
    const std::uint64_t key = hash(tensor.spec.name, seed_);
    for (std::int64_t e = 0; e < tensor.elements(); ++e) {
      const double power = static_cast<double>(hash_at(key, static_cast<std::uint64_t>(e)) & 1U);
      tensor.set(e, tensor.spec.dtype == DType::u8 ? 127.0 + power : 1.0 + power);
    }
    return tensor;
  }

  /// Sizes of groups that add up to `rows`; some groups are empty.
  [[nodiscard]] HostTensor sizes(std::size_t input, std::int64_t rows) const {
    HostTensor tensor(op_.inputs[input]);
    std::vector<std::int64_t> ends{rows};
    while (static_cast<std::int64_t>(ends.size()) < tensor.elements()) {
      const std::uint64_t drawn = hash_at(signs_, ends.size());  // two equal ones leave an empty group
      ends.push_back(drawn % 4 == 0 ? ends.back()
                                    : static_cast<std::int64_t>(mix(drawn) % static_cast<std::uint64_t>(rows + 1)));
    }
    std::ranges::sort(ends);
    for (std::int64_t e = 0, begin = 0; e < tensor.elements(); begin = ends[static_cast<std::size_t>(e++)])
      tensor.set(e, static_cast<double>(ends[static_cast<std::size_t>(e)] - begin));
    return tensor;
  }

 private:
  /// Common to all elements at one place along the summed axis. A place without a partner counts as a first.
  struct Place {
    std::int64_t back_to_first = 0;  ///< from the second of a pair
    bool is_second = false;
    bool is_opposite = false;  ///< the pair's sign, of a second
    std::int64_t mark = 0;     ///< columns whose marks have this offset mark the pair
  };
  struct Column {
    std::int64_t offset = 0;  ///< of the column's marks, less than their step
    bool is_up = false;       ///< d = 2
  };

  [[nodiscard]] std::vector<Place> places() const {
    std::vector<Place> places(static_cast<std::size_t>(sums_.extent));
    for (std::int64_t place = 0; place < sums_.extent; ++place) {
      const std::int64_t partner = sums_.ragged ? (place ^ 1) : sums_.extent - 1 - place;
      const std::int64_t pair = sums_.ragged ? place / 2 : std::min(place, partner);
      Place& at = places[static_cast<std::size_t>(place)];
      at.is_second = partner < place;
      if (!at.is_second) continue;
      at.back_to_first = place - partner;
      at.is_opposite = (hash_at(signs_, static_cast<std::uint64_t>(pair)) & 1U) != 0;
      if (step_ > 0) at.mark = (step_ - pair % step_) % step_;
    }
    return places;
  }

  [[nodiscard]] Column column(std::int64_t number) const {
    const std::uint64_t drawn = hash_at(marks_, static_cast<std::uint64_t>(number));
    return {step_ > 0 ? static_cast<std::int64_t>(drawn >> 1U) % step_ : -1, (drawn & 1U) != 0};
  }

  /// A factor; some pairs of each column of b are marked.
  [[nodiscard]] HostTensor products(const TensorSpec& spec, int axis, double unit, std::uint64_t key,
                                    bool has_marks) const {
    HostTensor tensor(spec);
    const auto palette = palette_of(spec.dtype, unit);
    std::byte* const bytes = tensor.bytes.data();
    const auto as = [&]<class Bits>(Bits) {
      draw_products(spec, axis, key, has_marks, [&](std::int64_t at, unsigned index) {
        const auto bits = static_cast<Bits>(palette[index]);
        std::memcpy(bytes + at * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
      });
    };
    switch (bits_of(spec.dtype)) {
      case 8: as(std::uint8_t{}); break;
      case 16: as(std::uint16_t{}); break;
      case 32: as(std::uint32_t{}); break;
      case 64: as(std::uint64_t{}); break;
      default:
        draw_products(spec, axis, key, has_marks,
                      [&](std::int64_t at, unsigned index) { store_bits(spec.dtype, bytes, at, palette[index]); });
    }
    return tensor;
  }

  template <class Write>
  void draw_products(const TensorSpec& spec, int axis, std::uint64_t key, bool has_marks, const Write& write) const {
    const AxisView along(spec.shape, axis);
    const std::vector<Place> places = this->places();
    in_parts(along.outer * along.extent, along.inner, bits_of(spec.dtype), [&](std::int64_t first, std::int64_t end) {
      std::vector<Column> columns(static_cast<std::size_t>(along.inner), Column{-1, false});
      Draw draw(key, plan_.amplitude);
      for (std::int64_t line = first; line < end; ++line) {
        const std::int64_t o = line / along.extent, at = line % along.extent;
        const Place& place = places[static_cast<std::size_t>(at % sums_.extent)];
        if (has_marks && (at % sums_.extent == 0 || line == first)) {
          const std::int64_t of_marks = (o * along.extent + at / sums_.extent) * along.inner;
          for (std::int64_t i = 0; i < along.inner; ++i) columns[static_cast<std::size_t>(i)] = column(of_marks + i);
        }
        const std::int64_t to = along.element(o, at, 0), from = along.element(o, at - place.back_to_first, 0);
        for (std::int64_t i = 0; i < along.inner; ++i) {
          unsigned index = draw.at(from + i);
          if (place.is_second && has_marks) {
            const Column& of = columns[static_cast<std::size_t>(i)];
            index = of.offset == place.mark ? moved(index, of.is_up) : negative(index);
          }
          write(to + i, place.is_opposite ? negative(index) : index);
        }
      }
    });
  }

  /// The palette index of d - b, which is -b plus or minus 2.
  [[nodiscard]] unsigned moved(unsigned b, bool up) const {
    const unsigned opposite = negative(b);
    const unsigned lowest = plan_.amplitude == 1 ? 1 : 0, highest = 3 - lowest;
    return opposite == highest || (opposite > lowest && !up) ? opposite - 1 : opposite + 1;
  }

  const CallSpecs& op_;
  const Contraction& sums_;
  const PairPlan& plan_;
  double unit_;
  std::int64_t step_;  ///< between marked pairs of a column; 0: none is marked
  std::uint64_t seed_, of_a_, of_b_, signs_, marks_;
};

HostTensor filled(TensorSpec spec, const Fill& how, std::uint64_t seed) {
  spec.fill = how;
  spec.placement = {};
  HostTensor tensor(spec);
  fill(tensor.spec, "exact", seed, tensor.bytes);
  return tensor;
}

struct ExactRecipe {
  Contraction sums;
  PairPlan plan;
  bool gelu = false;
};

std::optional<ExactRecipe> recipe_of(const CallSpecs& op) {
  const std::optional<Contraction> sums = definition(op.call.kind).contraction(op);
  if (!sums || sums->extent == 0 || op.call.math.split_k_in_output) return {};
  const Named<TensorSpec> operand(op.call, op.inputs);
  const auto has = [&](std::string_view name) { return operand.find(name) != nullptr; };
  const bool gelu = position_of(op.call.kind.outputs, op.call.attributes, "z").has_value();
  std::int64_t most = gelu ? gelu_most : whole(1.0 / unit_roundoff(op.outputs[0].dtype));
  if (!gelu) most -= max_added * ((has("c_in") ? 1 : 0) + (has("bias") ? 1 : 0));
  const std::optional<PairPlan> plan = plan_of(op, *sums, most, has("blocks_a"));
  return plan ? std::optional(ExactRecipe{*sums, *plan, gelu}) : std::nullopt;
}

}  // namespace

Exactness exactness(const CallSpecs& op) {
  const std::optional<ExactRecipe> recipe = recipe_of(op);
  return !recipe ? Exactness::none : recipe->plan.stored_exactly ? Exactness::results : Exactness::sums;
}

std::optional<ExactData> exact_data(const CallSpecs& op, std::uint64_t seed) {
  const std::optional<ExactRecipe> recipe = recipe_of(op);
  if (!recipe) return {};
  const auto& [sums, plan, gelu] = *recipe;
  const Named<TensorSpec> operand(op.call, op.inputs);
  const auto has = [&](std::string_view name) { return operand.find(name) != nullptr; };
  const Maker make(op, sums, plan, gelu ? gelu_unit : 1.0, seed);
  // Scales multiply products by a quarter and by 2.
  constexpr double scale_a = 0.25, scale_b = 2.0;
  const double unit = sums.factor * (has("scale_a") ? scale_a * scale_b : 1.0) * (gelu ? gelu_unit : 1.0);
  ExactData data;
  if (plan.stored_exactly) data.multiple_of = std::fabs(gelu ? gelu_bias_unit : unit);
  const std::vector<OperandName> names = operand_names(op.call.kind.inputs, op.call.attributes, op.inputs.size());
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::string& name = names[i].name;
    const auto constant = [&](double value) { return filled(op.inputs[i], Fill::constant(value), seed); };
    if (i == sums.a) {
      data.inputs.push_back(make.a());
    } else if (i == sums.b) {
      data.inputs.push_back(make.b());
    } else if (i >= sums.inputs) {
      data.inputs.push_back(constant(1.0));
    } else if (name == "scale_a" || name == "scale_b") {
      data.inputs.push_back(constant(name == "scale_a" ? scale_a : scale_b));
    } else if (name == "blocks_a" || name == "blocks_b") {
      data.inputs.push_back(make.scales(i));
    } else if (name == "sizes") {
      data.inputs.push_back(make.sizes(i, op.inputs[sums.a].shape[0]));
    } else if (name == "c_in") {
      data.inputs.push_back(make.added(i, max_added, unit / sums.c_in_factor));
    } else if (name == "bias") {
      data.inputs.push_back(recipe->gelu ? make.added(i, gelu_most_bias, gelu_bias_unit)
                                         : make.added(i, max_added, unit));
    } else if (name == "pre") {
      data.inputs.push_back(filled(op.inputs[i], Fill::pointwise(), seed));
    } else {
      return {};  // unknown operand
    }
  }
  return data;
}

}  // namespace gpubench
