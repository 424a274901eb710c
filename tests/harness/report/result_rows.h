// The rows that a run prints one by one, all at once.
#pragma once

#include <span>
#include <string>

#include "harness/report/console.h"

namespace gpubench {

inline std::string result_rows(std::span<const CaseRecord> records, const ConsoleStyle& style,
                               const RowLayout& layout = {}) {
  std::string text;
  RowSequence rows(style, layout);
  for (const CaseRecord& record : records) text += rows.next(record);
  return text;
}

}  // namespace gpubench
