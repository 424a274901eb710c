// The brief form of a case in a report: of each phase the check of its worst op, the checks of all others as sums.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "harness/core/enum_names.h"
#include "harness/core/record.h"

namespace gpubench {

/// What a report keeps of each case.
enum class Detail {
  brief,  ///< brief()
  full    ///< the whole record
};
template <>
inline constexpr auto enum_names<Detail> = std::to_array<std::string_view>({"brief", "full"});

/// The record as a brief report has it; a brief record stays as it is.
///
/// Parity::ops keeps the ops that did not pass, those with rejected candidates, and of each phase the one with the
/// largest error: of equal ones that of Parity::worst_op, else the first. Parity::passed and Parity::implementations
/// sum up the others. Where an error is NaN, all ops stay. A share of the breakdown that follows from its times becomes
/// 0, which JSON leaves out and record_from_json() computes.
[[nodiscard]] CaseRecord brief(CaseRecord record);

/// Adds to a count of a report, which may hold anything: the sum stays within its type.
template <class T>
void add_count(T& sum, T more) {
  sum = more > std::numeric_limits<T>::max() - sum ? std::numeric_limits<T>::max() : sum + more;
}

/// The implementations of its ops by label, of a brief record those of the full one.
[[nodiscard]] std::map<std::string, std::string> implementations_of(const CaseRecord& record);

}  // namespace gpubench
