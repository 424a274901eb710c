#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "harness/cli/compared_reports.h"
#include "harness/cli/repeated_runs.h"
#include "harness/cli/verb.h"
#include "harness/compare/baseline.h"
#include "harness/compare/gate_rule.h"
#include "harness/measure/statistics.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

struct CalibrateOptions {
  std::vector<std::string> from;
  std::string keep;
  int runs = 10;
};

constexpr int max_runs = 1000;

struct Runs {
  std::vector<Invocation> invocations;
  int code = exit_codes::ok;  // the worst that still left a report
  Completion completion{.unit = "runs"};
};

// A process per run: the noise is that between processes.
Runs repeat(const Options& options, const Environment& environment) {
  const auto& o = options.of<CalibrateOptions>();
  const ReportFolder folder(o.keep, "calibrate");
  Runs runs;
  runs.completion.complete = false;
  runs.completion.requested = o.runs;
  for (int run = 1; run <= o.runs; ++run) {
    environment.err << fmt::format("calibrate: run {} of {}\n", run, o.runs) << std::flush;
    const std::string report = folder.report(run);
    std::vector<std::string> argv{environment.program, "run"};
    argv.insert(argv.end(), options.run_flags.begin(), options.run_flags.end());
    if (options.anonymize_key) argv.insert(argv.end(), {"--anonymize-key", *options.anonymize_key});
    argv.insert(argv.end(), {"--progress", "none", "--github", "off", "--force", "--json", report});
    const int code = run_child_process(argv, environment.stop, environment.err);
    if (const int signal = environment.stop.load(); signal != 0) {
      runs.code = exit_code({{}, signal, false});
      return runs;
    }
    // Exit codes 1 and 3 leave reports with valid cases; other errors would repeat.
    if (code != exit_codes::ok && code != exit_codes::verdict_failed && code != exit_codes::could_not_measure) {
      runs.code = code;
      return runs;
    }
    if (code == exit_codes::verdict_failed || runs.code == exit_codes::ok) runs.code = code;
    if (code == exit_codes::could_not_measure && !std::filesystem::exists(report)) return runs;
    SideFile one = read_side_of({&report, 1}, "calibrate");
    const auto is_partial = [](const Invocation& invocation) { return !invocation.complete; };
    if (std::ranges::any_of(one.invocations, is_partial)) return runs;
    std::move(one.invocations.begin(), one.invocations.end(), std::back_inserter(runs.invocations));
    runs.completion.done = run;
  }
  runs.completion.complete = true;
  return runs;
}

// The slowdowns that gates with this calibration detect.
std::string power_lines(const Noise& noise) {
  const auto median_case = [&](int runs) {
    std::vector<double> found;
    for (const auto& [id, one] : noise.cases) {
      if (runs < enough_runs && one.runs < enough_calibration) continue;
      found.push_back(detectable_slowdown(precision_of(one.spread, one.runs - 1.0, runs),
                                          static_cast<double>(noise.cases.size()), {}));
    }
    return found.empty() ? std::string("-") : fmt::format("{:.1f}%", 100.0 * median(found));
  };
  return fmt::format(
      "detectable slowdown with this calibration (90% power, median case): {} with 1 run a side, {} with 3, {} with "
      "10\n",
      median_case(1), median_case(3), median_case(10));
}

std::string summary(const Noise& noise, const std::string& file) {
  std::vector<double> spreads;
  for (const auto& [id, one] : noise.cases) spreads.push_back(one.spread);
  return fmt::format(
      "{} cases, {} runs: noise from run to run {:.2f}% (median), {:.2f}% (90th percentile), {:.2f}% (worst)\nset-up "
      "{}\nwritten to {}\n",
      noise.cases.size(), noise.invocations, 100.0 * median(spreads), 100.0 * quantile(spreads, 0.9),
      100.0 * *std::max_element(spreads.begin(), spreads.end()), fingerprint(noise.setup), visible(file));
}

