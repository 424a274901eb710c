// tune-batch: the largest batch that fits, and the fastest. Plans sizes without running; then runs this program once
// per batch to measure the rate, and whether the largest really fits.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "harness/cli/repeated_runs.h"
#include "harness/cli/tune_batch.h"
#include "harness/cli/verb.h"
#include "harness/core/text/quantity.h"
#include "harness/page/report_page.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

struct TuneBatchOptions {
  double budget_s = 120.0;
};

using Clock = std::chrono::steady_clock;

constexpr double fine_enough = 1.0 / 8;  // resolution of the largest batch, as a share of it

class Trials {
 public:
  Trials(const Options& options, const Environment& environment, Tier tier)
      : options_(options), environment_(environment), tier_(tier), began_(Clock::now()) {}

  [[nodiscard]] double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  [[nodiscard]] bool stopped() const { return environment_.stop.load() != 0; }
  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const Report& last() const { return last_; }

  /// Nothing if the run left no report.
  std::optional<CaseRecord> run(const PlannedCase& planned, std::int64_t batch) {
    const std::string report = folder_.report(++runs_);
    std::vector<std::string> argv{environment_.program, "run"};
    const auto is_replaced = [](const Flag& flag) {
      constexpr std::string_view names[] = {"--suite", "--tier", "--filter", "--exclude", "--precision", "--batch"};
      return std::ranges::find(names, flag.long_name) != std::end(names);
    };
    const std::vector<std::string> kept = parted("tune-batch", options_.own_words, is_replaced).others;
    argv.insert(argv.end(), kept.begin(), kept.end());
    argv.insert(argv.end(),
                {"--suite", planned.c.suite, "--tier", std::string(name(tier_)), "--filter", id_pattern(planned.id()),
                 "--precision", planned.c.recipe, "--batch", fmt::format("{}", batch), "--progress", "none", "--github",
                 "off", "--force", "--json", report});
    const int code = run_child_process(argv, environment_.stop, environment_.err);
    if (code != exit_codes::ok) code_ = code;
    if (!std::filesystem::exists(report)) return std::nullopt;
    try {
      last_ = read_report(report);
    } catch (const ReadError& e) {
      throw CannotMeasure(e.what());
    }
    return last_.cases.empty() ? std::nullopt : std::optional(last_.cases.front());
  }

 private:
  const Options& options_;
  const Environment& environment_;
  Tier tier_;
  ReportFolder folder_{"", "tune-batch"};
  Clock::time_point began_;
  Report last_;
  int runs_ = 0;
  int code_ = exit_codes::nothing_ran;
};

bool did_not_fit(const CaseRecord& record) {
  return record.verdict == Verdict::skipped || record.verdict == Verdict::error;
}

// Doubles the batch up to the largest that should fit, then tries that one; if it does not fit, searches between. Stops
// if the next run would probably end after `until_s`, assuming the last run's time per item.
TunedCurve measured(const TunedShape& shape, std::span<const std::int64_t> wanted, std::int64_t available,
                    double until_s, Trials& trials) {
  TunedCurve curve;
  curve.recipe = shape.c().recipe;
  curve.by_plan = shape.largest(available);
  if (until_s <= 0.0) {
    curve.untried = "nothing was run (--dry-run)";
    return curve;
  }
  std::vector<std::int64_t> next(wanted.begin(), wanted.end());
  std::sort(next.begin(), next.end());
  for (std::int64_t batch = 1; wanted.empty() && batch < curve.by_plan; batch *= 2) next.push_back(batch);
  if (wanted.empty() && curve.by_plan > 0) next.push_back(curve.by_plan);
  double run_s = 0.0;
  std::int64_t last = 0, too_large = curve.by_plan + 1;
  const auto try_one = [&](std::int64_t batch) {
    const double expected_s =
        last == 0 ? 0.0 : run_s * std::max(1.0, static_cast<double>(batch) / static_cast<double>(last));
    if (trials.elapsed_s() + expected_s > until_s) {
      curve.untried = fmt::format("batch {} would take about {} more (--budget)", batch, format_duration(expected_s));
      return false;
    }
    const double before_s = trials.elapsed_s();
    std::optional<CaseRecord> record = trials.run(shape.with(batch), batch);
    run_s = trials.elapsed_s() - before_s;
    last = batch;
    if (!record || trials.stopped()) return false;
    if (did_not_fit(*record)) too_large = std::min(too_large, batch);
    curve.trials.push_back(std::move(*record));
    curve.batches.push_back(batch);
    return true;
  };
  for (const std::int64_t batch : next) {
    if (batch >= too_large || !try_one(batch)) break;
  }
  const auto gap = [&] { return static_cast<double>(too_large - curve.largest()); };
  while (wanted.empty() && curve.untried.empty() && !trials.stopped() && too_large <= curve.by_plan &&
         curve.largest() > 0 && gap() > std::max(1.0, fine_enough * static_cast<double>(too_large))) {
    if (!try_one(curve.largest() + (too_large - curve.largest()) / 2)) break;
  }
  return curve;
}

