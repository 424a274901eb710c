#include "harness/compare/repeats.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/report/visible_text.h"

namespace gpubench {

bool one_run(const Invocation& a, const Invocation& b) {
  if (!a.id.empty() && !b.id.empty()) return a.id == b.id;
  return a.started_at == b.started_at && a.cases.size() == b.cases.size() &&
         std::equal(a.cases.begin(), a.cases.end(), b.cases.begin(), [](const MeasuredCase& x, const MeasuredCase& y) {
           return x.id == y.id && x.run.has_value() == y.run.has_value() &&
                  (!x.run || x.run->log_median == y.run->log_median);
         });
}

void refuse_repeats(std::span<const Invocation> invocations, std::string_view flag) {
  for (std::size_t i = 0; i < invocations.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (one_run(invocations[i], invocations[j]))
        throw UsageError(fmt::format("{}{}{} and {} are one report; a second run of the program is a second report",
                                     flag, flag.empty() ? "" : ": ", visible(invocations[j].source),
                                     visible(invocations[i].source)));
    }
  }
}

}  // namespace gpubench
