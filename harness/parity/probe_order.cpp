#include "harness/parity/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gpubench {
namespace {

// With operands of this range, pairs need no separate rows and columns: f64's sums keep 53 bits of 512 ones.
constexpr int wide_exponent = 64;
// Half of the lines show neighbours that are added at once, at most 32 in types of this range, and half all of k.
constexpr std::int64_t many_lines = 64;
constexpr std::array pair_positions{0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256};
// bf16, and sums in it, hold whole numbers up to here.
constexpr std::int64_t max_in_bf16 = 256;

}  // namespace

struct OrderProbe::Design {
  Design(ProbeData& of, std::int64_t line, bool denormals)
      : data(of), first_line(line), l(of.left_range(denormals)), r(of.right_range(denormals)) {}

  struct Table {
    std::vector<std::int64_t> positions;
    std::int64_t line = 0;  // of the first position, or pair, in both operands
  };
  ProbeData& data;
  std::int64_t first_line;
  Exponents l, r;  // of the operands
  std::vector<Table> tables;
  bool pairs = false;
  int one_left = 0, one_right = 0;
  int huge_left = 0, huge_right = 0;  // exponents; with masks, powers above the ones

  [[nodiscard]] std::int64_t line_of_pair(const Table& table, std::size_t i, std::size_t j) const {
    // Pairs in the order (0, 1), (0, 2), (1, 2), (0, 3) ...
    return table.line + static_cast<std::int64_t>(j * (j - 1) / 2 + i);
  }

  void put_masks(const Table& table) {
    const double left_huge = std::ldexp(1.0, huge_left), right_huge = -std::ldexp(1.0, huge_right);
    const double left_one = std::ldexp(1.0, one_left), right_one = std::ldexp(1.0, one_right);
    for (std::size_t i = 0; i < table.positions.size(); ++i) {
      const std::int64_t line = table.line + static_cast<std::int64_t>(i);
      for (std::size_t j = 0; j < table.positions.size(); ++j) {
        data.left(line, table.positions[j], i == j ? left_huge : left_one);
        data.right(line, table.positions[j], i == j ? right_huge : right_one);
        if (i != j) data.want(line, table.line + static_cast<std::int64_t>(j));
      }
    }
  }

