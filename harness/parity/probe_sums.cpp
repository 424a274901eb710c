#include "harness/parity/probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "harness/core/hash.h"
#include "harness/parity/probe_data.h"

namespace gpubench {
namespace {

// A result with fewer bits is not a plain sum.
constexpr int min_bits = 5;
// Sufficient exponents for f32's 24 bits and the alignment of tensor cores on 8-bit or wider products, on 4-bit ones
// (35 bits), and for f64's 53.
constexpr int enough_exponents = 28, enough_of_f4 = 38, enough_of_f64 = 56;
// Distances of a small number from two huge neighbours. No unit adds more than 64 products at once, so numbers twice as
// far apart are added in different steps.
constexpr std::array after_distances{2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 23, 24, 31, 32, 33, 48, 63, 64, 65};
constexpr std::int64_t beyond_a_step = 128;
// Counted numbers in one sum: bf16 holds whole numbers up to 256.
constexpr std::int64_t max_counted = 250;
// In an outer f32 sum, ones survive next to 2^E up to this E.
constexpr int max_outer_exponent = 23;

// +2^E at `huge`, s at `small`, -2^E at `opposite`.
struct Window {
  std::int64_t huge, small, opposite;
  std::array<std::int64_t, 2> ones{-1, -1};    // columns of s = 1 and -1: the first of each variant
  std::array<std::int64_t, 2> halves{-1, -1};  // of 1.5 and -1.5

  [[nodiscard]] std::int64_t length() const { return opposite - huge; }
  // Whether all three are in different blocks of `block` neighbours.
  [[nodiscard]] bool apart(std::int64_t block) const {
    return block == 0 || (huge / block != small / block && small / block != opposite / block);
  }
};

}  // namespace

struct SumProbe::Design {
  Design(const CallSpecs& op, const OpProduct& product, std::uint64_t seed) : data(op, product), key(mix(seed)) {}

  ProbeData data;
  std::uint64_t key;
  ExponentPlan plan;
  std::vector<Window> windows;
  std::vector<std::pair<std::int64_t, std::int64_t>> after, before_end;  // distance and column
  std::int64_t before = -1, counted = -1, counted_step = 0, counted_ones = 0;
  std::int64_t next_column = 0;
  bool three_rows = false;

  [[nodiscard]] std::int64_t after_row() const { return plan.rows; }
  [[nodiscard]] std::int64_t before_row() const { return plan.rows + 1; }
  [[nodiscard]] std::int64_t last() const { return data.positions() - 1; }
  [[nodiscard]] std::int64_t last_even() const { return last() - last() % 2; }
  // Lines are negated at random, which must not change the readings.
  [[nodiscard]] double row_sign(std::int64_t row) const {
    return hash_at(key, static_cast<std::uint64_t>(row)) % 2 == 0 ? 1.0 : -1.0;
  }
  [[nodiscard]] double column_sign(std::int64_t column) const {
    return hash_at(~key, static_cast<std::uint64_t>(column)) % 2 == 0 ? 1.0 : -1.0;
  }

  [[nodiscard]] std::optional<std::int64_t> columns(std::int64_t count) {
    if (next_column + count > data.right_lines()) return std::nullopt;
    return std::exchange(next_column, next_column + count);
  }
  void put_right(std::int64_t column, std::int64_t position, double value) {
    data.right(column, position, column_sign(column) * value);
  }
  void put_left(std::int64_t row, std::int64_t position, int exponent) {
    data.left(row, position, row_sign(row) * std::ldexp(1.0, exponent));
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return std::ldexp(data.result(row, column), -plan.unit()) * row_sign(row) * column_sign(column);
  }
  [[nodiscard]] double of_exponent(int exponent, std::int64_t first_column) const {
    const int index = exponent - plan.first;
    return at(index % plan.rows, first_column + index / plan.rows);
  }

