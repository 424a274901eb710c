#include <fmt/format.h>

#include "harness/cli/exit_code.h"
#include "harness/cli/named_sides.h"
#include "harness/cli/terminal.h"
#include "harness/compare/gate.h"
#include "harness/core/error.h"
#include "harness/report/atomic_file.h"
#include "harness/report/export.h"
#include "harness/report/json.h"

namespace gpubench {
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
        throw UsageError(e.what());
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