// One shape per recipe: the last of the tier, which is its largest apart from edge cases.
std::vector<TunedShape> shapes_of(const Options& options, const Environment& environment, Selection selection) {
  selection.batches.clear();
  std::vector<PlannedCase> found = named_by(options.subject, declared_cases(environment.suites, selection));
  if (found.empty() && !options.tier) {
    selection.tier = Tier::large;
    found = named_by(options.subject, declared_cases(environment.suites, selection));
  }
  if (found.empty()) refuse_subject("tune-batch", options.subject, environment);
  const auto is_of_a_model = [](const PlannedCase& one) { return !one.c.label.starts_with("edge"); };
  const auto chosen = std::find_if(found.rbegin(), found.rend(), is_of_a_model);
  const PlannedCase last = chosen == found.rend() ? found.back() : *chosen;
  const std::string axis = last.workload->info().batch_axis;
  const std::string name = last.c.suite + "/" + last.c.workload;
  if (axis.empty()) throw UsageError(fmt::format("tune-batch: {} has no batch: its work is of one size", name));
  const std::string dims = TunedShape(last, axis).dims();
  std::vector<TunedShape> shapes;
  std::vector<std::string> others;
  for (const PlannedCase& one : found) {
    const std::string own = one.c.suite + "/" + one.c.workload + "/" + TunedShape(one, axis).dims();
    if (own != name + "/" + dims) {
      if (std::find(others.begin(), others.end(), own) == others.end()) others.push_back(own);
    } else if (std::none_of(shapes.begin(), shapes.end(), [&](const TunedShape& s) {
                 return s.c().recipe == one.c.recipe && s.c().modes == one.c.modes;
               })) {
      shapes.emplace_back(one, axis);
    }
  }
  if (!others.empty())
    environment.err << fmt::format(
        "tune-batch: {} shapes match {}; using {}/{}: a longer part of an id, --axis or --tier choose another\n",
        others.size() + 1, visible(options.subject), name, dims);
  return shapes;
}

void write_files(const Options& options, std::span<const TunedShape> shapes, std::span<const TunedCurve> curves,
                 Report report, const Json& json, const Environment& environment) {
  const WriteRules rules{true, options.writing.mode};
  const auto write = [&](const std::string& path, const std::string& text) {
    write_listed(path, text, rules, environment);
  };
  try {
    if (options.json && *options.json != "-") write(*options.json, dump(json, 1) + "\n");
    const std::string drawing = chart::svg(chart_of(shapes, curves), "tune-batch", chart::Placement::file);
    if (!options.svg.empty() && !drawing.empty()) write(options.svg, drawing + "\n");
    if (options.output.empty()) return;
    report.cases.clear();
    for (const TunedCurve& curve : curves)
      report.cases.insert(report.cases.end(), curve.trials.begin(), curve.trials.end());
    write(options.output, page::report_page(std::span(&report, 1)));
  } catch (const WriteError& e) {
    throw CannotMeasure(e.what());
  }
}

