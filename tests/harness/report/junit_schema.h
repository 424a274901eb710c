// Whether a JUnit document holds by junit.xsd, told by xmllint.
#pragma once

#include <string>

#include "tests/harness/report/shell.h"

namespace gpubench {

/// "" where it holds, else xmllint's complaint.
inline std::string junit_problem(const std::string& document) {
  const TemporaryFile file("junit.xml", document);
  const ShellResult result = shell("xmllint --noout --schema " GPUBENCH_JUNIT_SCHEMA " " + file.path());
  return result.status == 0 ? "" : result.out;
}

}  // namespace gpubench
