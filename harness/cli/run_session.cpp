#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "harness/cli/exit_code.h"
#include "harness/cli/report_outputs.h"
#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verb_output.h"
#include "harness/compare/comparison.h"
#include "harness/core/backend.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/hardware/peaks.h"
#include "harness/measure/derive.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"
#include "harness/run/check.h"
#include "harness/run/estimate.h"

namespace gpubench {
namespace {

// The same command line on the chosen device: the worker plans the same cases. The last of repeated flags counts.
WorkerCommand worker_command(const RunPlan& plan) {
  WorkerCommand command{program_for(plan.run.implementations, plan.environment.program)};
  command.argv.insert(command.argv.end(), plan.options.words.begin(), plan.options.words.end());
  command.argv.insert(command.argv.end(), {"--device", plan.device.word()});
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

using Clock = std::chrono::steady_clock;

class Run {
 public:
  explicit Run(RunPlan plan) : plan_(std::move(plan)) {}

  void require_same_before_loading() {
    info_ = describe_device(plan_.device, environment_, options_.for_opening_s());
    require_same_run(*plan_.resumption, start().settings, settings_from_code);
  }

  int execute() {
    environment_.catch_signals();  // results must not be lost from here on
    started_ = environment_.time_of_day();
    clock_ = Clock::now();
    invocation_ = plan_.resumption == nullptr ? invocation_id(started_) : plan_.resumption->journal.start.invocation;
    destination_ = open_destination(options_, started_,
                                    plan_.resumption == nullptr ? HeldFolders() : std::move(plan_.resumption->folders));
    measure();
    seconds_ = std::chrono::duration<double>(Clock::now() - clock_).count();
    return finish();
  }

 private:
  void measure() {
    std::unique_ptr<Backend> backend;
    if (options_.isolate) {
      info_ = describe_device(plan_.device, environment_, options_.for_opening_s());
    } else {
      backend = open_backend(plan_.device);
      info_ = backend->device();
      add_gpu_properties(info_);
    }
    open_journal();
    std::vector<PlannedCase> left;
    for (const PlannedCase& planned : plan_.cases) {
      if (!plan_.run.finished.contains(planned.key())) left.push_back(planned);
    }
    const auto expected = expected_cases(
        left, {plan_.tier, options_.run.preset, options_.run.check, plan_.device.backend->plan_s}, info_.units);
    for (const auto& [key, one] : expected) plan_.run.expected_s[key] = one.seconds();
    announce(total_s(expected));
    ProgressOptions progress{progress_style(options_, environment_), run_style(options_, Stream::err, environment_),
                             columns_of(Stream::err, environment_), static_cast<int>(left.size())};
    progress.remaining = Remaining(expected);
    progress.rows = rows();
    const auto view = make_progress(environment_.err, progress);
    Recorder recorder(*view, info_, journal_.get());
    if (plan_.resumption != nullptr) recorder.take(plan_.resumption->journal);
    std::optional<AnonymousObserver> anonymous;
    if (anonymizer_) anonymous.emplace(*anonymizer_, recorder);
    RunObserver& observer = anonymous ? static_cast<RunObserver&>(*anonymous) : recorder;
    if (backend) {
      run_in_process(*backend, plan_.cases, plan_.run, observer, environment_.stop);
    } else {
      WorkerCommand command = worker_command(plan_);
      const std::unique_ptr<PrintedLog> printed = printed_log(command);
      run_isolated(plan_.cases, plan_.run, command, JsonRecordCodec(), observer, environment_.stop);
      if (printed) printed_ = printed->told();
    }
    signal_ = environment_.stop.load();
    records_ = recorder.in_order_of(plan_.cases, signal_);
    add_peak_shares(info_, records_);
    add_efficiency(records_, info_.units);
  }

  // Output of implementations goes to a file next to the report, so that it is not mistaken for gpubench's.
  [[nodiscard]] std::unique_ptr<PrintedLog> printed_log(WorkerCommand& command) const {
    if (plan_.run.implementations.empty() || destination_.journal_file.empty()) return nullptr;
    auto log = std::make_unique<PrintedLog>(printed_log_path(destination_.journal_file), journal_rules());
    command.output_fd = log->descriptor();
    return log;
  }

  // The start of the journal; requires the device.
  JournalStart start() {
    if (plan_.key) anonymizer_.emplace(*plan_.key, kept_flags(environment_.suites), report(), users_of(environment_));
    return {invocation_, anonymizer_ ? without_files(options_.own_words) : options_.own_words,
            settings_of(report(), plan_.cases, options_, anonymizer_ ? &*anonymizer_ : nullptr)};
  }

  [[nodiscard]] WriteRules journal_rules() const {
    return destination_.folders.rules(destination_.journal_file, options_.writing);
  }

  // Before the first case, so that no measurement is lost.
  void open_journal() {
    const JournalStart start = this->start();
    if (plan_.resumption != nullptr) require_same_run(*plan_.resumption, start.settings);
    if (destination_.journal_file.empty()) return;
    try {
      if (plan_.resumption == nullptr) {
        journal_ = std::make_unique<JournalWriter>(destination_.journal_file, start, journal_rules());
      } else {
        journal_ = std::move(plan_.resumption->writer);
        journal_->resumed();
      }
    } catch (const WriteError& e) {
      fail_to_write("", e);
    }
  }

  // Keeps the journal of an incomplete run.
  [[nodiscard]] std::string end_journal(bool report_lost) {
    if (journal_ == nullptr) return "";
    journal_.reset();
    if (signal_ == 0 && !report_lost) {
      const WriteRules rules = journal_rules();
      ::unlinkat(rules.folder, rules.name_of(destination_.journal_file).c_str(), 0);
      return "";
    }
    const std::filesystem::path file = destination_.journal_file;
    std::vector<std::string> words{options_.started_by + "gpubench run --resume",
                                   (file.filename() == journal_name ? file.parent_path() : file).string()};
    const std::vector<std::string> code = code_flags(options_.own_words);
    words.insert(words.end(), code.begin(), code.end());
    return joined(words, " ");
  }

  // With "-" standard output holds one document, with --turns the answers; the rest goes to standard error.
  [[nodiscard]] bool pure() const { return destination_.to_stdout() || options_.turns; }
  [[nodiscard]] std::ostream& out() const { return pure() ? environment_.err : environment_.out; }

  [[nodiscard]] ResultRows rows() const {
    const bool one_terminal = pure() || (environment_.out_is_terminal && environment_.err_is_terminal);
    return {&out(), out_style(), layout(), one_terminal};
  }
  [[nodiscard]] ConsoleStyle out_style() const {
    return run_style(options_, pure() ? Stream::err : Stream::out, environment_);
  }
  [[nodiscard]] RowLayout layout() const {
    std::vector<Case> cases;
    for (const PlannedCase& planned : plan_.cases) cases.push_back(planned.c);
    return row_layout(info_.kind, cases, out_style());
  }

  void announce(double expected_s) {
    const std::string libraries = visible(libraries_text(info_));
    const int width = columns_of(Stream::err, environment_);
    const std::string device = fmt::format("{}, {}, {} free{}{}", visible(info_.name), units_text(info_),
                                           format_quantity(static_cast<double>(info_.available_bytes), "B"),
                                           libraries.empty() ? "" : ", ", libraries);
    std::string work =
        fmt::format("{} cases at tier {}, about {}, check {}, seed {}", plan_.cases.size(), name(plan_.tier),
                    format_duration(expected_s), name(options_.run.check), options_.run.seed);
    if (options_.run.rechecks > 0) work += ", " + recheck_text(options_.run.rechecks);
    if (options_.run.deterministic) work += ", deterministic";
    if (!options_.run.arithmetic.empty()) work += ", accepting " + joined(options_.run.arithmetic, " and ");
    if (options_.run.locked_clock_mhz > 0)
      work += fmt::format(", SM clock locked at {} MHz", options_.run.locked_clock_mhz);
    environment_.err << fitted(device, width, 0) << "\n";
    if (const std::string limited = cpu_isa_text(info_); !limited.empty())
      environment_.err << fitted(visible(limited), width, 0) << "\n";
    environment_.err << fitted(work, width, 0) << "\n";
    if (plan_.resumption != nullptr)
      environment_.err << fitted(fmt::format("resuming an interrupted run: {} cases finished, {} partly measured",
                                             plan_.run.finished.size(), plan_.run.in_flight.size()),
                                 width, 0)
                       << "\n";
    const std::string busy = busy_warning(environment_.host());
    if (!busy.empty()) environment_.err << fitted(busy, width, 0) << "\n";
    environment_.err << std::flush;
  }

  [[nodiscard]] Report report() const {
    Report report;
    report.host = host_context(environment_.host(), environment_.program);
    RunContext& run = report.run;
    run.invocation = invocation_;
    run.tool_version = version();
    run.build = build_facts(environment_);
    run.argv.assign(options_.words.begin(), options_.words.end());
    run.suites = options_.selection.suites.empty() ? std::vector<std::string>{"all"} : options_.selection.suites;
    run.seed = options_.run.seed;
    run.tier = name(plan_.tier);
    run.preset = name(options_.run.preset.value_or(preset_of(plan_.tier)));
    run.injected = injected_text(options_);
    run.locked_clock_mhz = options_.run.locked_clock_mhz;
    run.check = name(options_.run.check);
    run.deterministic = options_.run.deterministic;
    run.arithmetic = options_.run.arithmetic;
    run.env = context_variables(environment_);
    run.env.insert(run.env.end(), options_.from_environment.begin(), options_.from_environment.end());
    run.devices = {info_};
    run.shapes = plan_.shapes;
    if (!plan_.claims.empty()) run.implementations.emplace();
    for (const Claims& one : plan_.claims) {
      run.implementations->push_back(one.file);
      if (options_.untried != Untried::off) run.implementations->back().untried = untried_of(one);
    }
    run.started_at = started_;
    run.finished_at = started_ + std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - clock_).count();
    run.resumed = plan_.resumption == nullptr ? 0 : plan_.resumption->journal.resumed + 1;
    run.complete = signal_ == 0;
    if (anonymizer_) anonymizer_->context(report);
    report.cases = records_;
    return report;
  }

  [[nodiscard]] std::vector<std::string> untried_of(const Claims& claims) const {
    if (!claims.offered) return {"unknown: " + claims.file.name + " did not report what it takes"};
    return untried(*claims.offered, cases_judged_of(claims.file.name));
  }
  [[nodiscard]] static bool is_judged(Verdict verdict) { return verdict == Verdict::pass || is_rejected(verdict); }
  [[nodiscard]] std::set<std::string> cases_judged_of(const std::string& contender) const {
    std::set<std::string> ids;
    for (const CaseRecord& record : records_) {
      if (record.c.contender == contender && is_judged(record.verdict)) ids.insert(record.c.id());
    }
    return ids;
  }

  int finish() {
    const Report report = this->report();
    untried_ = untried_lines(report.run);
    ReportOutputs outputs(report, options_, destination_, environment_);
    outputs.write();
    Outcome outcome{totals_of(records_), signal_, outputs.lost(),
                    options_.untried == Untried::fail && !untried_.empty()};
    std::ostream& out = this->out();
    const ConsoleStyle style = out_style();
    if (signal_ == 0) note_error_without_effect(options_, records_, environment_);
    resume_ = end_journal(outputs.lost());
    int code = tell(out, outcome, outputs, style);
    if (!printed_.empty()) environment_.err << printed_ << "\n";
    out << outputs.annotations() << std::flush;
    for (const std::string& complaint : outputs.complaints()) environment_.err << "gpubench: " << complaint << "\n";
    if (!out.good()) {  // the reader of standard output is gone, so the results are lost
      outcome.report_lost = true;
      environment_.err << "gpubench: standard output could not be written\n";
      code = exit_code(outcome);
    }
    environment_.err << std::flush;
    return code;
  }

  int tell(std::ostream& out, const Outcome& outcome, const ReportOutputs& outputs, const ConsoleStyle& style) const {
    const int code = exit_code(outcome);
    const bool any_row = !style.quiet || std::any_of(records_.begin(), records_.end(),
                                                     [](const CaseRecord& r) { return went_wrong(r.verdict); });
    const RowLayout rows = layout();
    out << (any_row ? "\n" : "") << failures_text(records_, style) << scaling_text(records_, style, rows)
        << links_text(records_, style, rank_places(info_)) << summary_text(records_, style, rows) << versus_text(style)
        << calls_totals_text(report(), style) << legend_text(records_, style) << "\n"
        << verdict_text(records_,
                        {code, explanation(outcome, code), outputs.report_path(), signal_ == 0, seconds_,
                         outputs.page_path(), resume_, untried_},
                        style)
        << std::flush;
    return code;
  }

  // With --versus: each contender compared with that one.
  [[nodiscard]] std::string versus_text(const ConsoleStyle& style) const {
    if (!options_.versus) return "";
    const std::string& base = *options_.versus;
    return contenders_text(report(), base == reference_name ? std::string() : base, style);
  }

  static std::string explanation(const Outcome& outcome, int code) {
    Outcome tried = outcome;
    tried.untried = false;
    if (exit_code(tried) != code) return "all that ran passed, but there are untried calls (--strict)";
    const bool unverified = code == exit_codes::ok && outcome.totals.count(Verdict::unverified) > 0;
    return unverified ? "nothing failed, and nothing was verified (--check off)" : explain_exit_code(code);
  }

  RunPlan plan_;
  const Options& options_ = plan_.options;
  const Environment& environment_ = plan_.environment;
  std::optional<Anonymizer> anonymizer_;
  std::unique_ptr<JournalWriter> journal_;
  std::string invocation_;
  std::string printed_;
  std::string resume_;  ///< command that resumes this run
  std::vector<std::string> untried_;
  Destination destination_;
  DeviceInfo info_;
  std::vector<CaseRecord> records_;
  std::time_t started_ = 0;
  Clock::time_point clock_;
  double seconds_ = 0.0;
  int signal_ = 0;
};

}  // namespace

int run_to_report(RunPlan plan) { return Run(std::move(plan)).execute(); }

void require_same_before_loading(RunPlan plan) { Run(std::move(plan)).require_same_before_loading(); }

}  // namespace gpubench
