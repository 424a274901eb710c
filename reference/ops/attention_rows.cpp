#include "reference/ops/attention_rows.h"

#include <cmath>
#include <map>
#include <set>

#include "reference/ops/bound_text.h"

namespace gpubench {
namespace {

AttentionRow locate(std::int64_t unit, std::int64_t s, std::int64_t heads, UnitOrder order) {
  const std::int64_t batch = unit / (s * heads);
  if (order == UnitOrder::row_then_head) return {batch, unit % heads, unit / heads % s};
  return {batch, unit / s % heads, unit % s};
}

}  // namespace

std::vector<HeadRows> by_kv_head(std::span<const std::int64_t> wanted, std::int64_t s, std::int64_t heads,
                                 std::int64_t group, UnitOrder order) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<WantedRow>> rows;
  for (std::size_t place = 0; place < wanted.size(); ++place) {
    const AttentionRow at = locate(wanted[place], s, heads, order);
    rows[{at.batch, at.head / group}].push_back({at, place});
  }
  std::vector<HeadRows> result;
  result.reserve(rows.size());
  for (auto& [head, of_head] : rows) result.push_back({head.first, head.second, std::move(of_head)});
  return result;
}

std::string key_count_text(const Attention& attention, std::int64_t s) {
  return (attention.causal ? "K <= " : "K = ") + std::to_string(s);
}

std::string score_bound_text(const Attention& attention, std::int64_t d, const ContractionRule& products) {
  return number_text(std::fabs(attention.scale)) + " (" + products.formula(d) + ")";
}

std::vector<std::int64_t> attention_landmarks(std::int64_t b, std::int64_t s, std::int64_t heads,
                                              std::span<const std::int64_t> rows, UnitOrder order) {
  std::set<std::int64_t> units;
  const auto insert = [&](std::int64_t batch, std::int64_t head, std::int64_t row) {
    const bool rows_first = order == UnitOrder::row_then_head;
    units.insert(rows_first ? (batch * s + row) * heads + head : (batch * heads + head) * s + row);
  };
  for (const std::int64_t wanted : rows) {
    const std::int64_t row = wanted < 0 ? s + wanted : wanted;  // negative: from the back
    if (row < 0 || row >= s) continue;
    insert(0, 0, row);
    insert(b - 1, heads - 1, row);
  }
  return {units.begin(), units.end()};
}

}  // namespace gpubench
