#include "tests/harness/report/format_readers.h"

#include "tests/harness/report/shell.h"
#include "tests/paths.h"

namespace gpubench {

std::string junit_problem(const std::string& document) {
  const TemporaryFile file("junit.xml", document);
  const ShellResult result = shell("xmllint --noout --schema " + std::string(paths::junit_schema) + " " + file.path());
  return result.status == 0 ? "" : result.out;
}

}  // namespace gpubench
