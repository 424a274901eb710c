#include "harness/cli/notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/error.h"
#include "harness/hardware/doctor.h"
#include "harness/plan/names.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// How many planned cases run the op.
int cases_with(std::string_view flag, const std::string& op, std::span<const PlannedCase> plan) {
  int cases = 0;
  std::set<std::string> kinds;
  for (const PlannedCase& planned : plan) {
    const Program program = planned.workload->build(planned.c);
    cases += runs_timed(program, op) ? 1 : 0;
    for (const OpCall& call : program.ops()) kinds.emplace(call.kind.name);
  }
  if (cases > 0) return cases;
  const std::vector<std::string> known(kinds.begin(), kinds.end());
  throw UsageError(fmt::format("{}: no planned case runs an op '{}'; kinds of ops: {}{}", flag, visible(op),
                               joined(known), did_you_mean(op, known)));
}

}  // namespace

void announce_injections(const Options& options, std::span<const PlannedCase> plan, const Environment& environment) {
  if (options.run.slowdown) {
    const int cases = cases_with("--inject-slowdown", options.run.slowdown->op, plan);
    environment.err << fmt::format(
        "SLOWED ON PURPOSE: the times of {} cases with op {} are made {:.3g}% longer (--inject-slowdown)\n", cases,
        visible(options.run.slowdown->op), 100.0 * options.run.slowdown->share);
  }
  if (options.run.error) {
    const int cases = cases_with("--inject-error", options.run.error->op, plan);
    environment.err << fmt::format(
        "WRONG ON PURPOSE: what op {} writes is corrupted in {} cases, kind {} (--inject-error): they have to fail\n",
        visible(options.run.error->op), cases, name(options.run.error->kind));
  }
}

void tell_error_without_effect(const Options& options, std::span<const CaseRecord> records,
                               const Environment& environment) {
  const auto has_it = [](const CaseRecord& record) {
    const auto& flags = record.summary.flags;
    return std::find(flags.begin(), flags.end(), wrong_flag) != flags.end();
  };
  if (!options.run.error || std::any_of(records.begin(), records.end(), has_it)) return;
  environment.err << fmt::format(
      "note: --inject-error: no case that ran has an op {} of its own: here it is fused into another; try --fuse off\n",
      visible(options.run.error->op));
}

std::string injected_text(const Options& options) {
  std::vector<std::string> parts;
  if (options.run.slowdown)
    parts.push_back(fmt::format("{}={}%", options.run.slowdown->op, 100.0 * options.run.slowdown->share));
  if (options.run.error) parts.push_back(fmt::format("{}={}", options.run.error->op, name(options.run.error->kind)));
  return joined(parts);
}

std::string busy_warning(const HostInfo& host) {
  const std::optional<Finding> finding = busy_finding(host);
  // The load average still counts what ended a minute ago, such as the build of this program; pressure does not.
  if (!finding || (finding->health == Health::note && host.cpu_pressure)) return "";
  return fmt::format("warning: {} ({}): timings will be unreliable, and the run takes longer than it says; {}",
                     finding->text, finding->code, finding->fix);
}

}  // namespace gpubench
