#include "harness/cli/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags.h"
#include "harness/cli/repeated_runs.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/hardware/doctor.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/plan/names.h"
#include "harness/report/console.h"
#include "harness/run/case_record.h"
#include "harness/shapes/shape_list.h"

namespace gpubench {
namespace {

std::vector<PlannedCase> cases_of_any_tier(Selection selection, std::span<const Suite> suites) {
  selection.tier = Tier::large;
  return declared_cases(suites, selection);
}

// The lowest tier with a case of the suite; empty: of any suite.
std::string first_tier_text(std::span<const PlannedCase> cases, std::string_view suite) {
  std::optional<Tier> first;
  int count = 0;
  for (const PlannedCase& planned : cases) {
    const Case& c = planned.c;
    if (!suite.empty() && c.suite != suite) continue;
    if (!first || c.tier < *first) count = 0;
    first = std::min(first.value_or(c.tier), c.tier);
    count += c.tier == *first ? 1 : 0;
  }
  if (!first) return "no tier has any";
  return fmt::format("the lowest tier with any is {}, {}: --tier {}", name(*first), count, name(*first));
}

}  // namespace

std::vector<std::string> suite_names(std::span<const Suite> suites) {
  std::vector<std::string> names;
  for (const Suite& suite : suites) names.push_back(suite.name);
  return names;
}

Selection selection_for(const Options& options, const DeviceChoice& device) {
  Selection selection = options.selection;
  selection.tier = options.tier.value_or(device.backend->name == "cuda" ? Tier::standard : Tier::quick);
  if (device.backend->precisions) selection.default_precisions = device.backend->precisions(device.capability);
  selection.ranks_there = device.devices > 0 ? device.devices - device.ordinal : usable_processors();
  selection.default_launch = device.backend->has_graphs ? LaunchMode::graph : LaunchMode::stream;
  if (!device.backend->has_graphs && !selection.launches.empty()) {
    throw UsageError(fmt::format("--launch: the {} backend has no graphs; leave the flag out", device.backend->name));
  }
  if (selection.virtual_ranks && !device.backend->has_virtual_ranks) {
    throw UsageError(fmt::format(
        "--virtual-ranks: ranks of the {} backend never share a device; leave the flag out, or use --device cuda",
        device.backend->name));
  }
  return selection;
}

Environment SelectedSuites::in(const Environment& environment) const {
  Environment own = environment;
  if (source) own.suites = listed;
  return own;
}

SelectedSuites selected_suites(const Options& options, const Environment& environment) {
  SelectedSuites selected;
  if (!options.shapes) return selected;
  ShapeList list = read_shape_list(*options.shapes);
  selected.listed = listed_suites(environment.suites, list, !options.selection.precisions.empty());
  selected.source = std::move(list.source);
  return selected;
}

void note_exceptions(const SelectedSuites& suites, const Environment& environment) {
  if (!suites.source) return;
  for (const ShapesExcept& except : suites.source->excepts)
    environment.err << fmt::format("note: {}: {}\n", visible(suites.source->file), visible(text_of(except)));
}

void expect_devices_for(const Selection& selection, const DeviceChoice& device) {
  if (device.devices == 0 || selection.virtual_ranks || selection.processes) return;  // each process has one device
  for (const int ranks : selection.ranks) {
    if (device.ordinal + ranks <= device.devices) continue;
    throw UsageError(fmt::format(
        "--ranks {}: each rank needs a separate GPU, but from {} on the driver reports {}; expected no more{}", ranks,
        device.word(), device.devices - device.ordinal,
        device.backend->has_virtual_ranks ? ", or --virtual-ranks to check them all on one" : ""));
  }
}

void note_suites_without_cases(const Selection& selection, std::span<const PlannedCase> plan,
                               const Environment& environment) {
  for (const std::string& suite : selection.suites) {
    const auto in_suite = [&suite](const PlannedCase& planned) { return planned.c.suite == suite; };
    if (suite == "all" || std::any_of(plan.begin(), plan.end(), in_suite)) continue;
    environment.err << fmt::format("note: suite {} has no such case at tier {}; {}\n", visible(suite),
                                   name(selection.tier),
                                   first_tier_text(cases_of_any_tier(selection, environment.suites), suite));
  }
}

std::vector<std::string> selection_warnings(const Options& options, const DeviceChoice& device, int processors) {
  std::vector<std::string> sentences;
  if (device.devices > 0) return sentences;
  if (options.run.energy)
    sentences.push_back("--energy: only GPUs measure energy; cases on this device will have none");
  const auto& ranks = options.selection.ranks;
  const int most = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
  const bool each_has_some = device.backend != nullptr && device.backend->ranks_have_processors;
  if (most > processors && !each_has_some) {
    sentences.push_back(
        fmt::format("--ranks {}: {} ranks share {} processor{}; they wait for each other, so the figures say nothing "
                    "about {} devices",
                    most, most, processors, processors == 1 ? "" : "s", most));
  }
  return sentences;
}

int refuse_empty(const Selection& selection, const Environment& environment) {
  std::string text = fmt::format("no case matches: tier {}", name(selection.tier));
  const auto add = [&](std::string_view flag, std::span<const std::string> words) {
    if (!words.empty()) text += fmt::format(", {} {}", flag, visible(joined(words, " ")));
  };
  add("--suite", selection.suites);
  add("--filter", selection.filters);
  add("--exclude", selection.excludes);
  add("--precision", selection.precisions);
  environment.err << "gpubench: " << text << "; "
                  << first_tier_text(cases_of_any_tier(selection, environment.suites), "")
                  << "; gpubench list shows cases\n";
  return exit_codes::nothing_ran;
}

std::vector<PlannedCase> named_by(const std::string& subject, std::span<const PlannedCase> declared) {
  std::vector<PlannedCase> by_name, by_part;
  for (const PlannedCase& one : declared) {
    if (subject == one.c.workload || subject == one.c.suite + "/" + one.c.workload) by_name.push_back(one);
    if (one.id().find(subject) != std::string::npos) by_part.push_back(one);
  }
  return by_name.empty() ? by_part : by_name;
}

void refuse_subject(std::string_view verb, const std::string& subject, const Environment& environment) {
  std::vector<std::string> known;
  for (const Suite& suite : environment.suites) {
    for (const auto& workload : suite.workloads) {
      known.push_back(workload->info().name);
      known.push_back(suite.name + "/" + workload->info().name);
    }
  }
  throw UsageError(fmt::format("{}: no workload or case is called '{}'{}; see gpubench list suites", verb,
                               visible(subject), did_you_mean(subject, known)));
}

std::string id_pattern(const std::string& id) {
  std::string pattern;
  for (const char c : id) pattern += c == '.' || c == '+' ? std::string("\\") + c : std::string(1, c);
  return "^" + pattern + "$";
}

std::string rerun_prefix(const Options& options) {
  std::vector<std::string> words{options.started_by + "gpubench run"};
  words.insert(words.end(), options.rerun_words.begin(), options.rerun_words.end());
  return joined(words, " ");
}

void note_missing_recipes(const Selection& selection, const DeviceChoice& device, const Environment& environment) {
  const std::string lacking = recipes_lacking(device.capability);
  if (lacking.empty()) return;
  environment.err << fmt::format("note: {}; {}\n", lacking,
                                 selection.precisions.empty() ? "their cases are left out"
                                                              : "cases that --precision asks for will be unsupported");
}

void note_variables(const Options& options, const Environment& environment) {
  for (const std::string& sentence : unknown_variables(environment.variable_names)) {
    environment.err << "warning: " << sentence << "\n";
  }
  if (!options.from_environment.empty() && !options.quiet) {
    environment.err << "from the environment: " << variables_text(options.from_environment) << "\n";
  }
}

std::string rerun_line(const Options& options, const PlannedCase& planned) {
  RunOptions run = options.run;
  run.tier = planned.c.tier;
  run.rerun_prefix = rerun_prefix(options);
  return rerun_line(run, planned.c);
}

namespace {

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
        "INJECTED SLOWDOWN: the times of {} cases with op {} are made {:.3g}% longer (--inject-slowdown)\n", cases,
        visible(options.run.slowdown->op), 100.0 * options.run.slowdown->share);
  }
  if (options.run.error) {
    const int cases = cases_with("--inject-error", options.run.error->op, plan);
    environment.err << fmt::format(
        "INJECTED ERROR: the output of op {} is corrupted in {} cases, kind {} (--inject-error); they must fail\n",
        visible(options.run.error->op), cases, name(options.run.error->kind));
  }
}

void note_error_without_effect(const Options& options, std::span<const CaseRecord> records,
                               const Environment& environment) {
  const auto has_wrong_flag = [](const CaseRecord& record) {
    const auto& flags = record.summary.flags;
    return std::find(flags.begin(), flags.end(), wrong_flag) != flags.end();
  };
  if (!options.run.error || std::any_of(records.begin(), records.end(), has_wrong_flag)) return;
  environment.err << fmt::format(
      "note: --inject-error: no case ran op {} separately: it is fused into another op; try --fuse off\n",
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
  // A note about the load average gives way to a quiet pressure: the load also counts programs that have ended.
  if (!finding || (finding->health == Health::note && host.cpu_pressure)) return "";
  return fmt::format("warning: {} ({}): timings will be unreliable, and the run takes longer than estimated; {}",
                     finding->text, finding->code, finding->fix);
}

}  // namespace gpubench
