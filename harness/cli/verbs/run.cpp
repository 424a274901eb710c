#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "harness/cli/case_listing.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

// The device's name, without opening it.
DeviceInfo named_device(const DeviceChoice& device) {
  DeviceInfo info;
  info.kind = device.backend->name;
  info.properties = {{std::string(device_property::ordinal), std::to_string(device.ordinal)}};
  return info;
}

// Derived from the command line in every process of a run.
struct RunSetup {
  SelectedSuites suites;
  Environment environment;
  DeviceChoice device;
  Selection selection;
  RunOptions run;
};

RunSetup setup_of(const Options& options, const Environment& outer) {
  SelectedSuites suites = selected_suites(options, outer);
  Environment environment = suites.in(outer);
  DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  Selection selection = selection_for(options, device);
  expect_devices_for(selection, device);
  RunOptions run = run_options(options, selection.tier, environment, device);
  return {std::move(suites), std::move(environment), std::move(device), std::move(selection), std::move(run)};
}

// A child that loads an implementation and reports what it accepts. `all`: the suites of untried calls.
int report_claims(const Options& options, const RunSetup& setup, std::span<const Suite> all) {
  const auto of = std::ranges::find(setup.run.implementations, options.claims_of, &NamedImplementation::name);
  if (of == setup.run.implementations.end())
    throw UsageError(fmt::format("--claims-of: no --impl is called '{}'", visible(options.claims_of)));
  send_claims(*of, declared_cases(setup.environment.suites, setup.selection),
              options.untried == Untried::off ? std::span<const Suite>{} : all, named_device(setup.device),
              setup.run.deterministic, options.worker_output);
  return exit_codes::ok;
}

int work(const Options& options, RunSetup setup) {
  if (options.resume) setup.run.in_flight = read_journal(journal_of(*options.resume)).in_flight;
  const std::unique_ptr<Backend> backend = open_backend(setup.device);
  return serve(*backend,
               for_contenders(declared_cases(setup.environment.suites, setup.selection), setup.run.implementations,
                              options.versus.has_value()),
               setup.run, JsonRecordCodec(), options.worker_input, options.worker_output);
}

// Keeps the cases that implementations accept, and stores their claims.
void claim_cases(RunPlan& plan) {
  if (plan.run.implementations.empty()) return;
  if (plan.resumption != nullptr) {
    plan.key = key_for(plan.options, plan.environment);
    require_same_before_loading(plan);
  }
  plan.claims = query_claims(plan.run.implementations, plan.options.words, plan.device.word(), plan.environment,
                             plan.options.for_opening_s());
  plan.cases = claimed(std::move(plan.cases), plan.claims);
  if (plan.cases.empty())
    throw UsageError(
        "--impl: no implementation takes an op of the selected cases; gpubench impl list FILE lists what it takes, and "
        "why not the rest");
}

// The user's process: plans, prints notes, and runs to a report.
int launch(const Options& options, RunSetup setup, Resumption* resumption) {
  const Environment& environment = setup.environment;
  const Selection& selection = setup.selection;
  RunPlan plan{
      options,
      environment,
      setup.device,
      for_contenders(plan_cases(environment.suites, selection), setup.run.implementations, options.versus.has_value()),
      selection.tier,
      std::move(setup.run),
      setup.suites.source,
      {},
      resumption,
      {}};
  environment.err << fitted(fmt::format("gpubench {}, device: {} ({})", version(),
                                        plan.device.word() == "cpu" ? "CPU" : plan.device.word(),
                                        visible(plan.device.why)),
                            columns_of(Stream::err, environment), 0)
                  << std::endl;
  note_variables(options, environment);
  note_missing_recipes(selection, plan.device, environment);
  if (plan.cases.empty()) return refuse_empty(selection, environment);
  note_exceptions(setup.suites, environment);
  note_suites_without_cases(selection, plan.cases, environment);
  claim_cases(plan);
  for (const std::string& sentence : selection_warnings(options, plan.device, read_host().usable_cpus))
    environment.err << "warning: " << sentence << "\n";
  announce_injections(options, plan.cases, environment);
  if (options.dry_run) {
    environment.out << plan_text(plan.cases,
                                 {plan.tier, options.run.preset, options.run.check, plan.device.backend->plan_s},
                                 environment.host().usable_cpus, console_style(options, Stream::out, environment));
    return exit_codes::ok;
  }
  open_failures_folder(options);
  if (options.turns) {
    if (plan.cases.size() != 1)
      throw UsageError(fmt::format("--turns takes one case, {} match; choose one (--filter)", plan.cases.size()));
    plan.run.another_round = Turns(environment.in, environment.out);
  }
  plan.key = key_for(options, environment);
  if (resumption != nullptr) {
    for (const auto& [key, record] : resumption->journal.finished) plan.run.finished.insert(key);
    plan.run.in_flight = resumption->journal.in_flight;
  }
  return run_to_report(std::move(plan));
}

int run_in_role(const Options& options, const Environment& environment, Resumption* resumption) {
  RunSetup setup = setup_of(options, environment);
  if (!options.claims_of.empty()) return report_claims(options, setup, environment.suites);
  if (options.is_worker()) return work(options, std::move(setup));
  return launch(options, std::move(setup), resumption);
}

