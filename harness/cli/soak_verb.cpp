// gpubench soak: whether a device is right all the time, hot and for long.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "harness/cli/device.h"
#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/cli/verb_output.h"
#include "harness/cli/verbs.h"
#include "harness/core/error.h"
#include "harness/report/line_journal.h"
#include "harness/report/quantity.h"
#include "harness/report/report_json.h"
#include "harness/report/visible_text.h"
#include "harness/run/soak.h"

namespace gpubench {
namespace {

constexpr double most_intervals = 30.0;  ///< of a short soak: ten seconds of a longer one
constexpr std::size_t most_listed = 5;

Json json_of(const SoakInterval& interval) {
  Json json = {{"at_s", interval.at_s},         {"seconds", interval.seconds}, {"device_s", interval.device_s},
               {"launches", interval.launches}, {"ops", interval.ops},         {"flop", interval.flop}};
  if (interval.telemetry) json["telemetry"] = to_json(*interval.telemetry);
  return json;
}

Json json_of(const Divergence& divergence) {
  Json json = {{"at_s", divergence.at_s}, {"case", divergence.case_id}, {"text", divergence.text}};
  if (divergence.telemetry) json["telemetry"] = to_json(*divergence.telemetry);
  return json;
}

Json json_of(const SoakResult& result) {
  Json divergences = Json::array();
  for (const Divergence& divergence : result.divergences) divergences.push_back(json_of(divergence));
  return {{"passed", result.passed()},
          {"seconds", result.seconds},
          {"device_s", result.device_s},
          {"launches", result.launches},
          {"ops", result.ops},
          {"flop", result.flop},
          {"rechecks", result.rechecks},
          {"excluded_rate_per_op", excluded_rate(result.ops)},
          {"burst_launches_per_s", result.burst_rate},
          {"sustained_launches_per_s", result.sustained_rate},
          {"cases", result.cases},
          {"left_out", result.left_out},
          {"diverged", result.diverged},
          {"divergences", std::move(divergences)},
          {"wrong", result.wrong}};
}

// " · 64 C · 1,980 MHz": what the device tells.
std::string sensors_text(const std::optional<RoundTelemetry>& telemetry) {
  std::string text;
  if (!telemetry) return text;
  if (telemetry->temperature_c) text += fmt::format(" · {:.0f} C", *telemetry->temperature_c);
  if (telemetry->sm_mhz) text += fmt::format(" · {:.0f} MHz", telemetry->sm_mhz->median);
  if (telemetry->power_w) text += fmt::format(" · {:.0f} W", *telemetry->power_w);
  if (telemetry->uncorrected_errors.value_or(0) > 0)
    text += fmt::format(" · {} uncorrected memory errors", *telemetry->uncorrected_errors);
  return text;
}

std::string text_of(const Divergence& divergence) {
  return visible(fmt::format("{:.1f} s: {}: {}{}", divergence.at_s, divergence.case_id, divergence.text,
                             sensors_text(divergence.telemetry)));
}

std::string summary_of(const SoakResult& r) {
  std::string text = fmt::format(
      "{} launches of {} cases in {:.0f} s, each held bit for bit against one that was judged; {} in all\n"
      "{} ops an hour screened; {:.0f}% of the time in launches; judged by the textbook {}\n",
      r.launches, r.cases.size(), r.seconds, format_quantity(r.flop, "FLOP"),
      format_quantity(static_cast<double>(r.ops) * 3600.0 / r.seconds, ""), 100.0 * r.device_s / r.seconds,
      r.rechecks == 1 ? "once" : fmt::format("{} times", r.rechecks));
  if (r.burst_rate > 0.0)
    text += fmt::format("speed of the second half over that of the first interval: {:.3f}\n",
                        r.sustained_rate / r.burst_rate);
  for (std::size_t i = 0; i < std::min(r.wrong.size(), most_listed); ++i)
    text += fmt::format("rejected by the textbook: {}\n", visible(r.wrong[i]));
  if (r.diverged == 0) {
    text += fmt::format("no launch left other bits: faults in more than 1 of {:.0f} ops are excluded with 95%\n",
                        1.0 / excluded_rate(r.ops));
  } else {
    text += fmt::format("{} launches left other bits than the one that was judged, the first of them:\n", r.diverged);
    for (std::size_t i = 0; i < std::min(r.divergences.size(), most_listed); ++i)
      text += fmt::format("  {}\n", text_of(r.divergences[i]));
  }
  if (!r.left_out.empty())
    text += fmt::format("{} cases left out, the first: {}\n", r.left_out.size(), visible(r.left_out.front()));
  return text + (r.passed() ? "soak passed\n" : "soak FAILED\n");
}

std::optional<LineJournal> journal_for(const Options& options, const Backend& backend, const RunOptions& run,
                                       std::span<const PlannedCase> cases) {
  if (options.journal.empty()) return {};
  try {
    std::optional<LineJournal> journal(std::in_place, options.journal, options.writing,
                                       "is there already; --force replaces it");
    Json ids = Json::array();
    for (const PlannedCase& planned : cases) ids.push_back(planned.id());
    journal->append("start", {{"schema", "gpubench-soak"},
                              {"schema_version", 1},
                              {"version", version()},
                              {"device", to_json(backend.device())},
                              {"seed", run.seed},
                              {"seconds", options.minutes * 60.0},
                              {"cases", std::move(ids)}});
    return journal;
  } catch (const WriteError& e) {
    throw UsageError(fmt::format("--journal: {}", e.what()));
  }
}

}  // namespace

int soak_verb(const Options& options, const Environment& environment) {
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  Selection selection = selection_for(options, device);
  selection.tier = options.tier.value_or(Tier::smoke);
  const std::vector<PlannedCase> cases = plan_cases(environment.suites, selection);
  if (cases.empty()) return refuse_empty(selection, environment);
  announce_injections(options, cases, environment);
  const ResultFile json("--json", options.json.value_or(""), options.writing, environment);
  environment.catch_signals();
  const std::unique_ptr<Backend> backend = open_backend(device);
  const RunOptions run = run_options(options, selection.tier, environment, device);
  std::optional<LineJournal> journal = journal_for(options, *backend, run, cases);
  StatusLine status(environment);
  SoakEffort effort{.seconds = options.minutes * 60.0};
  effort.interval_s = std::min(effort.interval_s, effort.seconds / most_intervals);
  effort.recheck_s = std::max(effort.recheck_s, effort.seconds / most_intervals);
  const auto note_down = [&](const std::string& what, Json content) {
    try {
      if (journal) journal->append(what, std::move(content));
    } catch (const WriteError& e) {  // the soak itself goes on
      status.erase();
      environment.err << fmt::format("gpubench: the journal ends here: {}\n", e.what());
      journal.reset();
    }
  };
  std::int64_t launches = 0, faults = 0;
  const auto fault = [&](const std::string& text) {
    if (++faults > static_cast<std::int64_t>(most_listed)) return;
    status.erase();
    environment.err << text << std::endl;
  };
  const SoakObserver observer{
      .interval =
          [&](const SoakInterval& interval) {
            launches += interval.launches;
            note_down("interval", json_of(interval));
            status.show(fmt::format("{:.0f} of {:.0f} s · {} launches · {:.1f} a second{} · {} faults", interval.at_s,
                                    effort.seconds, launches,
                                    static_cast<double>(interval.launches) / std::max(interval.device_s, 1e-9),
                                    sensors_text(interval.telemetry), faults));
          },
      .divergence =
          [&](const Divergence& divergence) {
            note_down("divergence", json_of(divergence));
            fault("other bits after " + text_of(divergence));
          },
      .wrong =
          [&](const std::string& text) {
            note_down("wrong", text);
            fault("rejected by the textbook: " + visible(text));
          }};
  status.show(fmt::format("judging {} cases", cases.size()));
  const SoakResult result = soak(*backend, cases, run, effort, observer, environment.stop);
  note_down("end", json_of(result));
  status.erase();
  json.prose() << summary_of(result);
  Json document = {{"schema", "gpubench-soak"},
                   {"schema_version", 1},
                   {"version", version()},
                   {"device", backend->device().name},
                   {"seed", run.seed}};
  document.update(json_of(result));
  json.write(document);
  if (const int signal = environment.stop.load(); signal != 0 && result.passed()) return exit_code({{}, signal, false});
  if (result.launches == 0 && result.wrong.empty()) return exit_codes::nothing_ran;
  return result.passed() ? exit_codes::ok : exit_codes::verdict_failed;
}

}  // namespace gpubench