// Runs this program several times with the given flags, or reads reports, and writes the noise file. Returns the worst
// exit code of the runs; 4 if no case passed in two runs; if the noise is 0, 2 for reports and 3 for runs.
int calibrate_command(const Options& options, const Environment& environment) {
  const auto& o = options.of<CalibrateOptions>();
  if (options.anonymize && !o.from.empty())
    throw UsageError(
        "--anonymize: existing reports are used unchanged; gpubench export --format report --anonymize makes them "
        "anonymous");
  Runs runs;
  if (o.from.empty()) {
    environment.catch_signals();
    runs = repeat(options, environment);
    if (runs.invocations.size() < 2) {
      environment.err << fmt::format(
          "calibrate: {} of {} runs ended with a report, but noise needs two; nothing was written\n",
          runs.invocations.size(), o.runs);
      return runs.code == exit_codes::ok ? exit_codes::could_not_measure : runs.code;
    }
    if (!runs.completion.complete)
      environment.err << fmt::format("calibrate: {}; the finished runs are used\n", runs.completion.interrupted());
  } else {
    runs.invocations = read_side_of(o.from, "--from").invocations;
    runs.completion.done = runs.completion.requested = static_cast<double>(runs.invocations.size());
  }
  // Checks set-ups, injected slowdowns and partial reports as for a baseline: later runs are compared with both.
  const std::string now = iso_time(environment.time_of_day());
  const Baseline checked = make_baseline("calibration", now, std::move(runs.invocations), std::nullopt);
  const Noise noise = noise_of(checked.invocations, now);
  if (noise.cases.empty()) {
    environment.err << "calibrate: no case passed in two runs; nothing was written\n";
    return runs.code == exit_codes::ok ? exit_codes::not_comparable : runs.code;
  }
  if (!has_noise(noise)) {
    constexpr std::string_view why =
        "calibrate: the noise from run to run is 0.00%, which no machine has: a gate would report any difference as a "
        "change; nothing was written";
    if (!o.from.empty()) throw UsageError(fmt::format("{}; are these copies of one report?", why));
    throw CannotMeasure(std::string(why));
  }
  const std::string file = options.output.empty() ? noise_file_name(noise.setup) : options.output;
  Json json = to_json(noise);
  runs.completion.add_to(json);
  try {
    write_atomically(file, dump(json, 1) + "\n", {true, options.writing.mode});
  } catch (const WriteError& e) {
    throw CannotMeasure(e.what());
  }
  environment.out << summary(noise, file) << power_lines(noise);
  if (noise.invocations < enough_calibration)
    environment.out << fmt::format("fewer than {} runs: the gate uses it only with {} reports a side\n",
                                   enough_calibration, enough_runs);
  return runs.code;
}

void check_calibrate(Options& options) {
  if (options.of<CalibrateOptions>().from.size() == 1)
    throw UsageError("--from: one report has no noise between runs; give at least two");
}

std::vector<Flag> calibrate_flags(std::span<const std::string> suites) {
  return together(
      under("compare",
            row("--runs", "N", "runs, each in a separate process (default: 10)",
                converted(own(&CalibrateOptions::runs), whole_from(2, max_runs))),
            row("--from", "FILE...", "reports of one build on one set-up; runs nothing",
                all_of(Takes::many, own(&CalibrateOptions::from))),
            row("-o,--output", "FILE", "the noise file (default: noise-FINGERPRINT.json)", text(&Options::output)),
            row("--keep", "DIR", "folder for the reports of the runs", text(own(&CalibrateOptions::keep)))),
      shared_flags({"select", "--shapes", "measure", "check", "--mode", "--anonymize", "--anonymize-key"}, suites));
}

}  // namespace

Verb calibrate_verb() {
  return {.name = "calibrate",
          .arguments = "[flags, and those of run]",
          .summary = "measure run-to-run noise, for compare and gate",
          .description = "compare and gate read the noise file that it writes (--noise).",
          .examples =
              R"(  gpubench calibrate --suite gemm --preset gate        ten runs, noise-FINGERPRINT.json
  gpubench calibrate --runs 5 --suite all --tier standard --keep runs
  gpubench calibrate --from runs/*.json                from existing reports
)",
          .flags = calibrate_flags,
          .act = calibrate_command,
          .options = CalibrateOptions{},
          .check = check_calibrate};
}

}  // namespace gpubench
