#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/terminal.h"
#include "harness/cli/verb_output.h"
#include "harness/cli/verbs.h"
#include "harness/compare/comparison.h"
#include "harness/compare/contenders.h"
#include "harness/compare/gate.h"
#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/report/atomic_file.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

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

}  // namespace

std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides) {
  std::vector<SideFile> read;
  try {
    read = read_sides(sides);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  std::vector<Invocation> all;  // a run on both sides is as little a second run as one that is there twice on one
  for (const SideFile& side : read) all.insert(all.end(), side.invocations.begin(), side.invocations.end());
  refuse_repeats(all, sides.size() == 1 ? sides.front().name : "");
  return read;
}

SideFile read_side_of(std::span<const std::string> paths, std::string_view flag) {
  const SidePaths side{flag, paths};
  return std::move(read_named_sides({&side, 1}).front());
}

std::string noise_file_name(const Setup& setup) { return fmt::format("noise-{}.json", fingerprint(setup)); }

Noise noise_at(const std::string& path, const Setup& setup) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? (std::filesystem::path(path) / noise_file_name(setup)).string() : path;
  if (folder && !std::filesystem::exists(file))
    throw UsageError(fmt::format("--noise: {} has no {}: this set-up was not calibrated; run gpubench calibrate",
                                 visible(path), noise_file_name(setup)));
  try {
    return read_noise(file);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--noise: {}", e.what()));
  }
}

namespace {

// The implementations of one report against each other.
int compare_within(const Options& options, const Environment& environment) {
  const CompareOptions& o = options.compare;
  const std::string& path = o.words.front();
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

}  // namespace

int compare_verb(const Options& options, const Environment& environment) {
  const CompareOptions& o = options.compare;
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
    // What was calibrated here says nothing of another machine.
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

namespace {

int exit_code_of(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::passed: return exit_codes::ok;
    case GateOutcome::failed: return exit_codes::verdict_failed;
    case GateOutcome::not_comparable:
    case GateOutcome::inconclusive: return exit_codes::not_comparable;
  }
  return exit_codes::not_comparable;
}

class GateOutputs {
 public:
  GateOutputs(const Options& options, const Environment& all)
      : options_(options.compare), rules_{true, options.writing.mode}, environment_(all) {
    for (const std::string& path : {options_.json, options_.junit, options_.markdown}) {
      if (path.empty() || path == "-") continue;
      try {
        require_writable(path, rules_);  // before minutes of reading go by
      } catch (const WriteError& e) {
        fail_to_write("", e);
      }
    }
  }

  // False where one of the files could not be written.
  bool write(const GateResult& result, int code, const std::string& print) {
    const bool pure = options_.json == "-";
    if (pure) environment_.out << dump(gate_json(result, code), 1) << "\n";
    if (!pure && !options_.json.empty()) file(options_.json, dump(gate_json(result, code), 1) + "\n");
    if (!options_.junit.empty()) file(options_.junit, gate_junit(result, print, options_.allow_missing));
    if (!options_.markdown.empty()) file(options_.markdown, gate_markdown(result, most_summary_bytes));
    if (!options_.github) return written_;
    (pure ? environment_.err : environment_.out) << gate_annotations(result, options_.allow_missing);
    const std::string summary = environment_.variable("GITHUB_STEP_SUMMARY");
    try {
      if (!summary.empty()) append_summary(summary, [&](std::size_t room) { return gate_markdown(result, room); });
    } catch (const WriteError& e) {
      complain(e.what());
    }
    return written_;
  }

 private:
  void file(const std::string& path, const std::string& text) {
    try {
      write_atomically(path, text, rules_);
    } catch (const WriteError& e) {
      complain(e.what());
    }
  }
  void complain(const std::string& what) {
    environment_.err << "gpubench: " << what << "\n";
    written_ = false;
  }

  const CompareOptions& options_;
  WriteRules rules_;  ///< what a gate says can be said again: it replaces what an earlier one said
  const Environment& environment_;
  bool written_ = true;
};

}  // namespace

int gate_verb(const Options& options, const Environment& environment) {
  const CompareOptions& o = options.compare;
  GateOutputs outputs(options, environment);
  const SidePaths named[] = {{"--baseline", o.baselines}, {"--candidate", o.candidates}};
  const std::vector<SideFile> sides = read_named_sides(named);
  const SideFile &baseline = sides[0], &candidate = sides[1];
  std::optional<Noise> noise = baseline.noise;
  const Setup& setup = baseline.invocations.front().setup;
  if (!o.noise.empty()) noise = noise_at(o.noise, setup);
  const GateResult result =
      run_gate(baseline.invocations, candidate.invocations,
               {o.tau, o.strict, o.allow_missing, o.allowed_differences, noise ? &*noise : nullptr});
  const int code = exit_code_of(result.outcome);
  const bool pure = o.json == "-";
  const Stream stream = pure ? Stream::err : Stream::out;
  (pure ? environment.err : environment.out) << gate_table(result, code, console_style(options, stream, environment));
  const bool written = outputs.write(result, code, fingerprint(setup));
  return written || code != exit_codes::ok ? code : exit_codes::could_not_measure;
}

}  // namespace gpubench
