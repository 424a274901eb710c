#include "harness/cli/run_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>

#include "harness/cli/busy_warning.h"
#include "harness/cli/destination.h"
#include "harness/cli/device.h"
#include "harness/cli/estimate.h"
#include "harness/cli/exit_code.h"
#include "harness/cli/injection_notice.h"
#include "harness/cli/json_codec.h"
#include "harness/cli/list_verb.h"
#include "harness/cli/progress.h"
#include "harness/cli/report_outputs.h"
#include "harness/cli/run_context.h"
#include "harness/cli/run_setup.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/core/device_property.h"
#include "harness/hardware/ceilings.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/measure/rank_spread.h"
#include "harness/report/console.h"
#include "harness/report/device_text.h"
#include "harness/report/quantity.h"
#include "harness/report/scaling.h"
#include "harness/report/visible_text.h"
#include "harness/run/case_verdict.h"

namespace gpubench {
namespace {

// Keeps each case's record and passes everything on to what the user watches: there a record is held against the device
// at once, for a rate that cannot be true must not be shown as a pass first.
class Recorder final : public RunObserver {
 public:
  Recorder(RunObserver& view, const DeviceInfo& device) : view_(view), device_(device) {}

  void phase(std::string_view case_id, std::string_view phase) override { view_.phase(case_id, phase); }
  void finished(const CaseRecord& record) override {
    records_[record.id] = record;
    bests_.push_back(record);
    add_ceilings(device_, bests_);
    view_.finished(bests_.back());
    const std::optional<PeakShare>& peak = bests_.back().derived.peak;
    if (!peak || peak->of_best.value_or(0.0) < 1.0) bests_.pop_back();
  }
  void note(std::string_view text) override { view_.note(text); }
  void tick() override { view_.tick(); }

  // Every planned case in the order of the plan; one without a record was not reached.
  [[nodiscard]] std::vector<CaseRecord> in_order_of(std::span<const PlannedCase> plan, bool interrupted) const {
    std::vector<CaseRecord> all;
    for (const PlannedCase& planned : plan) {
      const auto found = records_.find(planned.id());
      all.push_back(found == records_.end() ? without_record(planned, interrupted) : found->second);
    }
    return all;
  }

 private:
  static CaseRecord without_record(const PlannedCase& planned, bool interrupted) {
    CaseRecord record = record_of(planned);
    record.verdict = interrupted ? Verdict::skipped : Verdict::error;
    record.reason = interrupted ? "the run was interrupted before this case finished"
                                : "the run ended without a record of this case";
    return record;
  }

