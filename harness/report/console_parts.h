// What the parts of the console's text share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/report/text_table.h"

namespace gpubench {

[[nodiscard]] Tone tone_of(Verdict verdict);

/// In the order in which they first appear.
[[nodiscard]] std::vector<std::string> suites_of(std::span<const CaseRecord> records);
[[nodiscard]] std::vector<CaseRecord> of_suite(std::span<const CaseRecord> records, const std::string& suite);

}  // namespace gpubench
