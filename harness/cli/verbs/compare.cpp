#include <fmt/format.h>

#include "harness/cli/compared_reports.h"
#include "harness/cli/verb.h"
#include "harness/compare/comparison.h"
#include "harness/compare/gate.h"
#include "harness/compare/invocation.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

enum class CompareFormat { table, markdown, json, csv };

}  // namespace

template <>
inline constexpr auto enum_names<CompareFormat> = std::to_array<std::string_view>({"table", "markdown", "json", "csv"});

namespace {

struct CompareOptions {
  std::vector<std::string> side_a, side_b;
  std::vector<std::vector<std::string>> sides;  ///< from --a and --b or the arguments; the first is A
  std::string noise;
  Tau tau{};
  CompareFormat format = CompareFormat::table;
};

std::string device_of(const Setup& setup) {
  for (const auto& [key, value] : setup.decisive) {
    if (key == "device.name") return value;
  }
  return setup.device_kind;
}

SideLabel label_of(std::size_t side, const SideFile& file) {
  SideLabel label;
  label.letter = side_letter(side);
  for (const Invocation& invocation : file.invocations) label.files.push_back(invocation.source);
  label.device = device_of(file.invocations.front().setup);
  return label;
}

std::string text_of(const std::vector<LabelledComparison>& all, CompareFormat format, const ConsoleStyle& style) {
  if (format == CompareFormat::json) return dump(comparison_json(all), 1) + "\n";
  if (format == CompareFormat::csv) return comparison_csv(all);
  std::string text;
  for (const LabelledComparison& one : all) {
    text += (text.empty() ? "" : "\n");
    text += format == CompareFormat::table ? comparison_table(one, style) : comparison_markdown(one);
  }
  return text;
}

// Compares the implementations of one report.
int compare_within(const Options& options, const Environment& environment) {
  const auto& o = options.of<CompareOptions>();
  const std::string& path = options.arguments.front();
  if (o.format != CompareFormat::table)
    throw UsageError("--format: one report alone is compared as a table; name its implementations, A.json#x A.json#y");
  try {
    const Report report = read_report(path);
    const std::string base = report.cases.empty() ? "" : report.cases.front().c.contender;
    const std::string text = contenders_text(report, base, console_style(options, Stream::out, environment));
    if (text.empty())
      throw UsageError(
          fmt::format("{}: has cases of one implementation only; compare needs a second report", visible(path)));
    environment.out << text.substr(1);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  return exit_codes::ok;
}

// Ratios with intervals. Exit code 4 if no case passed on both sides.
int compare_command(const Options& options, const Environment& environment) {
  const auto& o = options.of<CompareOptions>();
  if (o.sides.size() == 1) return compare_within(options, environment);
  std::vector<SidePaths> named;
  for (const std::vector<std::string>& paths : o.sides) named.push_back({"", paths});
  const std::vector<SideFile> sides = read_named_sides(named);
  const Setup& setup = sides.front().invocations.front().setup;
  std::optional<Noise> noise = sides.front().noise;
  if (!o.noise.empty()) noise = noise_at(o.noise, setup);
  if (!o.noise.empty() && fingerprint(noise->setup) != fingerprint(setup))
    throw UsageError(fmt::format("--noise: {} was calibrated on another set-up than that of {}", visible(noise->source),
                                 visible(sides.front().invocations.front().source)));
  std::vector<LabelledComparison> all;
  std::size_t cases = 0;
  for (std::size_t side = 1; side < sides.size(); ++side) {
    // Noise calibrated here does not apply to another machine.
    const bool applies = noise && fingerprint(noise->setup) == fingerprint(sides[side].invocations.front().setup);
    all.push_back({label_of(0, sides[0]), label_of(side, sides[side]),
                   compare(sides[0].invocations, sides[side].invocations, {o.tau, applies ? &*noise : nullptr})});
    cases += all.back().comparison.cases.size();
  }
  environment.out << text_of(all, o.format, console_style(options, Stream::out, environment));
  if (cases > 0) return exit_codes::ok;
  environment.err << "gpubench: no case passed on both sides: there is nothing to compare\n";
  return exit_codes::not_comparable;
}

void check_compare(Options& options) {
  auto& o = std::any_cast<CompareOptions&>(options.own);
  const bool lettered = !o.side_a.empty() || !o.side_b.empty();
  if (lettered && (o.side_a.empty() || o.side_b.empty() || !options.arguments.empty()))
    throw UsageError("compare takes either reports, A.json B.json, or both --a FILE... and --b FILE...");
  if (!lettered && options.arguments.empty())
    throw UsageError(
        "compare needs two reports at least: gpubench compare A.json B.json (or one of a run with several "
        "implementations)");
  if (lettered) o.sides = {o.side_a, o.side_b};
  for (const std::string& file : options.arguments) o.sides.push_back({file});
}

std::vector<Flag> compare_flags(std::span<const std::string> /*suites*/) {
  return together(under("compare",
                        row("--a", "FILE...", "side A: several runs of one build, or a baseline",
                            all_of(Takes::many, own(&CompareOptions::side_a))),
                        row("--b", "FILE...", "side B", all_of(Takes::many, own(&CompareOptions::side_b)))),
                  comparison_flags<CompareOptions>(),
                  under("compare", row("--format", "FORMAT", "table (default), markdown, json or csv",
                                       choice<CompareFormat>(own(&CompareOptions::format)))),
                  shared_flags({"--color", "--verbose"}), several_arguments("", ValueKind::file));
}

}  // namespace

Verb compare_verb() {
  return {.name = "compare",
          .arguments = "A.json B.json... [flags]",
          .summary = "compare reports: speed ratios with 95% intervals",
          .examples = R"(  gpubench compare old/report.json new/report.json
  gpubench compare --a old*.json --b new*.json --noise .     several runs a side, and the noise between runs
  gpubench compare a100.json h200.json --format markdown
)",
          .flags = compare_flags,
          .act = compare_command,
          .options = CompareOptions{},
          .check = check_compare};
}

}  // namespace gpubench