  void use(std::int64_t position) {
    for (int row = 0; row < plan.rows; ++row)
      put_left(row, position, position % 2 == 0 ? plan.left + row : plan.one_left);
  }
  std::int64_t put_window(const Window& w, double small) {
    const std::optional<std::int64_t> first = columns(plan.variants);
    if (!first) return -1;
    for (int variant = 0; variant < plan.variants; ++variant) {
      const std::int64_t column = *first + variant;
      const double huge = std::ldexp(1.0, plan.right + variant * plan.rows);
      put_right(column, w.huge, huge);
      put_right(column, w.small, std::ldexp(small, plan.one_right));
      put_right(column, w.opposite, -huge);
      for (int row = 0; row < plan.rows; ++row) data.want(row, column);
    }
    return *first;
  }
  void add(std::int64_t huge, std::int64_t small, std::int64_t opposite) {
    if (opposite > last_even() || small >= opposite || small <= huge) return;
    Window w{huge, small, opposite};
    for (const Window& other : windows) {
      if (other.small == small && other.opposite == opposite) return;
    }
    for (const std::size_t i : {0U, 1U}) w.ones[i] = put_window(w, i == 0 ? 1.0 : -1.0);
    if (w.ones[1] < 0) return;
    for (const std::size_t i : {0U, 1U}) w.halves[i] = put_window(w, i == 0 ? 1.5 : -1.5);
    for (const std::int64_t position : {huge, small, opposite}) use(position);
    windows.push_back(w);
  }
  // The small number next to the first huge one; add_wide() puts it in the middle.
  void add_narrow(std::int64_t length) { add(0, 1, length); }
  void add_wide(std::int64_t length) { add(0, length / 2 + 1 - length / 2 % 2, length); }

  // From both ends, because the order may be backward.
  void add_after(bool from_end) {
    if (!three_rows || last() < 4) return;
    for (const std::int64_t huge : {std::int64_t{0}, std::int64_t{1}, last() - 1, last()})
      put_left(after_row(), huge, plan.high_left);
    const double huge = std::ldexp(1.0, plan.high_right), one = std::ldexp(1.0, plan.one_right);
    const auto put = [&](std::int64_t first, std::int64_t second, std::int64_t small, std::int64_t row) {
      const std::optional<std::int64_t> column = columns(1);
      if (!column) return std::int64_t{-1};
      put_right(*column, first, huge);
      put_right(*column, second, -huge);
      put_right(*column, small, one);
      data.want(row, *column);
      return *column;
    };
    if (!from_end) {
      for (const std::int64_t position : {1, 2}) put_left(before_row(), position, plan.high_left);
      put_left(before_row(), 0, plan.one_left);
      before = put(1, 2, 0, before_row());
    }
    for (const std::int64_t distance : after_distances) {
      if (distance > last() - 2) break;  // the last two positions are huge
      const std::int64_t small = from_end ? last() - distance : distance;
      put_left(after_row(), small, plan.one_left);
      const std::int64_t column =
          from_end ? put(last(), last() - 1, small, after_row()) : put(0, 1, small, after_row());
      if (column >= 0) (from_end ? before_end : after).emplace_back(distance, column);
    }
  }

  // Ones along the first half, between two huge numbers at the ends.
  void add_counted() {
    const std::int64_t half = last_even() / 2;
    if (half < 4) return;
    counted_step = 2;
    while (half / counted_step > max_counted) counted_step *= 2;
    const std::optional<std::int64_t> first = columns(plan.variants);
    if (!first) return;
    counted = *first;
    for (int variant = 0; variant < plan.variants; ++variant) {
      const double huge = std::ldexp(1.0, plan.right + variant * plan.rows);
      put_right(counted + variant, 0, huge);
      put_right(counted + variant, last_even(), -huge);
      for (std::int64_t one = 1; one < half; one += counted_step)
        put_right(counted + variant, one, std::ldexp(1.0, plan.one_right));
      for (int row = 0; row < plan.rows; ++row) data.want(row, counted + variant);
    }
    for (std::int64_t one = 1; one < half; one += counted_step) {
      use(one);
      ++counted_ones;
    }
    use(0);
    use(last_even());
  }

