#include <fmt/ranges.h>

#include "harness/cli/flags.h"

namespace gpubench {
namespace {

constexpr Word<bool> list_format_words[] = {{"table", false}, {"json", true}};

// "A=driver 580": a letter of one of several reports, each at most once.
void set_label(Options& o, const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals + 1 == word.size())
    throw UsageError(fmt::format("{}: '{}' is no label such as A=before", flag, visible(word)));
  const std::string letter = word.substr(0, equals);
  if (!o.labels.emplace(letter, word.substr(equals + 1)).second)
    throw UsageError(fmt::format("{}: {} is named twice", flag, visible(letter)));
}

}  // namespace

std::vector<FlagSection> output_sections() {
  using enum Verb;
  return {
      {{run},
       "output",
       {
           common("folder for the report (default: gpubench-out/<timestamp>)",
                  row("--out", "DIR",
                      "folder for report.json, and until that is complete for the journal that --resume reads "
                      "(default: gpubench-out/<timestamp>)",
                      text(&Options::out))),
           row("--json", "FILE", "write the report there instead; -: to standard output, and nothing else",
               text(&Options::json)),
           row("--resume", "DIR",
               "resume a run that was interrupted or killed: its folder, or the "
               "FILE.journal.jsonl beside its --json FILE; machine, build and flags must be the same, and flags may be "
               "left out, all but --impl, --python and --trust-libraries",
               text(&Options::resume)),
           row("--junit", "FILE", "also as JUnit XML; -, here as below: to standard output", text(&Options::junit)),
           row("--csv", "FILE", "also as CSV, a row for each case and metric", text(&Options::csv)),
           row("--markdown", "FILE", "also as Markdown, worst first, at most 900 KiB", text(&Options::markdown)),
           row("--github", "auto|on|off",
               "annotations, and the table in $GITHUB_STEP_SUMMARY (default: auto: where GITHUB_ACTIONS is true)",
               choice<GithubMode>(&Options::github)),
           row("--progress", "MODE",
               "auto, bar, lines or none, on standard error (default: auto: a bar on a terminal, else a line per "
               "finished case)",
               choice<ProgressMode>(&Options::progress)),
           row("-q,--quiet", "", "only what went wrong, and the summary", turn_on(&Options::quiet)),
           row("-v,--verbose", "", "also implementations, coverage and the ops of training steps",
               turn_on(&Options::verbose)),
       }},
      {{run, explain, export_report, selftest, determinism, soak, predict, simulate},
       "output",
       {
           row("--force", "", "replace files that are there already",
               turn_on(in(&Options::writing, &WriteRules::replace))),
       }},
      {{run, explain, export_report, report_page, gate, calibrate, tune_batch, baseline, selftest, determinism, soak,
        learn, predict, simulate},
       "output",
       {
           row("--mode", "OCTAL",
               "permissions of the files that are written, whatever the umask: 0644 lets everybody read them (default: "
               "0600, only you)",
               converted(in(&Options::writing, &WriteRules::mode), mode_of)),
       }},
      {{run},
       "output",
       {
           row("--save-failures", "DIR",
               "write what a failing op read and left there, with the expected values and bounds, as .npy files and a "
               "few lines of Python that load them",
               text(in_run(&RunOptions::save_failures))),
       }},
      {{run, calibrate, export_report, report_page},
       "output",
       {
           row("--anonymize", "",
               "write nothing that identifies this machine or its user: names are hashed under a key, paths too",
               turn_on(&Options::anonymize)),
           row("--anonymize-key", "FILE",
               "the key of these hashes, made where there is none; one key gives a machine the same name in all "
               "reports (default: $XDG_CONFIG_HOME/gpubench/anonymize.key or ~/.config/gpubench/anonymize.key)",
               text(&Options::anonymize_key)),
       }},
      {{run, describe_device, probe},
       "",
       {
           row("--worker-input", "FD", "", converted(&Options::worker_input, whole_from(0))),
           row("--worker-output", "FD", "", converted(&Options::worker_output, whole_from(0))),
       }},
      {{run},
       "",
       {
           row("--claims-of", "NAME", "", text(&Options::claims_of)),
           row("--untried", "off|list|fail", "", choice<Untried>([](Options& o) -> auto& { return o.untried; })),
       }},
      {{selftest, determinism, soak},
       "",
       {
           row("--worker-output", "FD", "", converted(&Options::worker_output, whole_from(0))),
           row("--worker-page", "FD", "", converted(&Options::worker_page, whole_from(0))),
           row("--worker-share", "N", "", converted(&Options::worker_share, whole_from(0))),
       }},
      {{soak}, "", {row("--tuning-cache", "DIR", "", text(&Options::tuning_cache))}},
      {{list},
       "output",
       {
           row("--format", "table|json", "how to print (default: table)",
               choice(&Options::list_json, list_format_words)),
       }},
      {{explain},
       "output",
       {
           row("--html", "DIR", "write a page of every op there, and index.html, which lists them",
               text(&Options::html)),
       }},
      {{export_report},
       "output",
       {
           row("--format", "FORMAT", fmt::format("one of {}", fmt::join(enum_names<ExportFormat>, ", ")),
               choice<ExportFormat>(&Options::export_format)),
           row("-o,--output", "FILE", "write it there, all or nothing (default: standard output)",
               text(&Options::output)),
       }},
      {{report_page},
       "output",
       {
           row("-o,--output", "FILE", "the page (default: report.html beside the first report)",
               text(&Options::output)),
           row("--svg", "DIR", "also each chart as a file of its own", text(&Options::svg)),
           row("--markdown", "FILE", "also one report as Markdown; -, here as below: to standard output",
               text(&Options::markdown)),
           row("--csv", "FILE", "also one report as CSV, a row for each case and metric", text(&Options::csv)),
           row("--junit", "FILE", "also one report as JUnit XML", text(&Options::junit)),
           row("--price-per-hour", "PRICE",
               "of one device, in any currency: what tokens, images and FLOP of whole steps cost at the measured rates",
               converted(&Options::price_per_hour, price_of)),
           row("--label", "A=NAME", "what a report of several is called: A is the first, B the second; may be repeated",
               {Takes::each, set_label}),
       }},
      {{run, doctor, compare, gate, tune_batch, selftest, determinism, learn, predict, simulate},
       "output",
       {
           row("--color", "MODE", "auto, always or never (default: auto: on a terminal, unless NO_COLOR is set)",
               choice<ColorMode>(&Options::color)),
       }},
      {{selftest},
       "output",
       {
           row("-v,--verbose", "", "also the faults that rounding hides", turn_on(&Options::verbose)),
       }},
      {{selftest, determinism, soak, predict, simulate},
       "output",
       {
           row("--json", "FILE", "all of it as JSON; -: to standard output, and nothing else", text(&Options::json)),
       }},
      {{learn},
       "output",
       {
           row("--json", "FILE", "steps, curves and verdicts as JSON; -: to standard output, and nothing else",
               text(&Options::json)),
           row("--svg", "DIR", "each chart as a file of its own", text(&Options::svg)),
           row("-o,--output", "FILE", "a page with tables and charts", text(&Options::output)),
       }},
      {{compare, gate},
       "output",
       {
           row("-v,--verbose", "", "every case, also those that say little", turn_on(&Options::verbose)),
       }},
  };
}

