// gpubench selftest: injects faults to test the check with this machine's libraries.
#include <fmt/format.h>

#include <cmath>

#include "harness/cli/finding_records.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"
#include "harness/cli/verb_work.h"
#include "harness/report/json.h"
#include "harness/run/timing.h"
#include "harness/verify/selftest.h"

namespace gpubench {
namespace {

struct SelftestOptions {
  bool full = false;
  std::int64_t clean_launches = 0;  ///< 0: by --full
};

constexpr std::int64_t full_clean_launches = 1'000'000;
constexpr std::size_t max_faults_listed = 5;  ///< faults named per row; the JSON has all

std::string size_text(double size) { return std::isinf(size) ? "inf" : fmt::format("{:.3g}", size); }

std::string table_of(const SelftestResult& result, const ConsoleStyle& style) {
  TextTable table(columns_titled({"fault", "in", "must be caught by", "faults>", "caught>", "unseen>", "escaped>",
                                  "weakest caught, in units of its bound"}));
  for (const FaultRow& row : result.rows) {
    const Tone tone = !row.escaped.empty() ? Tone::bad : row.faults == 0 ? Tone::faint : Tone::plain;
    std::string below;
    const auto tell = [&](const std::vector<std::string>& names, std::string_view word) {
      for (std::size_t i = 0; i < std::min(names.size(), max_faults_listed); ++i)
        below += fmt::format("{}{}: {}", below.empty() ? "" : "; ", word, visible(names[i]));
      if (names.size() > max_faults_listed)
        below += fmt::format("; and {} more {}", names.size() - max_faults_listed, word);
    };
    tell(row.escaped, "escaped");
    if (style.verbosity > 0) tell(row.hidden, "unseen");
    table.add(
        {row.name, row.where, row.rule, std::to_string(row.faults), std::to_string(row.caught),
         std::to_string(row.unseen), std::to_string(row.escaped.size()),
         row.caught == 0 || row.weakest_name.empty() ? ""
                                                     : fmt::format("{}: {}", size_text(row.weakest), row.weakest_name)},
        tone, below);
  }
  return table.text(style);
}

std::string summary_of(const SelftestResult& result, const Completion& completion) {
  const std::string& trouble = completion.trouble;
  std::int64_t faults = 0, caught = 0, unseen = 0, escaped = 0;
  for (const FaultRow& row : result.rows) {
    faults += row.faults;
    caught += row.caught;
    unseen += row.unseen;
    escaped += static_cast<std::int64_t>(row.escaped.size());
  }
  std::string text = fmt::format(
      "{} faults in {} calls of {} kinds of ops: {} caught by the rule named, {} within the bounds of rounding, {} "
      "escaped\n{} correct launches of {} cases, {} elements judged in them: {} alarm{}\n",
      faults, result.ops, result.kinds, caught, unseen, escaped, result.clean_launches, result.clean_cases,
      result.clean_elements, result.alarms.size(), result.alarms.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(result.alarms.size(), max_faults_listed); ++i)
    text += fmt::format("  alarm: {}\n", visible(result.alarms[i]));
  if (!result.left_out.empty())
    text += fmt::format("{} cases left out, the first: {}\n", result.left_out.size(), visible(result.left_out.front()));
  if (!result.unmeasured.empty())
    text += fmt::format("{} faults not measured, the first: {}\n", result.unmeasured.size(),
                        visible(result.unmeasured.front()));
  if (!trouble.empty()) text += fmt::format("until its process {}\n", trouble);
  if (!trouble.empty() && !result.has_failed()) return text + "selftest not completed\n";
  if (!completion.complete && !result.has_failed()) return text + "selftest " + completion.interrupted() + "\n";
  if (result.ops == 0 && !result.has_failed())
    text += "no selected op is small enough for faults: select smaller cases, or larger ones too with --full\n";
  if ((!result.unmeasured.empty() || result.ops == 0) && !result.has_failed()) return text + "selftest not completed\n";
  return text + (result.passed() ? "selftest passed\n" : "selftest FAILED\n");
}

Json json_of(const SelftestResult& result, const DeviceInfo& device, std::uint64_t seed, const Completion& completion) {
  Json rows = Json::array();
  for (const FaultRow& row : result.rows) {
    Json one = {{"fault", row.name},    {"in", row.where},        {"rule", row.rule},    {"faults", row.faults},
                {"caught", row.caught}, {"escaped", row.escaped}, {"unseen", row.hidden}};
    if (!row.weakest_name.empty()) {
      one["weakest_caught"] = row.weakest_name;
      if (std::isfinite(row.weakest)) one["weakest_caught_over_bound"] = row.weakest;
    }
    rows.push_back(std::move(one));
  }
  Json json = {{"schema", "gpubench-selftest"},
               {"schema_version", 1},
               {"version", version()},
               {"device", device.name},
               {"seed", seed},
               {"passed", completion.complete && result.passed()},
               {"ops", result.ops},
               {"kinds", result.kinds},
               {"clean_launches", result.clean_launches},
               {"clean_cases", result.clean_cases},
               {"clean_elements", result.clean_elements},
               {"alarms", result.alarms},
               {"left_out", result.left_out},
               {"unmeasured", result.unmeasured},
               {"faults", std::move(rows)}};
  completion.add_to(json);
  return json;
}

void selftest_in_process(const Options& options, const WorkPlan& plan, const Environment& environment,
                         const WorkFindings& findings) {
  const std::unique_ptr<Backend> backend = open_for_work(plan.device, findings);
  RunOptions run = run_options(options, plan.selection.tier, environment, plan.device);
  run.alive = findings.alive;
  SelftestEffort effort;
  const Selection& asked = options.selection;
  effort.needs_every_family = asked.suites.empty() && asked.filters.empty() && asked.excludes.empty() &&
                              asked.precisions.empty() && asked.axes.empty() && asked.batches.empty();
  const auto& own = options.of<SelftestOptions>();
  if (own.full) {
    effort.clean_launches = full_clean_launches;
    effort.max_fault_flop = 2e7;
    effort.max_case_flop = 1e10;
    effort.kinds_per_error = 1000;
    effort.places_per_fault = 100;
  }
  if (own.clean_launches > 0) effort.clean_launches = own.clean_launches;
  Stopwatch since_last_report;
  const auto progress = [&](const std::string& now, const SelftestResult& so_far) {
    findings.now(now);
    if (since_last_report.seconds() < 1.0) return;
    findings.found({{"result", to_json(so_far)}});
    since_last_report = Stopwatch();
  };
  findings.found({{"result", to_json(selftest(*backend, plan.cases, run, effort, progress, environment.stop))}});
  findings.now("the end of the self-test");
}

// Exit code 0 if all faults are caught and no correct launch raises an alarm, else 1; 3 if the child crashed or hung.
int selftest_command(const Options& options, const Environment& environment) {
  const WorkPlan plan = work_plan(options, environment);
  if (plan.cases.empty()) return refuse_empty(plan.selection, environment);
  const auto work = [&](const WorkFindings& findings) { selftest_in_process(options, plan, environment, findings); };
  if (is_working_child(options)) return work_as_child(options, environment, work);
  const ResultFile json("--json", options.json.value_or(""), options.writing, environment);
  environment.catch_signals();
  StatusLine status(environment);
  SelftestResult result;
  const auto [info, trouble] = do_work(options, plan, environment, status, work, [&](const WorkFinding& finding) {
    if (finding.kind == "result") result = selftest_from_json(finding.content);
  });
  status.erase();
  const Stream stream = json.is_stdout() ? Stream::err : Stream::out;
  const int signal = environment.stop.load();
  const Completion completion{signal == 0 && trouble.empty(), static_cast<double>(result.steps_done),
                              static_cast<double>(result.steps), "steps", trouble};
  json.prose() << table_of(result, console_style(options, stream, environment)) << "\n"
               << summary_of(result, completion);
  json.write(json_of(result, info, options.run.seed, completion));
  if (signal != 0) return exit_code({{}, signal, false});
  if (result.has_failed()) return exit_codes::verdict_failed;
  if (!trouble.empty() || !result.unmeasured.empty()) return exit_codes::could_not_measure;
  if (result.clean_launches == 0 || result.ops == 0) return exit_codes::nothing_ran;
  return result.passed() ? exit_codes::ok : exit_codes::verdict_failed;
}

std::vector<Flag> selftest_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--device", "--deadline", "--seed", "--isolate", "--force", "--mode", "--worker-output",
                    "--worker-page", "--worker-share", "--color"},
                   suites),
      under("output", row("-v,--verbose", "", "also the faults that rounding hides", turn_on(&Options::verbose))),
      shared_flags({"--json"}),
      under("check",
            row("--quick", "", "small ops and 10,000 clean launches, in less than a minute (default)",
                {Takes::nothing,
                 [](Options& o, const std::string&, const std::string&) { own (&SelftestOptions::full)(o) = false; }}),
            row("--full", "", "every op, and a million clean launches", turn_on(own(&SelftestOptions::full))),
            row("--clean-launches", "N", "number of correct launches, which must raise no alarm",
                converted(own(&SelftestOptions::clean_launches), whole_from<std::int64_t>(1)))));
}

}  // namespace

Verb selftest_verb() {
  return {.name = "selftest",
          .arguments = "[flags]",
          .summary = "inject faults and verify that the check finds them",
          .description = "Faults of the catalogue in every op, and correct launches, which must raise no alarm.",
          .examples = R"(  gpubench selftest
  gpubench selftest --full --json selftest.json
  gpubench selftest --suite gemm --precision bf16 -v
)",
          .flags = selftest_flags,
          .act = selftest_command,
          .options = SelftestOptions{}};
}

}  // namespace gpubench
