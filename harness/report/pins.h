// What an earlier report says that a later run can hold to: who computed what, and how many runs a sample had.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gpubench {

/// Implementations by case id and op label, of the cases in a report that passed. Throws ReadError where the file
/// cannot be read or is no report.
[[nodiscard]] std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path);

/// Runs per sample by case id, of the cases in a report that passed. Throws ReadError likewise, and for numbers that no
/// run has.
[[nodiscard]] std::map<std::string, std::int64_t> read_batches(const std::string& path);

}  // namespace gpubench
