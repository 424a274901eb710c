// The rows that a run prints one by one, all at once.
#pragma once

#include <span>
#include <string>

#include "harness/report/console.h"

namespace gpubench {

inline std::string result_rows(std::span<const CaseRecord> records, const ConsoleStyle& style,
                               const RowLayout& layout = {}) {
  std::string text = result_header(style, layout);
  for (const CaseRecord& record : records) text += result_line(record, style, layout);
  return text;
}

}  // namespace gpubench