namespace {

constexpr int most_runs = 1000;

// Of two for the same the last one holds.
void set_tau(Options& o, const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  Tau& tau = o.compare.tau;
  const double share = share_of(flag, equals == word.npos ? word : word.substr(equals + 1));
  (equals == word.npos ? tau.all : tau.by_suite[word.substr(0, equals)]) = share;
}

}  // namespace

std::vector<FlagSection> compare_sections() {
  using enum Verb;
  const auto seconds = [](const std::string& flag, const std::string& word) {
    return static_cast<double>(whole<std::int64_t>(flag, word, 1, 7 * 24 * 3600));
  };
  return {
      {{compare},
       "compare",
       {
           row("--a", "FILE...", "side A: several runs of one build, or a baseline",
               all_of(Takes::many, in_compare(&CompareOptions::side_a))),
           row("--b", "FILE...", "side B", all_of(Takes::many, in_compare(&CompareOptions::side_b))),
       }},
      {{gate},
       "compare",
       {
           row("--baseline", "FILE...", "reports of the old build, or a baseline that was saved",
               all_of(Takes::many, in_compare(&CompareOptions::baselines))),
           row("--candidate", "FILE...", "reports of the new build",
               all_of(Takes::many, in_compare(&CompareOptions::candidates))),
       }},
      {{compare, gate},
       "compare",
       {
           row("--noise", "FILE",
               "what gpubench calibrate wrote, or a folder in which it is named after the set-up "
               "(noise-FINGERPRINT.json)",
               text(in_compare(&CompareOptions::noise))),
           row("--tau", "[SUITE=]PERCENT",
               "a change that matters (default: 3%); SUITE=10%: for the cases of one suite; may be repeated",
               {Takes::each, set_tau}),
       }},
      {{compare},
       "compare",
       {
           row("--format", "FORMAT", "table (default), markdown, json or csv",
               choice<CompareFormat>(in_compare(&CompareOptions::format))),
       }},
      {{gate},
       "compare",
       {
           row("--strict", "", "an inconclusive case does not pass (exit 4)",
               turn_on(in_compare(&CompareOptions::strict))),
           row("--allow-diff", "KEY", "a fact of the set-up that may differ, as the refusal names it",
               all_of(Takes::each, in_compare(&CompareOptions::allowed_differences))),
           row("--allow-missing", "", "a case that the candidate lacks passes",
               turn_on(in_compare(&CompareOptions::allow_missing))),
           row("--json", "FILE", "all of it as JSON; -: to standard output, and nothing else",
               text(in_compare(&CompareOptions::json))),
           row("--junit", "FILE", "JUnit XML", text(in_compare(&CompareOptions::junit))),
           row("--markdown", "FILE", "a table for a pull request", text(in_compare(&CompareOptions::markdown))),
           row("--github", "", "annotations, and the table in $GITHUB_STEP_SUMMARY",
               turn_on(in_compare(&CompareOptions::github))),
       }},
      {{tune_batch},
       "output",
       {
           row("--budget", "SECONDS", "how long trials may take in all (default: 120); what is left is said",
               converted(&Options::budget_s, seconds)),
           row("--json", "FILE", "curves and answers as JSON; -: to standard output, and nothing else",
               text(&Options::json)),
           row("--svg", "FILE", "the curve as a chart", text(&Options::svg)),
           row("-o,--output", "FILE", "the page of all trials, with their charts", text(&Options::output)),
       }},
      {{calibrate},
       "compare",
       {
           row("--runs", "N", "runs, each a process of its own (default: 10)",
               converted(in_compare(&CompareOptions::runs), whole_from(2, most_runs))),
           row("--from", "FILE...", "reports of one build on one set-up; nothing is run",
               all_of(Takes::many, in_compare(&CompareOptions::from))),
           row("-o,--output", "FILE", "the noise file (default: noise-FINGERPRINT.json)",
               text(in_compare(&CompareOptions::output))),
           row("--keep", "DIR", "keep the reports of the runs there", text(in_compare(&CompareOptions::keep))),
       }},
      {{baseline},
       "compare",
       {
           row("--dir", "DIR", "where baselines are (default: gpubench-baselines)",
               text(in_compare(&CompareOptions::dir))),
           row("--noise", "FILE", "a calibration of the same set-up, to be kept with it",
               text(in_compare(&CompareOptions::noise))),
           row("--force", "", "replace a baseline of the same name", turn_on(in_compare(&CompareOptions::force))),
       }},
  };
}

}  // namespace gpubench
