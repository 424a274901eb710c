#include <fmt/format.h>

#include <map>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

struct Plans {
  std::size_t plans = 0;
  const CaseRecord* fastest = nullptr;  ///< of cases with this op alone
  std::string example;
};

std::string sums_text(const PlanArithmetic& arithmetic) {
  if (!arithmetic.bits) return "-";
  std::string text = fmt::format("{} bits", *arithmetic.bits);
  if (!arithmetic.rounding.empty()) text += ", " + arithmetic.rounding;
  if (arithmetic.at_once.value_or(1) > 1) text += fmt::format(", {} at once", *arithmetic.at_once);
  return text;
}

std::string or_none(const std::string& text) { return text.empty() ? "-" : text; }

DataTable arithmetic_table(const Side& side) {
  std::map<std::vector<std::string>, Plans> all;
  for (const CaseRecord& record : side.report->cases) {
    for (const PlanArithmetic& plan : record.parity.arithmetic.value_or(std::vector<PlanArithmetic>{})) {
      Plans& plans = all[{plan.kind, record.c.recipe, plan.implementation, or_none(plan.unit), sums_text(plan),
                          plan.emptied ? fmt::format("{}", *plan.emptied) : "-", or_none(plan.inputs),
                          or_none(plan.partial), or_none(plan.store), or_none(plan.denormals), or_none(plan.specials),
                          or_none(plan.order.empty() ? plan.note : plan.order), std::string(name(plan.verdict))}];
      ++plans.plans;
      if (plans.example.empty()) plans.example = record.key();
      const bool alone = record.parity.arithmetic->size() == 1 && record.derived.breakdown.empty();
      if (!alone || !ranked(record)) continue;
      if (plans.fastest == nullptr || record.derived.headline > plans.fastest->derived.headline)
        plans.fastest = &record;
    }
  }
  DataTable table;
  table.columns = {{"op"},
                   {"precision"},
                   {"by"},
                   {"rate", true},
                   {"unit"},
                   {"running sums"},
                   {"emptied every", true},
                   {"inputs"},
                   {"partial sums"},
                   {"stored"},
                   {"denormals"},
                   {"NaN, infinity"},
                   {"order of sums"},
                   {"verdict"},
                   {"plans", true},
                   {"for example"}};
  std::size_t plans = 0;
  for (const auto& [cells, of] : all) {
    std::vector<std::string> row = cells;
    row.insert(row.begin() + 3, of.fastest == nullptr ? "-" : marked_rate(*of.fastest));
    row.push_back(fmt::format("{}", of.plans));
    row.push_back(of.fastest == nullptr ? of.example : of.fastest->key());
    table.rows.push_back(std::move(row));
    plans += of.plans;
  }
  table.title = fmt::format("Arithmetic of {}", counted(plans, "plan"));
  return table;
}

}  // namespace

void add_arithmetic(Html& html, const Material& material) {
  for (const Side& side : material.sides) {
    const DataTable table = arithmetic_table(side);
    if (table.rows.empty()) continue;
    if (!side.letter.empty()) html.element("h4", side.name).raw("\n");
    add_folded_table(html, table, table.title);
  }
}

}  // namespace gpubench::page
