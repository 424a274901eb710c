#include "harness/cli/verb_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/selection.h"
#include "harness/core/backend.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/report_json.h"
#include "harness/run/estimate.h"

namespace gpubench {
namespace {

constexpr double times_expected = 3.0;  // the factor of runs
constexpr double min_silence_s = 30.0, max_silence_s = 1800.0;

}  // namespace

WorkFinding finding_of(const Json& json) {
  const Node node(json, "a child's finding");
  const auto members = node.members();
  if (members.size() != 1) node.refuse("expected one member");
  return {members.front().first, members.front().second};
}

WorkPlan work_place(const Options& options, const Environment& environment) {
  DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  Selection selection = selection_for(options, device);
  selection.tier = options.tier.value_or(Tier::smoke);
  return {std::move(device), std::move(selection), {}};
}

WorkPlan work_plan(const Options& options, const Environment& environment) {
  WorkPlan plan = work_place(options, environment);
  plan.cases = plan_cases(environment.suites, plan.selection);
  return plan;
}

std::unique_ptr<Backend> open_for_work(const DeviceChoice& device, const WorkFindings& findings) {
  findings.now("opening the device");
  std::unique_ptr<Backend> backend = open_backend(device);
  findings.found({{"opened", to_json(backend->device())}});
  return backend;
}

bool is_working_child(const Options& options) { return options.worker_page >= 0 && options.worker_output >= 0; }

int work_as_child(const Options& options, const Environment& environment,
                  const std::function<void(const WorkFindings&)>& work) {
  environment.catch_signals();
  const ChildReporter teller(options.worker_output);
  WorkPage page(options.worker_page);
  try {
    work({[&](const Json& json) { teller.answer(dump(json)); }, [&](std::string_view what) { page.say(what); },
          [&] { page.beat(); }});
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    teller.answer(dump({{"error", std::string(e.what())}}));
  }
  return 0;
}

double silence_of(const Options& options, std::span<const PlannedCase> cases, const DeviceChoice& device,
                  const Environment& environment) {
  if (options.deadline_s) return *options.deadline_s;
  const Effort effort{options.tier.value_or(Tier::smoke), {}, options.run.check, device.backend->plan_s};
  double longest = 0.0;
  for (const auto& [id, one] : expected_cases(cases, effort, environment.host().usable_cpus))
    longest = std::max(longest, one.seconds());
  const double min_s = std::max(min_silence_s, device.backend->plan_limit_s);
  return std::clamp(times_expected * longest, min_s, max_silence_s);
}

std::vector<std::string> words_of_child(const Options& options, const std::string& device,
                                        const Environment& environment) {
  std::vector<std::string> argv{environment.program};
  argv.insert(argv.end(), options.words.begin(), options.words.end());
  argv.insert(argv.end(), {"--device", device});  // the last one counts
  return argv;
}

WorkEnd do_work(const Options& options, const WorkPlan& plan, const Environment& environment, StatusLine& status,
                const std::function<void(const WorkFindings&)>& work,
                const std::function<void(const WorkFinding&)>& found) {
  WorkEnd end;
  std::string error, doing;
  const auto take = [&](const Json& json) {
    const WorkFinding finding = finding_of(json);
    if (finding.kind == "error") {
      error = visible(finding.content.text());
    } else if (finding.kind == "opened") {
      end.info = device_from_json(finding.content);
    } else {
      found(finding);
    }
  };
  if (!options.isolate) {
    work({take, [&](std::string_view what) { status.show(doing = what); }, [] {}});
    return end;
  }
  prepare_for_children(plan.device);
  const bool waits_as_planned = plan.silence_s && !options.deadline_s;
  WorkingChildren children(waits_as_planned ? *plan.silence_s
                                            : silence_of(options, plan.cases, plan.device, environment));
  children.start(words_of_child(options, plan.device.word(), environment));
  end.trouble =
      children
          .listen(environment.stop, {[&](std::size_t, const std::string& line) { take(parse_json(line, "a child")); },
                                     [&] {
                                       if (std::string now = children.now(0); now != doing) status.show(doing = now);
                                     },
                                     {}})
          .front()
          .text();
  if (!error.empty()) end.trouble = fmt::format("stopped{}: {}", doing.empty() ? "" : " in " + visible(doing), error);
  if (environment.stop != 0) end.trouble.clear();
  return end;
}

}  // namespace gpubench