  std::map<std::string, CaseRecord> records_;
  std::vector<CaseRecord> bests_;  ///< those that were the best of their kind when they finished
  RunObserver& view_;
  const DeviceInfo& device_;
};

// The same call again: the worker plans the same cases on the device that was chosen here. Last flags count.
WorkerCommand worker_command(std::span<const std::string> words, const std::string& program,
                             const std::string& device) {
  WorkerCommand command{{program}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.argv.insert(command.argv.end(), {"--device", device});
  return command;
}

ProgressStyle progress_style(const Options& options, const Environment& environment) {
  switch (options.progress) {
    case ProgressMode::bar: return ProgressStyle::bar;
    case ProgressMode::lines: return ProgressStyle::lines;
    case ProgressMode::none: return ProgressStyle::none;
    case ProgressMode::automatic: break;
  }
  // A dumb terminal cannot erase a line.
  const bool redraws = environment.err_is_terminal && environment.variable("TERM") != "dumb";
  return redraws ? ProgressStyle::bar : ProgressStyle::lines;
}

// One run from its plan to its report.
class Run {
 public:
  Run(const Options& options, std::span<const std::string> words, const Environment& environment, DeviceChoice device,
      std::vector<PlannedCase> plan, Tier tier, RunOptions run_options)
      : options_(options),
        words_(words),
        environment_(environment),
        device_(std::move(device)),
        plan_(std::move(plan)),
        tier_(tier),
        run_options_(std::move(run_options)) {}

  int execute() {
    environment_.catch_signals();  // from here on there is something to lose
    started_ = std::time(nullptr);
    destination_ = open_destination(options_, started_);
    const auto clock = std::chrono::steady_clock::now();
    measure();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - clock).count();
    return finish();
  }

 private:
  void measure() {
    std::unique_ptr<Backend> backend;
    if (options_.isolate) {
      info_ = describe_device(device_, environment_, options_.for_opening_s());
    } else {
      backend = open_backend(device_, options_.deterministic);
      info_ = backend->device();
      add_gpu_properties(info_);
    }
    const auto expected = expected_cases(plan_, {tier_, options_.preset, options_.check}, info_.units);
    for (const auto& [id, one] : expected) run_options_.expected_s[id] = one.checking_s + one.timing_s;
    announce(total_s(expected));
    ProgressOptions progress{progress_style(options_, environment_), console_style(options_, Stream::err, environment_),
                             columns_of(Stream::err, environment_), static_cast<int>(plan_.size())};
    progress.remaining = Remaining(expected);
    progress.rows = rows();
    const auto view = make_progress(environment_.err, progress);
    Recorder recorder(*view, info_);
    if (backend) {
      run_in_process(*backend, plan_, run_options_, recorder, environment_.stop);
    } else {
      run_isolated(plan_, run_options_, worker_command(words_, environment_.program, device_.word()), JsonRecordCodec(),
                   recorder, environment_.stop);
    }
    signal_ = environment_.stop.load();
    records_ = recorder.in_order_of(plan_, signal_ != 0);
    add_ceilings(info_, records_);
    add_efficiency(records_, info_.units);
  }

  // With "-" standard output holds one document alone; people read the rest on standard error.
  [[nodiscard]] bool pure() const { return destination_.to_stdout(); }
  [[nodiscard]] std::ostream& out() const { return pure() ? environment_.err : environment_.out; }

  [[nodiscard]] ResultRows rows() const {
    const bool one_terminal = pure() || (environment_.out_is_terminal && environment_.err_is_terminal);
    RowLayout layout{info_.kind == "cuda" ? ShareColumn::of_peak : ShareColumn::of_best};
    for (const PlannedCase& planned : plan_) {
      if (!planned.c.label.empty()) layout.id_width = std::max(layout.id_width, columns(planned.id()));
    }
    return {&out(), console_style(options_, pure() ? Stream::err : Stream::out, environment_), layout, one_terminal};
  }

  void announce(double expected_s) {
    const std::string libraries = visible(libraries_text(info_));
    const int width = console_style(options_, Stream::err, environment_).width;
    const std::string device = fmt::format("{}, {}, {} free{}{}", visible(info_.name), units_text(info_),
                                           format_quantity(static_cast<double>(info_.available_bytes), "B"),
                                           libraries.empty() ? "" : ", ", libraries);
    std::string work = fmt::format("{} cases at tier {}, about {}, check {}, seed {}", plan_.size(), name(tier_),
                                   format_duration(expected_s), name(options_.check), options_.seed);
    if (options_.deterministic) work += ", deterministic";
    if (options_.locked_clock_mhz > 0) work += fmt::format(", SM clock locked at {} MHz", options_.locked_clock_mhz);
    environment_.err << fitted(device, width, 0) << "\n";
    if (const std::string limited = cpu_isa_text(info_); !limited.empty())
      environment_.err << fitted(visible(limited), width, 0) << "\n";
    environment_.err << fitted(work, width, 0) << "\n";
    const std::string busy = busy_warning(environment_.host());
    if (!busy.empty()) environment_.err << fitted(busy, width, 0) << "\n";
    environment_.err << std::flush;
  }

  [[nodiscard]] Report report() const {
    Report report;
    report.host = host_context(environment_.host(), environment_.program);
    RunContext& run = report.run;
    run.invocation = invocation_id(started_);
    run.tool_version = version();
    run.build = build_facts(environment_);
    run.argv.assign(words_.begin(), words_.end());
    run.suites = options_.selection.suites.empty() ? std::vector<std::string>{"all"} : options_.selection.suites;
    run.seed = options_.seed;
    run.tier = name(tier_);
    run.preset = name(options_.preset.value_or(preset_of(tier_)));
    run.injected = injected_text(options_);
    run.locked_clock_mhz = options_.locked_clock_mhz;
    run.check = name(options_.check);
    run.deterministic = options_.deterministic;
    run.env = telling_variables(environment_);
    run.env.insert(run.env.end(), options_.from_environment.begin(), options_.from_environment.end());
    run.devices = {info_};
    run.started_at = started_;
    run.finished_at = std::time(nullptr);
    run.complete = signal_ == 0;
    report.cases = records_;
    return report;
  }

  int finish() {
    const ReportOutputs outputs(report(), options_, destination_, environment_);
    const Outcome outcome{totals_of(records_), signal_, !outputs.write()};
    std::ostream& out = this->out();
    const ConsoleStyle style = console_style(options_, pure() ? Stream::err : Stream::out, environment_);
    page_ = outputs.write_page();
    if (signal_ == 0) tell_error_without_effect(options_, records_, environment_);
    const int code = tell(out, outcome, style);
    out << outputs.annotations() << std::flush;
    return out.good() ? code : tell_lost(outcome);
  }

  int tell(std::ostream& out, const Outcome& outcome, const ConsoleStyle& style) const {
    const int code = exit_code(outcome);
    const std::string path = outcome.report_lost         ? ""
                             : destination_.file.empty() ? destination_.json_file
                                                         : destination_.file;
    const bool any_row = !style.quiet || std::any_of(records_.begin(), records_.end(),
                                                     [](const CaseRecord& r) { return went_wrong(r.verdict); });
    out << (any_row ? "\n" : "") << failures_text(records_, style) << scaling_text(records_, style)
        << summary_text(records_, style) << legend_text(records_, style) << "\n"
        << verdict_text(records_, {code, explanation(outcome, code), path, signal_ == 0, seconds_, page_}, style)
        << std::flush;
    return code;
  }

  static std::string explanation(const Outcome& outcome, int code) {
    const bool unverified = code == exit_codes::ok && outcome.totals.count(Verdict::unverified) > 0;
    return unverified ? "nothing failed, and nothing was verified (--check off)" : explain_exit_code(code);
  }

  // Whoever read standard output went away: the results did not arrive.
  int tell_lost(Outcome outcome) const {
    outcome.report_lost = true;
    environment_.err << "gpubench: standard output could not be written\n";
    return exit_code(outcome);
  }

  const Options& options_;
  std::span<const std::string> words_;
  const Environment& environment_;
  DeviceChoice device_;
  std::vector<PlannedCase> plan_;
  Tier tier_;
  RunOptions run_options_;
  Destination destination_;
  DeviceInfo info_;
  std::vector<CaseRecord> records_;
  std::string page_;  ///< path of what was drawn
  std::time_t started_ = 0;
  double seconds_ = 0.0;
  int signal_ = 0;
};

}  // namespace

int run_verb(const Options& options, std::span<const std::string> words, const Environment& environment) {
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Selection selection = selection_for(options, device);
  expect_devices_for(selection, device);
  std::vector<PlannedCase> plan = plan_cases(environment.suites, selection);
  const RunOptions run = run_options(options, selection.tier, environment, device);
  if (options.is_worker()) {
    const std::unique_ptr<Backend> backend = open_backend(device, options.deterministic);
    return serve(*backend, plan, run, JsonRecordCodec(), options.worker_input, options.worker_output);
  }
  environment.err << fitted(fmt::format("gpubench {}, device: {} ({})", version(),
                                        device.word() == "cpu" ? "CPU" : device.word(), visible(device.why)),
                            console_style(options, Stream::err, environment).width, 0)
                  << std::endl;
  tell_variables(options, environment);
  tell_lacking(selection, device, environment);
  if (plan.empty()) return refuse_empty(selection, environment);
  tell_suites_without_cases(selection, plan, environment);
  for (const std::string& sentence : doubtful_wishes(options, device, read_host().usable_cpus))
    environment.err << "warning: " << sentence << "\n";
  announce_injections(options, plan, environment);
  if (options.dry_run) {
    environment.out << plan_text(plan, {selection.tier, options.preset, options.check}, environment.host().usable_cpus,
                                 console_style(options, Stream::out, environment));
    return exit_codes::ok;
  }
  return Run(options, words, environment, device, std::move(plan), selection.tier, run).execute();
}

}  // namespace gpubench
