#include "harness/parity/probes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

struct ValueProbe::Design {
  Design(ProbeData& of, std::uint64_t seed, std::optional<int> bits) : data(of), key(mix(seed)), sum_bits(bits) {}

  ProbeData& data;
  std::uint64_t key;
  std::optional<int> sum_bits;
  std::int64_t left_used = 0, right_used = 0;

  std::vector<double> left_numbers, right_numbers;
  std::int64_t left_one = -1, right_one = -1, left_first = -1, right_first = -1;
  struct Cell {
    std::int64_t left = -1, right = -1;
    double want = 0.0;
    std::string departure{};
  };
  std::vector<Cell> residuals, stores, specials;
  std::optional<Cell> left_denormal, right_denormal, output_denormal, overflow;

  [[nodiscard]] bool room(std::int64_t left, std::int64_t right) const {
    return left_used + left <= data.left_lines() && right_used + right <= data.right_lines();
  }
  std::int64_t left_line() { return left_used++; }
  std::int64_t right_line() { return right_used++; }
  void want(const Cell& cell) { data.want(cell.left, cell.right); }
  [[nodiscard]] double at(const Cell& cell) const { return data.result(cell.left, cell.right); }
  [[nodiscard]] std::int64_t some_position(std::uint64_t number) const {
    return static_cast<std::int64_t>(hash_at(key, number) % static_cast<std::uint64_t>(data.positions()));
  }