  void put_pairs(const Table& table) {
    for (std::size_t j = 1; j < table.positions.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const std::int64_t line = line_of_pair(table, i, j);
        for (std::size_t l = 0; l < table.positions.size(); ++l) {
          const bool huge = l == i || l == j;
          data.left(line, table.positions[l], std::ldexp(1.0, huge ? huge_left : one_left));
          data.right(line, table.positions[l], std::ldexp(l == j ? -1.0 : 1.0, huge ? huge_right : one_right));
        }
        data.want(line, line);
      }
    }
  }

  bool design(const SumReading& sums, std::int64_t most) {
    if (!sums.plain || data.positions() < 3) return false;
    const auto has_bits_of = [&sums](DType type) {
      return sums.bits == significant_bits(type) || sums.partial_bits == significant_bits(type);
    };
    const bool in_f16 = data.output_type() == DType::f16 || has_bits_of(DType::f16);
    if (data.output_type() == DType::bf16 || has_bits_of(DType::bf16)) most = std::min(most, max_in_bf16);
    pairs = l.most < wide_exponent || r.most < wide_exponent;
    if (!pairs && in_f16) return false;  // no suite has such sums
    return pairs ? design_pairs(sums, most, in_f16, has_bits_of(DType::f16)) : design_masks(most);
  }

  [[nodiscard]] std::int64_t lines_left() const { return std::min(data.left_lines(), data.right_lines()) - first_line; }

  bool design_masks(std::int64_t most) {
    const std::int64_t lines = std::min({most, lines_left(), max_ordered});
    if (lines < 3) return false;
    const std::int64_t all = data.positions();
    huge_left = huge_right = wide_exponent;
    if (all <= lines) {
      tables.push_back({positions(0, 1, all), first_line});
    } else {
      const std::int64_t half = lines < 8 ? lines : lines / 2;
      tables.push_back({positions(0, 1, half), first_line});
      if (half < lines) tables.push_back({positions(0, all / half, half), first_line + half});
    }
    for (const Table& table : tables) put_masks(table);
    return true;
  }

  static std::vector<std::int64_t> positions(std::int64_t first, std::int64_t step, std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(first + i * step);
    return all;
  }

  // As many positions as lines allow for their pairs, and a number huge enough to swallow all ones.
  bool design_pairs(const SumReading& sums, std::int64_t most, bool in_f16, bool f16_sums) {
    const int least =
        in_f16 ? std::max(l.least + r.least, min_f16_exponent - data.factor_exponent()) : l.least + r.least;
    const int top = f16_sums ? std::min(max_f16_exponent, l.most + r.most) : l.most + r.most;
    const int kept = std::max(sums.kept.value_or(0), sums.fraction.value_or(-1) + 1);
    if (kept == 0) return false;
    const std::int64_t lines = lines_left();
    Table table;
    table.line = first_line;
    for (const std::int64_t position : pair_positions) {
      const std::size_t count = table.positions.size() + 1;
      const int ones = std::ilogb(static_cast<double>(count)) + 1;  // their sum is less than 2^ones
      if (position >= data.positions() || static_cast<std::int64_t>(count) > most ||
          static_cast<std::int64_t>(count * (count - 1) / 2) > lines || kept + ones + 1 > top - least)
        break;
      table.positions.push_back(position);
    }
    if (table.positions.size() < 4) return false;
    one_left = std::clamp(least / 2, std::max(l.least, least - r.most), std::min(l.most, least - r.least));
    one_right = least - one_left;
    huge_left = std::clamp(top / 2, std::max(l.least, top - r.most), std::min(l.most, top - r.least));
    huge_right = top - huge_left;
    tables.push_back(std::move(table));
    put_pairs(tables.front());
    return true;
  }

  [[nodiscard]] OrderReading read(const Table& table) const {
    const auto terms = table.positions.size();
    OrderReading reading;
    for (const std::int64_t position : table.positions) reading.places.push_back(position * data.step());
    std::vector<int> sizes(terms * terms, 0);
    const double one = std::ldexp(1.0, one_left + one_right);
    for (std::size_t i = 0; i < terms; ++i) {
      for (std::size_t j = 0; j < terms; ++j) {
        if (i == j) continue;
        const std::int64_t pair = pairs ? line_of_pair(table, std::min(i, j), std::max(i, j)) : 0;
        const double left = (pairs ? data.result(pair, pair)
                                   : data.result(table.line + static_cast<std::int64_t>(i),
                                                 table.line + static_cast<std::int64_t>(j))) /
                            one;
        // Not a count of ones: no tree.
        if (!(left >= 0.0) || !(left <= static_cast<double>(terms) - 2.0) || left != std::floor(left)) return reading;
        sizes[i * terms + j] = static_cast<int>(terms) - static_cast<int>(left);
      }
    }
    reading.tree = SummationTree::of_sizes(sizes, static_cast<int>(terms));
    return reading;
  }
};

OrderProbe::OrderProbe(ProbeData& data, std::int64_t first_line, const SumReading& sums, bool denormals,
                       std::int64_t most)
    : design_(std::make_unique<Design>(data, first_line, denormals)) {
  if (!design_->design(sums, most)) design_.reset();
}
OrderProbe::~OrderProbe() = default;
OrderProbe::OrderProbe(OrderProbe&&) noexcept = default;

bool OrderProbe::suffice(const ProbeData& data, std::int64_t first_line, std::int64_t most) {
  const bool wide = data.left_range().most >= wide_exponent && data.right_range().most >= wide_exponent;
  const std::int64_t all = std::min(data.left_lines(), data.right_lines()), left = all - first_line;
  const std::int64_t wanted = std::min({most, data.positions(), max_ordered});
  return wide && (left >= wanted || (all < wanted && left >= many_lines));
}

std::vector<OrderReading> OrderProbe::read() const {
  std::vector<OrderReading> all;
  for (const Design::Table& table : design_->tables) all.push_back(design_->read(table));
  return all;
}

std::string OrderReading::words() const { return tree ? tree->text(places) : "no single order: outputs differ"; }

std::string order_text(const std::vector<OrderReading>& readings, std::int64_t k) {
  std::string text;
  for (const OrderReading& reading : readings) {
    if (!text.empty()) text += "; ";
    const auto count = static_cast<std::int64_t>(reading.places.size());
    const std::int64_t apart = reading.places[1] - reading.places[0];
    const bool even = reading.places.back() - reading.places.front() == apart * (count - 1);
    if (count < k && even && apart == 1) {
      text += fmt::format("the first {}: ", count);
    } else if (count < k && even) {
      text += fmt::format("{} that are {} apart: ", count, apart);
    } else if (count < k) {
      text += fmt::format("{} of the first {}: ", count, reading.places.back() + 1);
    }
    const std::string words = reading.words();
    text += words == "in order" || words == "in reverse order" ? words + " of k" : words;
  }
  return text;
}

}  // namespace gpubench
