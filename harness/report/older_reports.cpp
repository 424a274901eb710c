#include "harness/report/older_reports.h"

#include <string>
#include <unordered_set>

#include "harness/core/reliability.h"

namespace gpubench {
namespace {

constexpr int by_the_interval = 5;  // the minor version from which "noisy" is

void restate_noisy(Summary& summary) {
  std::erase(summary.flags, "noisy");
  if (timing_unreliable(summary) && half_width(summary)) summary.flags.insert(summary.flags.begin(), "noisy");
}

}  // namespace

void restate(Report& report, int minor) {
  if (minor >= by_the_interval) return;
  std::unordered_set<std::string> unsure;        // ids
  std::unordered_set<std::string> unsure_alone;  // ids without ranks, of cases of one
  for (CaseRecord& record : report.cases) {
    restate_noisy(record.summary);
    if (!timing_unreliable(record.summary)) continue;
    unsure.insert(record.id);
    if (record.c.ranks == 1) unsure_alone.insert(record.c.id_without_ranks());
  }
  for (CaseRecord& record : report.cases) {
    const bool own = unsure.contains(record.id);
    if (record.derived.ranks && (own || unsure_alone.contains(record.c.id_without_ranks())))
      record.derived.ranks->efficiency.reset();
    if (record.derived.peak && (own || unsure.contains(record.derived.peak->best_case))) {
      record.derived.peak->of_best.reset();
      record.derived.peak->best_case.clear();
    }
  }
}

}  // namespace gpubench
