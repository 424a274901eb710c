#include "harness/cli/flags.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <array>

#include "harness/core/recipe.h"

namespace gpubench {
namespace {

constexpr std::array verb_table{
    VerbInfo{Verb::run, "run", "[flags]", "run cases: check every op, time, check again, report (the default verb)"},
    VerbInfo{Verb::list, "list", "[suites | CASE] [flags]",
             "list cases or suites; one case in detail: tensors, ops, work, memory"},
    VerbInfo{Verb::doctor, "doctor", "[flags]", "what this machine is, what disturbs measuring on it, how to fix that"},
    VerbInfo{Verb::compare, "compare", "A.json B.json... [flags]", "how much faster one side is, with intervals"},
    VerbInfo{Verb::gate, "gate", "--baseline FILE... --candidate FILE... [flags]",
             "whether the candidate became slower or wrong: exit 0 or 1, 4 where that cannot be told"},
    VerbInfo{Verb::calibrate, "calibrate", "[flags, and those of run]",
             "measure the noise from run to run, which gate and compare use (--noise)"},
    VerbInfo{Verb::baseline, "baseline", "save NAME REPORT... | list | show NAME | merge NAME FROM...",
             "keep the runs that later ones are held against"},
    VerbInfo{Verb::validate, "validate", "FILE...", "whether reports hold: their schema, and that what they say fits"},
    VerbInfo{Verb::report_page, "report", "R.json... [flags]",
             "one HTML page with charts and tables, and the charts as files; several reports are compared"},
    VerbInfo{Verb::export_report, "export", "--format FORMAT FILE [flags]", "a report in the format of another tool"},
    VerbInfo{Verb::completion, "completion", "bash|zsh|fish", "a script that completes this command line in a shell"},
    VerbInfo{Verb::help, "help", "[VERB]", "this text, or the flags of one verb"},
    VerbInfo{Verb::version, "version", "", "the version and how it was built"},
    VerbInfo{Verb::man, "man", "", "", true},
    VerbInfo{Verb::probe, "probe", "", "", true},
    VerbInfo{Verb::describe_device, "describe-device", "", "", true},
};

// One value each; where a flag is given twice, the last one counts (so that a script's defaults can be overridden).
CLI::Option* value(CLI::App& app, const std::string& flag, std::string& to, const char* type, const char* group,
                   const std::string& text) {
  return app.add_option(flag, to, text)
      ->type_name(type)
      ->group(group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// A list: the flag may be repeated, each time with one word. Commas are cut by options.cpp: CLI11 drops empty words.
CLI::Option* list(CLI::App& app, const std::string& flag, std::vector<std::string>& to, const char* type,
                  const std::string& text) {
  return app.add_option(flag, to, text)->type_name(type)->group("select")->allow_extra_args(false);
}

std::vector<std::string_view> recipe_names() {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : recipes()) names.push_back(recipe.name);
  return names;
}

std::vector<std::string_view> error_kind_names() {
  std::vector<std::string_view> names;
  for (const ErrorKind kind : error_kinds()) names.push_back(name(kind));
  return names;
}

void add_selection(CLI::App& app, RawOptions& raw) {
  list(app, "--suite", raw.suites, "NAME,...", "suites to take; all: every suite (default: all)");
  value(app, "--tier", raw.tier, "TIER", "select",
        "smoke, quick, standard or large; each contains the ones before it (default: "
        "quick, standard on a GPU)");
  list(app, "--filter", raw.filters, "REGEX", "only cases whose id matches; repeat it for more");
  list(app, "--exclude", raw.excludes, "REGEX", "no cases whose id matches");
  list(app, "--precision", raw.precisions, "NAME,...",
       fmt::format("only these recipes: {} (default: those that the device has)", fmt::join(recipe_names(), ", ")));
  list(app, "--batch", raw.batches, "N,...", "batch sizes instead of the suites' own");
  list(app, "--launch", raw.launches, "MODE,...",
       "graph (default on a GPU): the program is recorded once and replayed; stream: launch by launch; both for each");
  value(app, "--fuse", raw.fuse, "on|off", "select",
        "on (default): chains of ops run as the fused ops that the device has for them; off: each op as declared");
  list(
      app, "--ranks,--gpus", raw.ranks, "N,...",
      "numbers of ranks for the suites that run on several: one device each, or a share of the processors (default: as "
      "few as a suite needs)");
  app.add_flag(
         "--virtual-ranks", raw.virtual_ranks,
         "several ranks share one GPU: programs are run and checked as on several, the figures say nothing of them")
      ->group("select");
  list(app, "--axis", raw.axes, "NAME=N,...", "values of one dimension instead of the suites' own");
}

void add_measure(CLI::App& app, RawOptions& raw) {
  app.add_flag("--dry-run", raw.dry_run, "show the plan with estimates of time and memory; run nothing")
      ->group("measure");
  value(
      app, "--preset", raw.preset, "PRESET", "measure",
      "how long each case is measured: minimal, brief (3 rounds), normal (10 to 20), gate (5 to 10, to be repeated) or "
      "thorough (20 to 40) (default: that of the tier)");
  value(app, "--seed", raw.seed, "N", "measure", "of inputs, samples and order (default: 42)");
  value(app, "--isolate", raw.isolate, "on|off", "measure",
        "run cases in a worker process that may crash (default: on); off: in "
        "this process, for debuggers and profilers");
  app.add_flag("--deterministic", raw.deterministic,
               "only implementations that give the same bits each time; cases that have none are unsupported")
      ->group("measure");
  app.add_flag("--energy", raw.energy,
               "run each case 2 s longer on a GPU that counts its energy: joules per run and per FLOP, byte or token")
      ->group("measure");
  value(
      app, "--breakdown", raw.breakdown, "on|off", "measure",
      "on (default): the ops of a composite case are timed one by one as well; off: only the whole, as races want it");
  value(app, "--locked-clock", raw.locked_clock, "MHZ", "measure",
        "the GPU's SM clock is locked at this (nvidia-smi -lgc MHZ,MHZ): rounds that run more than 1% off it are "
        "invalid");
  value(
      app, "--inject-slowdown", raw.slowdown, "OP=25%", "measure",
      "record longer times for cases that run this kind of op: a fault for trying gates; such a report says so, and is "
      "refused as a baseline");
  value(app, "--inject-error", raw.error, "OP=KIND", "measure",
        fmt::format("corrupt what this kind of op writes, to see what a failure looks like: {}; such a report says so, "
                    "and is refused as a baseline",
                    fmt::join(error_kind_names(), ", ")));
  value(app, "--pin", raw.pin, "REPORT", "measure",
        "take the implementations that this report names, instead of choosing; what is not offered is unsupported");
  value(app, "--like", raw.like, "REPORT", "measure",
        "take as many runs a sample as the cases of this report, so that both spread fixed costs alike");
  value(app, "--tuning-cache", raw.tuning_cache, "DIR|off", "measure",
        "where implementations that were found fastest are remembered for later runs on this device (default: "
        "$XDG_CACHE_HOME/gpubench or ~/.cache/gpubench); off: time them anew");
}

void add_deadline(CLI::App& app, RawOptions& raw) {
  value(
      app, "--deadline", raw.deadline, "auto|off|S", "measure",
      "seconds that a case or a driver may say nothing before it is given up (default: auto: three times what the case "
      "should take, 30 s to 30 min; a driver 10 s, opening the device 60 s); off: for debuggers and sanitizers");
}

void add_device(CLI::App& app, RawOptions& raw) {
  value(app, "--device", raw.device, "NAME", "measure",
        "cuda (or gpu), cuda:N, cpu or auto (default): the GPU if a driver is there, else the CPU");
}

void add_trust(CLI::App& app, RawOptions& raw) {
  app.add_flag("--trust-libraries", raw.trust_libraries,
               "as root, load NVIDIA's libraries also from folders that others can change (a user's Python packages)")
      ->group("measure");
}

void add_output(CLI::App& app, RawOptions& raw) {
  value(app, "--out", raw.out, "DIR", "output",
        "folder for report.json, and until that is complete for the journal that --resume reads (default: "
        "gpubench-out/<timestamp>)");
  value(app, "--json", raw.json, "FILE", "output",
        "write the report there instead; -: to standard output, and nothing else");
  value(
      app, "--resume", raw.resume, "DIR", "output",
      "go on with a run that was interrupted or killed, where it stopped: its folder, or the FILE.journal.jsonl beside "
      "its --json FILE; machine, build and flags must be the same, and flags may be left out");
  value(app, "--junit", raw.junit, "FILE", "output", "also as JUnit XML; -, here as below: to standard output");
  value(app, "--csv", raw.csv, "FILE", "output", "also as CSV, a row for each case and metric");
  value(app, "--markdown", raw.markdown, "FILE", "output", "also as Markdown, worst first, at most 900 KiB");
  value(app, "--github", raw.github, "auto|on|off", "output",
        "annotations, and the table in $GITHUB_STEP_SUMMARY (default: auto: where GITHUB_ACTIONS is true)");
  value(app, "--progress", raw.progress, "MODE", "output",
        "auto, bar, lines or none, on standard error (default: auto: a bar on a "
        "terminal, else a line per finished case)");
  app.add_flag("-q,--quiet", raw.quiet, "only what went wrong, and the summary")->group("output");
  app.add_flag("-v,--verbose", raw.verbose, "also implementations, coverage and the ops of training steps")
      ->group("output");
}

void add_writing(CLI::App& app, Verb verb, RawOptions& raw) {
  const bool keeps_old = verb == Verb::run || verb == Verb::export_report;
  if (keeps_old) app.add_flag("--force", raw.force, "replace files that are there already")->group("output");
  if (keeps_old || verb == Verb::report_page || verb == Verb::gate || verb == Verb::calibrate ||
      verb == Verb::baseline) {
    value(
        app, "--mode", raw.mode, "OCTAL", "output",
        "permissions of the files that are written, whatever the umask: 0644 lets everybody read them (default: 0600, "
        "only you)");
  }
}

void add_anonymity(CLI::App& app, RawOptions& raw) {
  app.add_flag("--anonymize", raw.anonymize,
               "write nothing that identifies this machine or its user: names are hashed under a key, paths too")
      ->group("output");
  value(app, "--anonymize-key", raw.anonymize_key, "FILE", "output",
        "the key of these hashes, made where there is none; one key gives a machine the same name in all reports "
        "(default: $XDG_CONFIG_HOME/gpubench/anonymize.key or ~/.config/gpubench/anonymize.key)");
}

void add_color(CLI::App& app, RawOptions& raw) {
  value(app, "--color", raw.color, "MODE", "output",
        "auto, always or never (default: auto: on a terminal, unless NO_COLOR is set)");
}

void add_format(CLI::App& app, RawOptions& raw) {
  value(app, "--format", raw.format, "table|json", "output", "how to print (default: table)");
}

void add_worker(CLI::App& app, RawOptions& raw) {
  value(app, "--worker-input", raw.worker_input, "FD", "", "");
  value(app, "--worker-output", raw.worker_output, "FD", "", "");
}

void add_subject(CLI::App& app, RawOptions& raw, const char* title) {
  app.add_option("subject", raw.subject, "")->type_name(title)->group("");
}

void add_files(CLI::App& app, RawOptions& raw, const char* title) {
  app.add_option("files", raw.files, "")->type_name(title)->group("");
}

void add_export(CLI::App& app, RawOptions& raw) {
  std::vector<std::string_view> names;
  for (const ExportFormat format : export_formats()) names.push_back(name(format));
  value(app, "--format", raw.export_format, "FORMAT", "output", fmt::format("one of {}", fmt::join(names, ", ")));
  value(app, "-o,--output", raw.output, "FILE", "output", "write it there, all or nothing (default: standard output)");
  add_files(app, raw, "FILE");
}

void add_page(CLI::App& app, RawOptions& raw) {
  value(app, "-o,--output", raw.output, "FILE", "output", "the page (default: report.html beside the first report)");
  value(app, "--svg", raw.svg, "DIR", "output", "also each chart as a file of its own");
  value(app, "--markdown", raw.markdown, "FILE", "output",
        "also one report as Markdown; -, here as below: to standard output");
  value(app, "--csv", raw.csv, "FILE", "output", "also one report as CSV, a row for each case and metric");
  value(app, "--junit", raw.junit, "FILE", "output", "also one report as JUnit XML");
  value(app, "--price-per-hour", raw.price, "PRICE", "output",
        "of one device, in any currency: what tokens, images and FLOP of whole steps cost at the measured rates");
  app.add_option("--label", raw.labels,
                 "what a report of several is called: A is the first, B the second; may be repeated")
      ->type_name("A=NAME")
      ->group("output")
      ->allow_extra_args(false);
  add_files(app, raw, "R.json...");
}

}  // namespace

std::span<const VerbInfo> verbs() { return verb_table; }

void add_flags(CLI::App& app, Verb verb, RawOptions& raw) {
  app.set_help_flag();  // the words --help and -h are handled for all verbs at once, also without a verb
  add_compare_flags(app, verb, raw.compare);
  const bool runs = verb == Verb::run || verb == Verb::calibrate;
  if (runs || verb == Verb::list) add_selection(app, raw);
  if (runs || verb == Verb::list || verb == Verb::describe_device) add_device(app, raw);
  if (runs || verb == Verb::list || verb == Verb::doctor) add_deadline(app, raw);
  if (runs || verb == Verb::doctor || verb == Verb::describe_device) add_trust(app, raw);
  if (runs) {
    add_measure(app, raw);
    value(app, "--check", raw.check, "MODE", "check",
          "sample (default): small outputs whole, large ones by a seeded sample; full: "
          "every element; off: nothing is verified");
  }
  if (verb == Verb::run) add_output(app, raw);
  add_writing(app, verb, raw);
  if (runs || verb == Verb::export_report || verb == Verb::report_page) add_anonymity(app, raw);
  if (verb == Verb::run || verb == Verb::describe_device || verb == Verb::probe) add_worker(app, raw);
  if (verb == Verb::probe) add_subject(app, raw, "driver|gpus|libraries");
  if (verb == Verb::list) {
    add_format(app, raw);
    add_subject(app, raw, "suites|CASE");
  }
  if (verb == Verb::validate) add_files(app, raw, "FILE...");
  if (verb == Verb::export_report) add_export(app, raw);
  if (verb == Verb::report_page) add_page(app, raw);
  if (verb == Verb::help) add_subject(app, raw, "VERB");
  if (verb == Verb::completion) add_subject(app, raw, "bash|zsh|fish");
  if (verb == Verb::run || verb == Verb::doctor || verb == Verb::compare || verb == Verb::gate) add_color(app, raw);
  if (verb == Verb::compare || verb == Verb::gate)
    app.add_flag("-v,--verbose", raw.verbose, "every case, also those that say little")->group("output");
}

}  // namespace gpubench
