// Whether a JUnit document holds by junit.xsd, told by xmllint.
#pragma once

#include <string>

namespace gpubench {

/// "" where it holds, else xmllint's complaint.
[[nodiscard]] std::string junit_problem(const std::string& document);

}  // namespace gpubench
