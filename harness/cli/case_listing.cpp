#include "harness/cli/case_listing.h"

#include <fmt/format.h>

#include "harness/core/text/quantity.h"
#include "harness/report/json.h"
#include "harness/run/case_record.h"

namespace gpubench {

std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style) {
  TextTable table(
      {{"case"}, {"tier"}, {"work", Align::right}, {"moves", Align::right}, {"memory", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    table.add({planned.id(), std::string(name(planned.c.tier)), format_quantity(planned.cost.flop, "FLOP"),
               format_quantity(planned.cost.bytes, "B"), format_quantity(static_cast<double>(planned.bytes), "B"),
               planned.c.label});
  }
  return table.text(style);
}

Json cases_json(std::span<const PlannedCase> cases) {
  Json list = Json::array();
  for (const PlannedCase& planned : cases) {
    list.push_back({{"id", planned.id()},
                    {"suite", planned.c.suite},
                    {"workload", planned.c.workload},
                    {"recipe", planned.c.recipe},
                    {"tier", name(planned.c.tier)},
                    {"label", planned.c.label},
                    {"def_hash", definition_hash(planned)},
                    {"flop", planned.cost.flop},
                    {"bytes", planned.cost.bytes},
                    {"memory_bytes", planned.bytes}});
    if (planned.c.calls) list.back()["calls"] = *planned.c.calls;
  }
  return {{"cases", std::move(list)}};
}

std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores, const ConsoleStyle& style) {
  TextTable table({{"case"}, {"about", Align::right}, {"memory", Align::right}, {"work", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    const Estimate e = estimate(planned, effort, cores);
    table.add({planned.id(), format_duration(e.seconds), format_quantity(static_cast<double>(e.bytes), "B"),
               format_quantity(planned.cost.flop, "FLOP"), planned.c.label});
  }
  const Estimate all = estimate(cases, effort, cores);
  const std::string sum =
      fmt::format("{} cases, about {}, largest {}; nothing was run (--dry-run)", cases.size(),
                  format_duration(all.seconds), format_quantity(static_cast<double>(all.bytes), "B"));
  return table.text(style) + "\n" + fitted(sum, style.width, 0) + "\n";
}

}  // namespace gpubench
