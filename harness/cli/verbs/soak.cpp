// gpubench soak: repeats launches on one or several devices, checks them and watches speed and sensors.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "harness/cli/repeated_runs.h"
#include "harness/cli/run_context.h"
#include "harness/cli/soak_log.h"
#include "harness/cli/verb.h"
#include "harness/cli/verb_work.h"

namespace gpubench {
namespace {

constexpr double max_intervals = 30.0;  ///< of a short soak; longer ones use ten seconds per interval

SoakEffort effort_of(const Options& options) {
  SoakEffort effort{.seconds = options.of<SoakOptions>().minutes * 60.0};
  effort.interval_s = std::min(effort.interval_s, effort.seconds / max_intervals);
  effort.recheck_s = std::max(effort.recheck_s, effort.seconds / max_intervals);
  return effort;
}

void soak_in_process(const Options& options, const WorkPlan& plan, const Environment& environment,
                     const WorkFindings& findings) {
  findings.now("opening the device");
  const std::unique_ptr<Backend> backend = open_backend(plan.device);
  DeviceInfo info = backend->device();
  add_gpu_properties(info);
  findings.found({{"opened", to_json(info)}});
  Options own = options;
  own.run.deterministic = true;  // selects the matching kept choices
  RunOptions run = run_options(own, plan.selection.tier, environment, plan.device);
  if (!options.tuning_cache) run.open_choices = nullptr;
  run.alive = findings.alive;
  (void)soak(*backend, plan.cases, run, effort_of(options), soak_findings(findings), environment.stop);
  findings.now("the end of the soak");
}

// The first device plans first; the others must run its plans, or bits could not be compared.
void listen_to_children(SoakRun& run, std::span<const SoakPlace> places, const Options& options, const WorkPlan& plan,
                        const Environment& environment) {
  prepare_for_children(plan.device);
  std::optional<ReportFolder> choices;
  if (places.size() > 1) choices.emplace("", "soak");
  WorkingChildren children(silence_of(options, plan.cases, plan.device, environment));
  std::size_t started = 0;
  const auto start = [&] {
    const SoakPlace& place = places[started];
    std::vector<std::string> argv = words_of_child(options, place.device, environment);
    argv.insert(argv.end(), {"--worker-share", std::to_string(started++)});
    if (choices) argv.insert(argv.end(), {"--tuning-cache", choices->path()});
    std::optional<OnProcessors> share;
    if (place.processors > 0) share.emplace(place.processors, place.skipped);
    children.start(std::move(argv));
  };
  const auto start_others = [&] {
    while (started < places.size() && environment.stop == 0) start();
  };
  start();
  (void)children.listen(environment.stop, {[&](std::size_t child, const std::string& line) {
                                             const Json json = parse_json(line, "a child's finding");
                                             run.take(child, json);
                                             if (json.contains("cases")) start_others();
                                           },
                                           [&] { run.show(children.now(0)); },
                                           [&](std::size_t child, const ChildTrouble& trouble) {
                                             run.ended(child, trouble.text());
                                             start_others();
                                           }});
}

class SoakOutputs {
 public:
  SoakOutputs(const Options& options, const Environment& environment)
      : options_(options),
        environment_(environment),
        json_("--json", options.json.value_or(""), options.writing, environment),
        svg_("--svg", options.svg, options.writing, environment) {}

  int write(const SoakLog& book, Json head) const {
    const Stream stream = json_.is_stdout() ? Stream::err : Stream::out;
    json_.prose() << book.summary(console_style(options_, stream, environment_));
    head.update(book.json());
    json_.write(head);
    svg_.write(book.chart());
    if (book.faults() > 0) return exit_codes::verdict_failed;
    if (book.has_trouble()) return exit_codes::could_not_measure;
    if (const int signal = environment_.stop.load(); signal != 0) return exit_code({{}, signal, false});
    return book.total().launches == 0 ? exit_codes::nothing_ran : exit_codes::ok;
  }

