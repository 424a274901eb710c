#include "harness/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/reliability.h"
#include "harness/report/quantity.h"
#include "harness/report/reliability_text.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

std::string efficiency_cell(const CaseRecord& record, std::span<const CaseRecord> records) {
  const bool alone = std::any_of(records.begin(), records.end(), [&](const CaseRecord& other) {
    return other.c.ranks == 1 && other.verdict == Verdict::pass &&
           other.c.id_without_ranks() == record.c.id_without_ranks();
  });
  return alone || record.derived.ranks->efficiency ? share_or_unknown(sure_efficiency(record)) : "-";
}

std::string exposed_cell(const CaseRecord& record) {
  return record.derived.ranks->exposed_communication ? share_or_unknown(sure_exposed(record)) : "-";
}

int widest_line(std::string_view text) {
  int widest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    widest = std::max(widest, columns(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return widest;
}

}  // namespace

std::string scaling_text(std::span<const CaseRecord> records, const ConsoleStyle& style) {
  TextTable table({{"ranks", Align::right},
                   {"rate", Align::right},
                   {"efficiency", Align::right},
                   {"exposed", Align::right},
                   {"slowest", Align::right},
                   {"case"}});
  std::string list;
  for (const CaseRecord& record : records) {
    // A collective alone has nothing to be compared with, and nothing to hide behind.
    if (record.verdict != Verdict::pass || !record.derived.ranks || record.derived.collective) continue;
    if (record.c.has_mode("virtual")) continue;
    const RankSpread& ranks = *record.derived.ranks;
    const std::string rate = visible(rate_text_of(record));
    const std::string efficiency = efficiency_cell(record, records);
    const std::string exposed = exposed_cell(record);
    const std::string late = fmt::format("+{:.1f}%", 100.0 * ranks.straggler);
    const std::string id = visible(record.c.id_without_ranks());
    table.add({fmt::format("{}", record.c.ranks), rate, efficiency, exposed, late, id});
    list += id + "\n  " +
            fitted(fmt::format("{} ranks, {}, efficiency {}, exposed {}, slowest {}", record.c.ranks, rate, efficiency,
                               exposed, late),
                   style.width, 2) +
            "\n";
  }
  if (list.empty()) return "";
  const std::string rows = table.text();
  const bool fits = style.width == 0 || widest_line(rows) <= style.width;
  constexpr int usual_width = 92;
  return wrap(
             "Scaling, weak: the same work for each rank. Efficiency: rate per processor or SM over that of one rank, "
             "where "
             "that ran too; exposed: communication that computing does not hide; slowest: how late the last rank is. "
             "Unknown: "
             "the timings are too unsure to tell.",
             width_up_to(usual_width, style), 0) +
         "\n" + (fits ? rows : list) + "\n";
}

}  // namespace gpubench