// Runs this program once per batch. Exit code 0 if each precision has a batch that passed, else that of the last run
// that did not.
int tune_batch_command(const Options& options, const Environment& environment) {
  if (options.subject.empty())
    throw UsageError("tune-batch needs a workload, or a part of a case's id: gpubench tune-batch gpt2_train_step");
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Selection selection = selection_for(options, device);
  const std::vector<TunedShape> shapes = shapes_of(options, environment, selection);
  const std::int64_t available = describe_device(device, environment, options.for_opening_s()).available_bytes;
  environment.catch_signals();
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  const bool pure = options.json == "-";
  std::ostream& out = pure ? environment.err : environment.out;
  Trials trials(options, environment, selection.tier);
  std::vector<TunedCurve> curves;
  Json json = {{"schema", "gpubench-tune-batch"},
               {"schema_version", 1},
               {"available_bytes", available},
               {"budget_s", options.of<TuneBatchOptions>().budget_s},
               {"curves", Json::array()}};
  for (std::size_t i = 0; i < shapes.size() && !trials.stopped(); ++i) {
    const TunedShape& shape = shapes[i];
    const double until_s = options.dry_run ? 0.0
                                           : options.of<TuneBatchOptions>().budget_s * static_cast<double>(i + 1) /
                                                 static_cast<double>(shapes.size());
    curves.push_back(measured(shape, selection.batches, available, until_s, trials));
    out << fmt::format("{}{}/{} {}, batch {}\n", i == 0 ? "" : "\n", shape.c().suite,
                       shape.c().workload + "/" + shape.dims(), shape.c().recipe, shape.axis())
        << table_of(shape, curves.back(), style) << summary_of(shape, curves.back(), available, style) << std::flush;
    json["workload"] = shape.c().suite + "/" + shape.c().workload;
    json["shape"] = shape.dims();
    json["axis"] = shape.axis();
    json["item"] = shape.item();
    json["curves"].push_back(json_of(shape, curves.back()));
  }
  const int signal = environment.stop.load();
  const Completion completion = completion_of(curves.size(), shapes.size(), "precisions", signal);
  completion.add_to(json);
  if (signal != 0) out << "tune-batch " << completion.interrupted() << "\n" << std::flush;
  write_files(options, shapes, curves, trials.last(), json, environment);
  if (pure) environment.out << dump(json, 1) << "\n";
  if (signal != 0) return exit_code({{}, signal, false});
  if (options.dry_run) return exit_codes::ok;
  const bool all =
      std::all_of(curves.begin(), curves.end(), [](const TunedCurve& curve) { return curve.best().has_value(); });
  return all ? exit_codes::ok : trials.code();
}

std::vector<Flag> tune_batch_flags(std::span<const std::string> suites) {
  const auto seconds = [](const std::string& flag, const std::string& word) {
    return static_cast<double>(whole<std::int64_t>(flag, word, 1, 7 * 24 * 3600));
  };
  return together(
      under("output",
            row("--budget", "SECONDS", "time of all trials (default: 120); untried batches are named",
                converted(own(&TuneBatchOptions::budget_s), seconds)),
            row("--json", "FILE", "curves and answers as JSON; -: to standard output only", text(&Options::json)),
            row("--svg", "FILE", "the curve as a chart", text(&Options::svg)),
            row("-o,--output", "FILE", "the page of all trials, with their charts", text(&Options::output))),
      shared_flags({"select", "measure", "check", "--mode", "--color"}, suites), subject_argument("WORKLOAD"));
}

}  // namespace

Verb tune_batch_verb() {
  return {.name = "tune-batch",
          .arguments = "WORKLOAD [flags, and those of run]",
          .summary = "find the largest batch that fits, and the fastest",
          .description = "The largest by plan, then by trial; prints the rates of the batches between.",
          .examples =
              R"(  gpubench tune-batch gpt2_train_step --precision bf16
  gpubench tune-batch conv2d_forward --axis h=56 --axis w=56 --dry-run   by plan alone
  gpubench tune-batch llama_block --tier standard --budget 600 --json tuned.json --svg curve.svg -o tuned.html
)",
          .flags = tune_batch_flags,
          .act = tune_batch_command,
          .options = TuneBatchOptions{}};
}

}  // namespace gpubench