  bool design() {
    if (data.positions() < 3) return false;
    const bool f4 = bits_of(data.left_type()) == 4;
    const Exponents left = data.left_range(), right = data.right_range();
    const int unit = min_unit(data);
    const int enough = f4 ? enough_of_f4 : data.left_type() == DType::f64 ? enough_of_f64 : enough_exponents;
    three_rows = data.left_lines() >= 8;
    const std::optional<ExponentPlan> found = plan_exponents(
        left, right, unit, enough, three_rows ? data.left_lines() - 2 : data.left_lines(), data.right_lines());
    if (!found) return false;
    plan = *found;
    // f16 sums overflow beyond 2^15: with operands of its range, single huge numbers stay below.
    const bool like_f16 = !f4 && left.most + right.most < max_exponent;
    plan.high = like_f16 ? std::min(plan.last, max_f16_exponent - unit) : plan.last;
    plan.high_left = std::min(left.most, plan.high + unit - right.least);
    plan.high_right = plan.high + unit - plan.high_left;
    const std::int64_t all = last_even();
    // The most important windows first, as long as there are columns.
    add_narrow(2);
    add_narrow(all);
    add_after(false);
    add_wide(std::min<std::int64_t>(64, all));
    add_counted();
    add_wide(16);
    for (const std::int64_t length : {64, 16, 8, 32, 4}) add_narrow(length);
    for (const std::int64_t length : {std::int64_t{32}, std::int64_t{8}, all}) add_wide(length);
    for (std::int64_t length = 128; length < all; length *= 2) {
      // Random lengths between powers of two.
      const std::int64_t more = static_cast<std::int64_t>(hash_at(key, static_cast<std::uint64_t>(length)) %
                                                          static_cast<std::uint64_t>(length / 2));
      add_narrow(length);
      add_wide(std::min(all, length + 2 * (more / 2)));
    }
    add_after(true);
    return !windows.empty();
  }

  // The least E at which the small number is lost; none where it never is.
  [[nodiscard]] std::optional<int> lost_at(std::int64_t first_column, double small, bool& plain) const {
    std::optional<int> lost;
    for (int exponent = plan.first; exponent <= plan.last; ++exponent) {
      const double value = of_exponent(exponent, first_column);
      if (value == small) continue;
      if (!lost) lost = exponent;
      // From 2^E on the remainder is a multiple of two, its last place; or the sum has overflowed.
      if (std::isfinite(value) && std::fmod(value, 2.0) != 0.0) plain = false;
    }
    if (lost && *lost < min_bits) plain = false;
    return lost;
  }

  // How many neighbours are added at once: those among which the small number is lost next to two huge ones, at any
  // place. False where that could not be tried.
  [[nodiscard]] bool read_at_once(SumReading& reading) const {
    if (before < 0 || after.empty()) return false;
    reading.at_once_most = 1;
    const auto lost = [&](std::int64_t row, std::int64_t column) {
      const double value = at(row, column);
      return std::isfinite(value) && value != 1.0;
    };
    const double between = of_exponent(plan.high, windows.front().ones[0]);
    if (!lost(before_row(), before) || !std::isfinite(between) || between == 1.0) return true;
    std::optional<std::pair<std::int64_t, std::int64_t>> found;
    bool all_lost = false;
    for (const auto* side : {&after, &before_end}) {
      std::int64_t lost_to = 1;
      std::optional<std::int64_t> kept_from;
      bool regular = true;
      for (const auto& [distance, column] : *side) {
        if (!lost(after_row(), column)) {
          if (!kept_from) kept_from = distance;
        } else if (kept_from) {
          regular = false;
        } else {
          lost_to = distance;
        }
      }
      if (kept_from == 2) return true;  // two terms at a time
      if (!kept_from) all_lost = all_lost || !side->empty();
      if (!kept_from || !regular) continue;
      if (!found || lost_to + 1 < found->first) found = {lost_to + 1, *kept_from};
    }
    if (!found && !all_lost) return true;
    const auto step = static_cast<int>(data.step());
    reading.at_once_least = found ? static_cast<int>(found->first) * step : 3 * step;
    reading.at_once_most = found ? static_cast<int>(found->second) * step : 0;
    return true;
  }

