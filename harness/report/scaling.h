// What a person reads of cases that ran on several ranks.
#pragma once

#include <span>
#include <string>

#include "harness/core/record.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// A table of the passing steps of several ranks: rate, efficiency against one rank, exposed communication and how late
/// the slowest rank is. Empty where there are none, and without virtual ranks, whose figures say nothing of devices. A
/// list where a terminal is too narrow for the table.
[[nodiscard]] std::string scaling_text(std::span<const CaseRecord> records, const ConsoleStyle& style = {});

}  // namespace gpubench