 private:
  const Options& options_;
  const Environment& environment_;
  ResultFile json_, svg_;
};

Json head_of(std::string_view version, std::uint64_t seed) {
  return {{"schema", soak_schema}, {"schema_version", soak_schema_version}, {"version", version}, {"seed", seed}};
}

int read_command(const Options& options, const Environment& environment) {
  const SoakOutputs outputs(options, environment);
  try {
    const SoakRead read = read_soak(options.of<SoakOptions>().read_journal);
    if (!read.ended)
      environment.err << fmt::format("{}: the soak did not end: of {:.0f} s planned, it was killed or still runs\n",
                                     visible(options.of<SoakOptions>().read_journal), read.book.completion().requested);
    return outputs.write(read.book, head_of(read.version, read.seed));
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--read: {}", e.what()));
  }
}

// Exit code 1 if a launch differed, the textbook rejected a result or a vote found one wrong; 3 if a child crashed or
// hung.
int soak_command(const Options& options, const Environment& environment) {
  if (!options.of<SoakOptions>().read_journal.empty()) return read_command(options, environment);
  WorkPlan plan = work_plan(options, environment);
  if (plan.cases.empty()) return refuse_empty(plan.selection, environment);
  if (is_working_child(options)) {
    if (plan.device.devices == 0) plan.device.ordinal = options.worker_share;
    return work_as_child(options, environment,
                         [&](const WorkFindings& findings) { soak_in_process(options, plan, environment, findings); });
  }
  announce_injections(options, plan.cases, environment);
  const std::vector<SoakPlace> places = soak_places(options, plan.device, environment);
  const SoakOutputs outputs(options, environment);
  environment.catch_signals();
  const RunOptions run = run_options(options, plan.selection.tier, environment, plan.device);
  SoakRun soaking(options, environment, places);
  soaking.open_journal(run.seed, plan.cases);
  if (options.isolate) {
    listen_to_children(soaking, places, options, plan, environment);
  } else {
    soak_in_process(options, plan, environment,
                    {[&](const Json& json) {
                       soaking.take(0, json);
                       soaking.show("");
                     },
                     [](std::string_view) {}, [] {}});
  }
  return outputs.write(soaking.finish(), head_of(version(), run.seed));
}

std::vector<Flag> soak_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--device", "--deadline", "--seed", "--isolate", "--inject-error", "--force", "--mode",
                    "--worker-output", "--worker-page", "--worker-share"},
                   suites),
      under("", row("--tuning-cache", "DIR", "", text(&Options::tuning_cache))), shared_flags({"--json"}),
      under("check", row("--minutes", "N", "duration (default: 5)", converted(own(&SoakOptions::minutes), minutes_of)),
            row("--devices", "N|NAME,...",
                "several devices at once, which vote: the first N GPUs, named ones (cuda:0,cuda:2), or N equal shares "
                "of the processors",
                all_of(Takes::list, own(&SoakOptions::devices))),
            row("--journal", "FILE", "journal of events, on the disk at once: it survives a kill",
                text(own(&SoakOptions::journal))),
            row("--read", "FILE", "sum up the journal of a soak that ended or was killed; runs nothing",
                text(own(&SoakOptions::read_journal))),
            row("--svg", "FILE", "a chart of speed, clocks, temperature and faults over time", text(&Options::svg))));
}

}  // namespace

Verb soak_verb() {
  return {.name = "soak",
          .arguments = "[flags]",
          .summary = "repeat launches for hours and report any that differs",
          .description = "Compares the bits of each launch with those of a judged launch.",
          .examples = R"(  gpubench soak
  gpubench soak --minutes 480 --journal night.jsonl --json night.json
  gpubench soak --read night.jsonl --svg night.svg      sums up a soak that ended or was killed
  gpubench soak --suite gemm,attention --tier quick --minutes 60
  gpubench soak --devices 8 --minutes 60
)",
          .flags = soak_flags,
          .act = soak_command,
          .options = SoakOptions{}};
}

}  // namespace gpubench
