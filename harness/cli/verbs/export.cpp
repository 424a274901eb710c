#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/recorder.h"
#include "harness/cli/verb.h"
#include "harness/report/export.h"

namespace gpubench {
namespace {

struct ExportOptions {
  std::optional<ExportFormat> format{};
};

int export_command(const Options& options, const Environment& environment) {
  try {
    Report report = read_report(options.arguments.front());
    const bool is_brief =
        std::ranges::any_of(report.cases, [](const CaseRecord& r) { return r.parity.passed.has_value(); });
    if (options.detail == Detail::full && is_brief) {
      throw UsageError(
          fmt::format("--detail full: {} is a brief report, which lacks the checks of single ops that passed",
                      visible(options.arguments.front())));
    }
    if (const auto key = key_for(options, environment))
      report = anonymized(std::move(report), *key, kept_flags(environment.suites), users_of(environment));
    const std::string text = exported(report, *options.of<ExportOptions>().format, options.detail);
    if (options.output.empty()) {
      environment.out << text;
    } else {
      write_atomically(options.output, text, options.writing);
    }
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  } catch (const ExportError& e) {
    throw UsageError(fmt::format("{}: {}", visible(options.arguments.front()), e.what()));
  } catch (const WriteError& e) {
    fail_to_write("--output", e);
  }
  return exit_codes::ok;
}

void check_export(Options& options) {
  if (!options.of<ExportOptions>().format)
    throw UsageError(fmt::format("export needs --format, one of {}", joined(texts<ExportFormat>())));
  if (options.detail == Detail::full && options.of<ExportOptions>().format != ExportFormat::report)
    throw UsageError("--detail full: only --format report has the checks of single ops");
  if (options.arguments.size() != 1)
    throw UsageError(fmt::format("export takes one report, {} were given", options.arguments.size()));
}

std::vector<Flag> export_flags(std::span<const std::string> /*suites*/) {
  return together(shared_flags({"--force", "--mode", "--anonymize", "--anonymize-key", "--detail"}),
                  under("output",
                        row("--format", "FORMAT", fmt::format("one of {}", fmt::join(enum_names<ExportFormat>, ", ")),
                            choice<ExportFormat>(own(&ExportOptions::format))),
                        row("-o,--output", "FILE", "output file, complete or not written (default: standard output)",
                            text(&Options::output))),
                  several_arguments("FILE", ValueKind::file));
}

}  // namespace

Verb export_verb() {
  return {.name = "export",
          .arguments = "--format FORMAT FILE [flags]",
          .summary = "convert a report to another tool's format",
          .examples = R"(  gpubench export --format csv report.json > report.csv
  gpubench export --format gbench report.json -o new.json      for compare.py benchmarks old.json new.json
  gpubench export --format report --anonymize report.json -o shared.json
  gpubench export --format prometheus report.json -o gpubench.prom      for node_exporter
)",
          .flags = export_flags,
          .act = export_command,
          .options = ExportOptions{},
          .check = check_export};
}

}  // namespace gpubench