  void add_numbers() {
    const std::int64_t position = some_position(1);
    const DType out = data.output_type();
    const bool shows_left = significant_bits(out) >= significant_bits(data.left_type());
    const bool shows_right = significant_bits(out) >= significant_bits(data.right_type());
    if (!room(1, 1)) return;
    left_one = left_line();
    right_one = right_line();
    data.left(left_one, position, 1.0);
    data.right(right_one, position, 1.0);
    if (shows_left && room(width_numbers_tried, 0)) {
      left_numbers = width_numbers(data.left_type(), data.left_range(), key + 2);
      left_first = left_used;
      for (const double number : left_numbers) data.left(left_line(), position, number);
    }
    if (shows_right && room(0, width_numbers_tried)) {
      right_numbers = width_numbers(data.right_type(), data.right_range(), key + 3);
      right_first = right_used;
      for (const double number : right_numbers) data.right(right_line(), position, number);
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(left_numbers.size()); ++i) {
      data.want(left_first + i, right_one);
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(right_numbers.size()); ++j)
        data.want(left_first + i, right_first + j);
    }
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(right_numbers.size()); ++j)
      data.want(left_one, right_first + j);
  }

  // x^2 minus its rounded value, in either order: the rounding error of the product, if it is rounded only with the
  // sum.
  void add_residuals() {
    const DType type = data.left_type();
    if (type != data.right_type() || type != data.output_type() || (type != DType::f32 && type != DType::f64)) return;
    if (data.positions() < 4 || !room(1, 2)) return;
    const int half = significant_bits(type) / 2;
    const double x = 1.0 + std::ldexp(1.0, -half - (type == DType::f64 ? 1 : 0));
    const double squared = 1.0 + std::ldexp(2.0, -half - (type == DType::f64 ? 1 : 0));  // the tie goes to even
    const double lost = std::ldexp(1.0, 2 * (-half - (type == DType::f64 ? 1 : 0)));
    const std::int64_t row = left_line();
    for (const std::int64_t first : {0, 2}) {
      const std::int64_t column = right_line();
      const std::int64_t product = first == 0 ? 1 : 2, constant = first == 0 ? 0 : 3;
      data.left(row, product, x);
      data.left(row, constant, 1.0);
      data.right(column, product, x);
      data.right(column, constant, -squared);
      residuals.push_back({row, column, lost});
      want(residuals.back());
    }
  }

  // The exponents of both sides for a product of 2^exponent.
  [[nodiscard]] std::optional<std::pair<int, int>> shared(int exponent) const {
    const Exponents l = data.left_range(), r = data.right_range();
    const int low = std::max(l.least, exponent - r.most), high = std::min(l.most, exponent - r.least);
    if (low > high) return std::nullopt;
    const int left = std::clamp(exponent / 2, low, high);
    return std::pair(left, exponent - left);
  }

  // Sums halfway between two neighbours of the output's type, and one bit above and below.
  void add_stores() {
    const DType out = data.output_type();
    if (bits_of(out) != 16 || data.positions() < 4 || data.step() > 1) return;
    const int bits = significant_bits(out);
    const int least = data.left_range().least + data.right_range().least;
    const int base = std::max(0, bits + 4 + least);
    if (sum_bits && *sum_bits < bits + 5) return;
    const std::array exponents{base, base - bits + 1, base - bits, base - bits - 4};
    const std::array<std::array<double, 4>, 4> cases{{{1, 0, 1, 0}, {1, 1, 1, 0}, {1, 0, 1, 1}, {1, 0, 1, -1}}};
    if (!room(1, 8)) return;
    std::array<std::pair<int, int>, 4> halves;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto pair = shared(exponents[i]);
      if (!pair) return;
      halves[i] = *pair;
    }
    const std::int64_t row = left_line();
    for (std::size_t i = 0; i < 4; ++i) data.left(row, static_cast<std::int64_t>(i), std::ldexp(1.0, halves[i].first));
    for (const double sign : {1.0, -1.0}) {
      for (const auto& one : cases) {
        const std::int64_t column = right_line();
        double sum = 0.0;
        for (std::size_t i = 0; i < 4; ++i) {
          if (one[i] != 0.0)
            data.right(column, static_cast<std::int64_t>(i), std::ldexp(sign * one[i], halves[i].second));
          sum += std::ldexp(sign * one[i], exponents[i]);
        }
        stores.push_back({row, column, sum});
        want(stores.back());
      }
    }
  }

  void add_denormals() {
    if (data.step() > 1) return;
    constexpr int visible = -7;  // exponent of a denormal times its partner
    const auto denormal = [](DType type) { return smallest_normal(type) / 2.0; };
    const std::int64_t position = some_position(4);
    const auto add = [&](std::optional<Cell>& cell, double left, double right) {
      if (!room(1, 1) || left == 0.0 || right == 0.0) return;
      cell = Cell{left_line(), right_line(), left * right};
      data.left(cell->left, position, left);
      data.right(cell->right, position, right);
      want(*cell);
    };
    const auto partner = [&](DType type, DType other) {
      const double number = std::ldexp(1.0, visible - std::ilogb(denormal(type)));
      return number <= largest_finite(other) ? number : 0.0;
    };
    add(left_denormal, denormal(data.left_type()), partner(data.left_type(), data.right_type()));
    add(right_denormal, partner(data.right_type(), data.left_type()), denormal(data.right_type()));
    const int exponent = std::ilogb(smallest_normal(data.output_type())) - 2 - data.factor_exponent();
    const int left = exponent / 2, right = exponent - left;
    if (std::ldexp(1.0, left) >= smallest_normal(data.left_type()) &&
        std::ldexp(1.0, right) >= smallest_normal(data.right_type()))
      add(output_denormal, std::ldexp(1.0, left), std::ldexp(1.0, right));
  }

  void add_specials() {
    if (data.step() > 1 || data.positions() < 2 || !room(6, 6)) return;
    const std::int64_t first = some_position(5), second = (first + 1) % data.positions();
    const bool nans =
        std::isnan(round_to(data.left_type(), not_a_number)) && std::isnan(round_to(data.right_type(), not_a_number));
    const bool infinities = std::isinf(round_to(data.left_type(), infinite));
    const std::int64_t plain = left_line(), zeros = left_line();
    const std::int64_t one = right_line(), none = right_line(), minus = right_line(), difference = right_line();
    data.left(plain, first, 1.0);
    data.left(plain, second, 1.0);
    data.right(one, first, 1.0);
    data.right(minus, first, -1.0);
    data.right(difference, first, 1.0);
    data.right(difference, second, -1.0);
    specials.push_back({plain, one, 1.0, "a NaN or an infinity shows in other rows and columns"});
    specials.push_back({plain, difference, 0.0, "a NaN or an infinity shows in other rows and columns"});
    if (nans) {
      const std::int64_t row = left_line(), column = right_line();
      data.left(row, first, not_a_number);
      data.right(column, second, not_a_number);
      specials.push_back({row, one, not_a_number, "a NaN is lost"});
      specials.push_back({plain, column, not_a_number, "a NaN is lost"});
      specials.push_back({row, none, not_a_number, "NaN x 0 is not NaN"});
      specials.push_back({zeros, column, not_a_number, "0 x NaN is not NaN"});
    }
    if (infinities) {
      const std::int64_t row = left_line(), both = left_line();
      data.left(row, first, infinite);
      data.left(both, first, infinite);
      data.left(both, second, infinite);
      specials.push_back({row, one, infinite, "an infinity is lost"});
      specials.push_back({row, minus, -infinite, "an infinity is lost"});
      specials.push_back({row, none, not_a_number, "infinity x 0 is not NaN"});
      specials.push_back({both, difference, not_a_number, "infinity - infinity is not NaN"});
    }
    for (const Cell& cell : specials) want(cell);
    const auto largest = [](DType type) { return std::ldexp(1.0, std::ilogb(largest_finite(type))); };
    const double left = largest(data.left_type()), right = largest(data.right_type());
    if (left * right <= 2.0 * largest_finite(data.output_type()) || !room(1, 1)) return;
    overflow = Cell{left_line(), right_line(), infinite};
    data.left(overflow->left, first, left);
    data.right(overflow->right, first, right);
    want(*overflow);
  }

  void design() {
    add_numbers();
    add_residuals();
    add_stores();
    add_denormals();
    add_specials();
  }

  [[nodiscard]] std::optional<InputWidth> width(DType type, const std::vector<double>& numbers, bool left) const {
    if (numbers.empty()) return std::nullopt;
    std::vector<double> results;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto line = static_cast<std::int64_t>(i);
      results.push_back(left ? data.result(left_first + line, right_one) : data.result(left_one, right_first + line));
    }
    return width_of(type, numbers, results);
  }

  // Numbers that are exact alone may still be multiplied in pieces: then some products are rounded more than once.
  void look_at_products(ValueReading& reading) const {
    const bool f32 = data.left_type() == DType::f32 && data.right_type() == DType::f32;
    if (!f32 || data.output_type() != DType::f32 || !reading.a || !reading.b) return;
    if (reading.a->kind != InputWidth::Kind::exact || reading.b->kind != InputWidth::Kind::exact) return;
    const int bits = significant_bits(DType::f32);
    bool nearest = true, cut = true, close = true;
    for (std::size_t i = 0; i < left_numbers.size(); ++i) {
      for (std::size_t j = 0; j < right_numbers.size(); ++j) {
        const double product = left_numbers[i] * right_numbers[j];
        const double got =
            data.result(left_first + static_cast<std::int64_t>(i), right_first + static_cast<std::int64_t>(j));
        nearest = nearest && got == narrowed(product, bits, Narrowing::to_even);
        cut = cut && got == narrowed(product, bits, Narrowing::to_zero);
        // Allows for six or nine partial products, each rounded in f32, and for omitted ones.
        close = close && std::fabs(got - product) <= 16.0 * unit_roundoff(DType::f32) * std::fabs(product);
      }
    }
    if (nearest || cut) return;
    const InputWidth split = close ? InputWidth{InputWidth::Kind::three_bf16, bits, "three bf16, or pieces as long"}
                                   : InputWidth{InputWidth::Kind::unknown, 0, "unknown"};
    reading.a = reading.b = split;
  }

  [[nodiscard]] std::optional<StoreRounding> store() const {
    if (stores.empty()) return std::nullopt;
    const int bits = significant_bits(data.output_type());
    for (const auto& [how, kind] : {std::pair(Narrowing::to_even, StoreRounding::nearest_even),
                                    std::pair(Narrowing::to_away, StoreRounding::nearest_away),
                                    std::pair(Narrowing::to_zero, StoreRounding::toward_zero)}) {
      bool all = true;
      for (const Cell& cell : stores) all = all && at(cell) == narrowed(cell.want, bits, how);
      if (all) return kind;
    }
    return StoreRounding::other;
  }

  [[nodiscard]] std::optional<bool> kept(const std::optional<Cell>& cell) const {
    if (!cell) return std::nullopt;
    const double value = at(*cell);
    if (value == cell->want) return true;
    return value == 0.0 ? std::optional(false) : std::nullopt;
  }

  [[nodiscard]] ValueReading read() const {
    ValueReading reading;
    reading.a = width(data.left_type(), left_numbers, true);
    reading.b = width(data.right_type(), right_numbers, false);
    look_at_products(reading);
    const auto exact = [](const std::optional<InputWidth>& one) { return one && one->kind == InputWidth::Kind::exact; };
    if (!residuals.empty() && exact(reading.a) && exact(reading.b)) {
      bool fused = false, known = true;
      for (const Cell& cell : residuals) {
        fused = fused || at(cell) == cell.want;
        known = known && (at(cell) == cell.want || at(cell) == 0.0);
      }
      if (known) reading.fused = fused;
    }
    reading.store = store();
    reading.keeps_a = kept(left_denormal);
    reading.keeps_b = kept(right_denormal);
    reading.keeps_output = kept(output_denormal);
    if (data.turned()) {
      std::swap(reading.a, reading.b);
      std::swap(reading.keeps_a, reading.keeps_b);
    }
    for (const Cell& cell : specials) {
      if (!reading.departures) reading.departures.emplace();
      const double value = at(cell);
      const bool right = value == cell.want || (std::isnan(value) && std::isnan(cell.want));
      if (!right && (reading.departures->empty() || reading.departures->back() != cell.departure))
        reading.departures->push_back(cell.departure);
    }
    if (overflow) {
      const double value = at(*overflow) * std::ldexp(1.0, data.factor_exponent());
      reading.overflow = std::isinf(value)                                        ? Overflow::infinity
                         : std::isnan(value)                                      ? Overflow::nan
                         : std::fabs(value) == largest_finite(data.output_type()) ? Overflow::saturated
                                                                                  : Overflow::other;
    }
    return reading;
  }
};

ValueProbe::ValueProbe(ProbeData& data, std::uint64_t seed, std::optional<int> sum_bits)
    : design_(std::make_unique<Design>(data, seed, sum_bits)) {
  design_->design();
}
ValueProbe::~ValueProbe() = default;
ValueProbe::ValueProbe(ValueProbe&&) noexcept = default;

std::int64_t ValueProbe::next_line() const { return std::max(design_->left_used, design_->right_used); }
ValueReading ValueProbe::read() const { return design_->read(); }

}  // namespace gpubench
