// What an earlier report says about who computed what.
#pragma once

#include <map>
#include <string>

namespace gpubench {

/// Implementations by case id and op label, of the cases in a report that passed. Throws ReadError where the file
/// cannot be read or is no report.
[[nodiscard]] std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path);

}  // namespace gpubench
