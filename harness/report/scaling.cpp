#include "harness/report/scaling.h"

#include <fmt/format.h>

#include "harness/report/quantity.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

std::string cell(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", 100.0 * *share) : std::string("-");
}

}  // namespace

std::string scaling_text(std::span<const CaseRecord> records) {
  TextTable table({{"ranks", Align::right},
                   {"rate", Align::right},
                   {"efficiency", Align::right},
                   {"exposed", Align::right},
                   {"slowest", Align::right},
                   {"case"}});
  bool any = false;
  for (const CaseRecord& record : records) {
    // A collective alone has nothing to be compared with, and nothing to hide behind.
    if (record.verdict != Verdict::pass || !record.derived.ranks || record.derived.collective) continue;
    if (record.c.has_mode("virtual")) continue;
    const RankSpread& ranks = *record.derived.ranks;
    table.add({fmt::format("{}", record.c.ranks),
               format_quantity(record.derived.headline, record.derived.headline_unit), cell(ranks.efficiency),
               cell(ranks.exposed_communication), fmt::format("+{:.1f}%", 100.0 * ranks.straggler),
               visible(record.c.id_without_ranks())});
    any = true;
  }
  if (!any) return "";
  return "Scaling, weak: the same work for each rank. Efficiency: rate per processor or SM over that of one rank, "
         "where that\n"
         "ran too; exposed: communication that computing does not hide; slowest: how late the last rank is.\n" +
         table.text() + "\n";
}

}  // namespace gpubench
