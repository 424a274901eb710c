#include "harness/cli/report_verbs.h"

#include <fmt/format.h>

#include "harness/cli/anonymity.h"
#include "harness/cli/exit_code.h"
#include "harness/core/error.h"
#include "harness/report/atomic_file.h"
#include "harness/report/report_reader.h"
#include "harness/report/visible_text.h"

namespace gpubench {

int validate_verb(const Options& options, const Environment& environment) {
  bool all_hold = true;
  for (const std::string& file : options.files) {
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

int export_verb(const Options& options, const Environment& environment) {
  try {
    Report report = read_report(options.files.front());
    if (const auto key = key_for(options, environment))
      report = anonymized(std::move(report), *key, users_of(environment));
    const std::string text = exported(report, *options.export_format);
    if (options.output.empty()) {
      environment.out << text;
    } else {
      write_atomically(options.output, text, options.writing);
    }
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  } catch (const ExportError& e) {
    throw UsageError(fmt::format("{}: {}", visible(options.files.front()), e.what()));
  } catch (const WriteError& e) {
    throw UsageError(fmt::format("--output: {}", e.what()));
  }
  return exit_codes::ok;
}

}  // namespace gpubench
