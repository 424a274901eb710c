#include <fmt/format.h>

#include "harness/cli/compared_reports.h"
#include "harness/cli/verb.h"
#include "harness/compare/gate.h"
#include "harness/compare/invocation.h"
#include "harness/report/export.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

struct GateFlags {  // GateOptions are those of the rule
  std::vector<std::string> baselines, candidates;
  std::vector<std::string> allowed_differences;
  std::string noise;
  Tau tau{};
  bool strict = false;
  bool allow_missing = false;
  bool github = false;
};

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
      : options_(options), flags_(options.of<GateFlags>()), rules_{true, options.writing.mode}, environment_(all) {
    for (const auto& path : {options_.json, options_.junit, options_.markdown}) {
      if (!path || *path == "-") continue;
      try {
        require_writable(*path, rules_);  // fail before minutes of reading
      } catch (const WriteError& e) {
        fail_to_write("", e);
      }
    }
  }

  bool write(const GateResult& result, int code, const std::string& print) {
    const bool pure = options_.json == "-";
    if (pure) environment_.out << dump(gate_json(result, code), 1) << "\n";
    if (!pure && options_.json) file(*options_.json, dump(gate_json(result, code), 1) + "\n");
    if (options_.junit) file(*options_.junit, gate_junit(result, print, flags_.allow_missing));
    if (options_.markdown) file(*options_.markdown, gate_markdown(result, max_summary_bytes));
    if (!flags_.github) return written_;
    (pure ? environment_.err : environment_.out) << gate_annotations(result, flags_.allow_missing);
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

  const Options& options_;
  const GateFlags& flags_;
  WriteRules rules_;  ///< replaces existing files: a gate's output can be made again
  const Environment& environment_;
  bool written_ = true;
};

// Exit code 0: passed; 1: failed; 4: not comparable or inconclusive.
int gate_command(const Options& options, const Environment& environment) {
  const auto& o = options.of<GateFlags>();
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
  const bool pure = options.json == "-";
  const Stream stream = pure ? Stream::err : Stream::out;
  (pure ? environment.err : environment.out) << gate_table(result, code, console_style(options, stream, environment));
  const bool written = outputs.write(result, code, fingerprint(setup));
  return written || code != exit_codes::ok ? code : exit_codes::could_not_measure;
}

void check_gate(Options& options) {
  const auto& o = options.of<GateFlags>();
  if (o.baselines.empty() || o.candidates.empty())
    throw UsageError("gate needs both --baseline FILE... and --candidate FILE...");
}

std::vector<Flag> gate_flags(std::span<const std::string> /*suites*/) {
  return together(
      under(
          "compare",
          row("--baseline", "FILE...", "reports of the old build, or a saved baseline",
              all_of(Takes::many, own(&GateFlags::baselines))),
          row("--candidate", "FILE...", "reports of the new build", all_of(Takes::many, own(&GateFlags::candidates)))),
      comparison_flags<GateFlags>(),
      under(
          "compare",
          row("--strict", "", "an inconclusive case does not pass (exit 4)", turn_on(own(&GateFlags::strict))),
          row("--allow-diff", "KEY", "key of a set-up fact that may differ, as named in the error",
              all_of(Takes::each, own(&GateFlags::allowed_differences))),
          row("--allow-missing", "", "cases that the candidate lacks pass", turn_on(own(&GateFlags::allow_missing))),
          row("--json", "FILE", "everything as JSON; -: to standard output only", text(&Options::json)),
          row("--junit", "FILE", "JUnit XML", text(&Options::junit)),
          row("--markdown", "FILE", "a table for a pull request", text(&Options::markdown)),
          row("--github", "", "annotations, and the table in $GITHUB_STEP_SUMMARY", turn_on(own(&GateFlags::github)))),
      shared_flags({"--mode", "--color", "--verbose"}));
}

constexpr std::string_view gate_codes = R"(
exit codes
  0                       nothing regressed, and something was concluded
  1                       a case regressed, fails its check or is missing
  2                       usage, or a file that is not a report
  4                       other set-ups, or nothing could be concluded; with --strict: not everything
)";

}  // namespace

Verb gate_verb() {
  return {.name = "gate",
          .arguments = "--baseline FILE... --candidate FILE... [flags]",
          .summary = "fail if a candidate is slower than its baseline, or wrong",
          .description = "Exit code 0 or 1; 4 if nothing can be concluded.",
          .examples =
              R"(  gpubench gate --baseline a*.json --candidate b*.json            three reports a side or more
  gpubench gate --baseline a.json --candidate b.json --noise .    one each, after gpubench calibrate
  gpubench gate --baseline gpubench-baselines/main.json --candidate b*.json --github
)",
          .flags = gate_flags,
          .act = gate_command,
          .options = GateFlags{},
          .check = check_gate,
          .notes = gate_codes};
}

}  // namespace gpubench
