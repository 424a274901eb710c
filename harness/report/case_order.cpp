#include "harness/report/case_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/report/console.h"

namespace gpubench {
namespace {

double error_of(const CaseRecord& record) {
  const double error = record.parity.error_over_bound;
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

}  // namespace

std::vector<const CaseRecord*> worst_first(std::span<const CaseRecord> records) {
  std::vector<const CaseRecord*> order;
  for (const CaseRecord& record : records) order.push_back(&record);
  std::stable_sort(order.begin(), order.end(), [](const CaseRecord* a, const CaseRecord* b) {
    if (a->verdict != b->verdict) return worse(a->verdict, b->verdict) == a->verdict;
    return went_wrong(a->verdict) && error_of(*a) > error_of(*b);
  });
  return order;
}

}  // namespace gpubench
