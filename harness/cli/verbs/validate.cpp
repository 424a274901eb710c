#include <fmt/format.h>

#include "harness/cli/verb.h"

namespace gpubench {
namespace {

// Prints all problems of each file. Exit code 2 if there are any.
int validate_command(const Options& options, const Environment& environment) {
  bool all_hold = true;
  for (const std::string& file : options.arguments) {
    const Problems problems = problems_of_report(file);
    if (problems.none()) {
      environment.out << fmt::format("{}: valid\n", visible(file));
      continue;
    }
    all_hold = false;
    for (const std::string& problem : problems.kept()) environment.out << problem << "\n";
    if (const std::size_t more = problems.count() - problems.kept().size(); more > 0)
      environment.out << fmt::format("{}: and {}{} more\n", visible(file), problems.many() ? "at least " : "", more);
  }
  return all_hold ? exit_codes::ok : exit_codes::usage;
}

void check_validate(Options& options) {
  if (options.arguments.empty()) throw UsageError("validate needs at least one report to read");
}

std::vector<Flag> validate_flags(std::span<const std::string> /*suites*/) {
  return several_arguments("FILE...", ValueKind::file);
}

}  // namespace

Verb validate_verb() {
  return {.name = "validate",
          .arguments = "FILE...",
          .summary = "verify the schema and the consistency of reports",
          .examples = R"(  gpubench validate gpubench-out/20261121T042311Z/report.json
  gpubench validate results/*.json
)",
          .flags = validate_flags,
          .act = validate_command,
          .check = check_validate};
}

}  // namespace gpubench