  [[nodiscard]] SumReading read() const {
    SumReading reading;
    std::vector<std::array<std::optional<int>, 2>> lost;
    for (const Window& w : windows)
      lost.push_back({lost_at(w.ones[0], 1.0, reading.plain), lost_at(w.ones[1], -1.0, reading.plain)});
    if (!reading.plain) return reading;
    const auto bits_of_window = [&](std::size_t i) {
      std::optional<int> least;
      for (const std::optional<int>& one : lost[i]) {
        if (one && (!least || *one < *least)) least = one;
      }
      return least;
    };
    const auto lower = [](std::optional<int>& least, const std::optional<int>& other) {
      if (other && (!least || *other < *least)) least = other;
    };
    const bool tried = read_at_once(reading);
    const bool several = tried && reading.at_once_most != 1;
    const std::int64_t step = data.step();
    if (several) {
      if (const std::optional<int> in_step = bits_of_window(0)) reading.fraction = *in_step - 1;
    }
    // Through the register between steps: the opposite must be in another step than the huge number.
    const auto passes = [&](const Window& w) {
      if (!tried) return w.length() * step >= beyond_a_step;
      return !several || (reading.at_once_most > 0 && w.length() * step >= reading.at_once_most);
    };
    const std::int64_t near = tried ? std::max<std::int64_t>(16, 2 * reading.at_once_most / step) : last();
    std::optional<int> distant, any;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      lower(windows[i].length() <= near ? reading.kept : distant, bits_of_window(i));
      if (!passes(windows[i])) continue;
      lower(any, bits_of_window(i));
      if (windows[i].length() <= near) lower(reading.bits, bits_of_window(i));
    }
    if (!reading.bits) reading.bits = any;
    lower(reading.kept, reading.bits);
    if (reading.bits && distant && *distant < *reading.bits) reading.partial_bits = distant;
    if (!reading.kept && !distant) reading.more_than = plan.last;
    read_rounding(reading, lost, passes, near);
    read_emptied(reading);
    return reading;
  }

  // Three quarters of the last place at 2^bits: rounding to nearest gives a whole one.
  template <class Lost, class Passes>
  void read_rounding(SumReading& reading, const Lost& lost, const Passes& passes, std::int64_t near) const {
    if (!reading.bits) return;
    std::optional<SumRounding> found;
    bool alike = true;
    // If several are added at once, the small number must not share a step with a huge one, which cuts it.
    for (const bool apart : {true, false}) {
      for (std::size_t i = 0; i < windows.size() && !found; ++i) {
        const Window& w = windows[i];
        if (!passes(w) || w.length() > near || (apart && !w.apart(reading.at_once_most / data.step()))) continue;
        for (const std::size_t sign : {0U, 1U}) {
          // Lost at 2^bits: it met the huge number of its sign.
          if (w.halves[sign] < 0 || lost[i][sign] != reading.bits) continue;
          const double value = of_exponent(*reading.bits, w.halves[sign]) * (sign == 0 ? 1.0 : -1.0);
          if (value != 0.0 && value != 2.0) alike = false;
          const SumRounding rounding = value == 2.0 ? SumRounding::nearest : SumRounding::cut;
          if (found && found != rounding) alike = false;
          found = rounding;
        }
      }
    }
    if (alike) reading.rounding = found;
  }

  void read_emptied(SumReading& reading) const {
    if (counted < 0 || !reading.bits || *reading.bits >= max_outer_exponent) return;
    // So far above the register's last place that many ones at once are lost as well.
    const int exponent = std::min({*reading.bits + 9, max_outer_exponent, plan.last});
    const double left = of_exponent(exponent, counted);
    const auto ones = static_cast<double>(counted_ones);
    if (left == 0.0) reading.not_emptied_within = counted_ones * counted_step * data.step();
    if (!(left > 0.0) || !(left < ones) || left != std::floor(left)) return;
    reading.emptied_every = static_cast<std::int64_t>(ones - left) * counted_step * data.step();
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Window& w = windows[i];
      if (!w.apart(*reading.emptied_every / data.step())) continue;
      bool ignored = true;
      for (const std::size_t sign : {0U, 1U}) {
        const std::optional<int> one = lost_at(w.ones[sign], sign == 0 ? 1.0 : -1.0, ignored);
        if (one && (!reading.outer_bits || *one < *reading.outer_bits)) reading.outer_bits = one;
      }
    }
  }
};

SumProbe::SumProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed)
    : design_(std::make_unique<Design>(op, product, seed)) {
  if (!design_->design()) design_.reset();
}
SumProbe::~SumProbe() = default;
SumProbe::SumProbe(SumProbe&&) noexcept = default;

ProbeData* SumProbe::data() { return design_ == nullptr ? nullptr : &design_->data; }
SumReading SumProbe::read() const { return design_->read(); }

}  // namespace gpubench