int run_command(const Options& options, const Environment& environment) {
  // Children have all flags; their parent holds the journal.
  if (!options.resume || options.is_worker() || !options.claims_of.empty())
    return run_in_role(options, environment, nullptr);
  Resumption one = open_resumption(options, environment);
  if (!options.started_by.empty()) {  // the run's words don't contain the place among processes
    one.options.started_by = options.started_by;
    one.options.device = options.device;
    one.options.isolate = options.isolate;
    one.options.selection.processes = options.selection.processes;
  }
  try {
    return run_in_role(one.options, environment, &one);
  } catch (const DifferentRun& e) {
    environment.err << "gpubench: " << visible(e.what()) << std::endl;
    return exit_codes::not_comparable;
  }
}

void check_run(Options& options) {
  if (options.turns && options.isolate) throw UsageError("--turns: rounds run in this process; add --isolate off");
  for (const auto* file : {&options.json, &options.junit, &options.csv, &options.markdown}) {
    if (options.turns && *file == "-")
      throw UsageError("--turns: its answers go to standard output; write the report to a file (--json FILE)");
  }
  const bool both = options.is_worker() && options.worker_output >= 0;
  const bool none = !options.is_worker() && (options.worker_output < 0) == options.claims_of.empty();
  if (!both && !none) throw UsageError("--worker-input and --worker-output belong together");
}

constexpr Word<bool> mpi_words[] = {{"auto", true}, {"off", false}};

std::vector<Flag> run_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--shapes", "measure"}, suites),
      under("measure",
            row("--mpi", "auto|off",
                "auto (default): processes started by mpirun or srun are ranks of one run, which the first reports; "
                "off: each is a separate run",
                choice(&Options::mpi, mpi_words), use::journal),
            row("--turns", "",
                "rounds of one case on demand, for races: each line of standard input is a number of seconds to run "
                "rounds for, answered by a line of JSON with their median on standard output; the end of input ends "
                "them (with --isolate off)",
                turn_on(&Options::turns), 0U)),
      shared_flags({"check"}),
      under("output",
            common("folder for the report (default: gpubench-out/<timestamp>)",
                   row("--out", "DIR",
                       "folder for report.json and, until it is complete, for the journal that --resume reads "
                       "(default: gpubench-out/<timestamp>)",
                       text(&Options::out))),
            row("--json", "FILE", "write the report there instead; -: to standard output only", text(&Options::json)),
            row("--resume", "DIR",
                "resume an interrupted or killed run: its folder, or the FILE.journal.jsonl next to its --json FILE; "
                "machine, build and flags must be the same; all flags may be left out except --impl, --python and "
                "--trust-libraries",
                text(&Options::resume)),
            row("--junit", "FILE", "also as JUnit XML; -, here as below: to standard output", text(&Options::junit)),
            row("--csv", "FILE", "also as CSV, a row for each case and metric", text(&Options::csv)),
            row("--markdown", "FILE", "also as Markdown, worst first, at most 900 KiB", text(&Options::markdown)),
            row("--github", "auto|on|off",
                "annotations, and the table in $GITHUB_STEP_SUMMARY (default: auto: if GITHUB_ACTIONS is true)",
                choice<GithubMode>(&Options::github)),
            row("--progress", "MODE",
                "auto, bar, lines or none, on standard error (default: auto: a bar on a terminal, else a line per "
                "finished case)",
                choice<ProgressMode>(&Options::progress)),
            row("-q,--quiet", "", "only failures and the summary", turn_on(&Options::quiet)),
            row("-v,--verbose", "", "also implementations, coverage and the ops of training steps",
                turn_on(&Options::verbose))),
      shared_flags({"--detail", "--force", "--mode"}),
      under("output", row("--save-failures", "DIR",
                          "folder for the inputs and outputs of failing ops, with expected values and bounds, as .npy "
                          "files and a few lines of Python that load them",
                          text(in_run(&RunOptions::save_failures)))),
      shared_flags({"--anonymize", "--anonymize-key", "--worker-input", "--worker-output"}),
      under("", row("--claims-of", "NAME", "", text(&Options::claims_of)),
            row("--untried", "off|list|fail", "", choice<Untried>([](Options & o) -> auto& { return o.untried; }),
                use::journal | use::processes)),
      shared_flags({"--color"}));
}

}  // namespace

Verb run_verb() {
  return {.name = "run",
          .arguments = "[flags]",
          .summary = "check, time and report cases (the default verb)",
          .examples = R"(  gpubench --suite all                         every suite at the default tier
  gpubench --suite gemm,conv --tier smoke      a few cases, seconds
  gpubench --suite transformer --precision bf16 -v
  gpubench --suite transformer --gpus 1,2,4,8  scaling: each case on that many GPUs
  gpubench --suite collectives --ranks 2       on a CPU: two ranks, each with a share of the processors
  gpubench --filter '^gemm/matmul/' --axis m=768,1536 --check full
  gpubench --suite all --dry-run               the plan: cases, time and memory
  gpubench --suite gemm --inject-error gemm=bit  how a failure is reported
  gpubench --suite memory --json - | jq .gpubench.totals
)",
          .flags = run_flags,
          .act = run_command,
          .check = check_run,
          .shows_variables = true};
}

}  // namespace gpubench
