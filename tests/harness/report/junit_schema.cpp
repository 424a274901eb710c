#include "tests/harness/report/junit_schema.h"

#include "tests/harness/report/shell.h"

namespace gpubench {

std::string junit_problem(const std::string& document) {
  const TemporaryFile file("junit.xml", document);
  const ShellResult result = shell("xmllint --noout --schema " GPUBENCH_JUNIT_SCHEMA " " + file.path());
  return result.status == 0 ? "" : result.out;
}

}  // namespace gpubench
