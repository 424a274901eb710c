// gpubench-gbench: the same cases as Google Benchmark benchmarks, for users of its flags and tools.
//
// Every planned case is registered with manual time, one iteration and a repetition per round, so that the library's
// aggregates are over round medians. The first repetition checks the case, times it with the engine's rounds and checks
// it again. If a case did not pass, every repetition is an error without numbers. Cases run in this process; a crash
// ends the program.
#include "harness/cli/run_cli.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "harness/cli/device.h"
#include "harness/cli/options.h"
#include "harness/cli/recorder.h"
#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr std::string_view usage =
    "gpubench-gbench: gpubench's cases through Google Benchmark\n"
    "usage: gpubench-gbench [flags of gpubench run] [--benchmark_<flag>=<value> ...]\n\n"
    "gpubench run --help-all lists the flags that select and measure: --suite, --tier, --filter, --precision,\n"
    "--ranks, --device, --preset, --check, --seed, --pin and others. Flags of Google Benchmark:\n\n";

bool is_librarys(std::string_view word) { return word.starts_with("--benchmark_") || word.starts_with("--v="); }

// The library does not expose the values of its flags; this one sets the rounds of a case.
std::optional<int> requested_repetitions(std::span<const std::string> words) {
  constexpr std::string_view flag = "--benchmark_repetitions=";
  std::optional<int> repetitions;
  for (const std::string& word : words) {
    if (!word.starts_with(flag)) continue;
    const std::string_view digits = std::string_view(word).substr(flag.size());
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1)
      throw UsageError(fmt::format("{}'{}' is not a whole number from 1", flag, visible(digits)));
    repetitions = value;
  }
  return repetitions;
}

bool only_lists(std::span<const std::string> words) {
  const auto lists = [](const std::string& word) {
    return word == "--benchmark_list_tests" || word == "--benchmark_list_tests=true";
  };
  return std::any_of(words.begin(), words.end(), lists);
}

void refuse_unsupported_flags(const Options& options) {
  if (options.verb->name != "run") throw UsageError("gpubench-gbench has no verbs; gpubench has them");
  if (options.out || options.json)
    throw UsageError(
        "gpubench-gbench writes no report; --benchmark_out=FILE writes the library's, gpubench run its own");
  if (options.dry_run) throw UsageError("gpubench-gbench has no --dry-run; see --benchmark_list_tests");
  if (options.run.energy) throw UsageError("gpubench-gbench has no --energy; gpubench run has");
}

// Notes go to standard error; the library prints the results.
class Records final : public RunObserver {
 public:
  explicit Records(std::ostream& notes) : notes_(notes) {}
  void phase(std::string_view /*key*/, std::string_view /*phase*/) override {}
  void finished(const CaseRecord& record) override { records_[record.id] = record; }
  void note(std::string_view text) override { notes_ << visible(text) << "\n"; }
  void tick() override {}

  [[nodiscard]] const CaseRecord* find(const std::string& id) const {
    const auto found = records_.find(id);
    return found == records_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::vector<CaseRecord> all() const {
    std::vector<CaseRecord> list;
    for (const auto& [id, record] : records_) list.push_back(record);
    return list;
  }

 private:
  std::map<std::string, CaseRecord> records_;
  std::ostream& notes_;
};

class Session {
 public:
  /// `anonymizer`: null without --anonymize; must outlive this.
  Session(std::unique_ptr<Backend> backend, std::vector<PlannedCase> plan, RunOptions options,
          const Environment& environment, const Anonymizer* anonymizer)
      : backend_(std::move(backend)),
        plan_(std::move(plan)),
        options_(std::move(options)),
        stop_(environment.stop),
        records_(environment.err) {
    if (anonymizer != nullptr) anonymous_.emplace(*anonymizer, records_);
  }

  void register_all() {
    for (const PlannedCase& planned : plan_) {
      auto* registered = benchmark::RegisterBenchmark(
          planned.id().c_str(), [this, &planned](benchmark::State& state) { repetition(planned, state); });
      registered->UseManualTime()->Iterations(1)->Repetitions(*options_.rounds)->Unit(benchmark::kMicrosecond);
    }
  }

  [[nodiscard]] std::vector<CaseRecord> records() const { return records_.all(); }

 private:
  // The first repetition does all the work before the library's clock starts; the others report its results.
  void repetition(const PlannedCase& planned, benchmark::State& state) {
    const std::string id = planned.id();
    RunObserver& observer = anonymous_ ? static_cast<RunObserver&>(*anonymous_) : records_;
    if (records_.find(id) == nullptr) run_in_process(*backend_, std::span(&planned, 1), options_, observer, stop_);
    const CaseRecord* record = records_.find(id);
    std::size_t& told = told_[id];
    if (record == nullptr || record->verdict != Verdict::pass) {
      const std::string reason = record == nullptr ? "stopped" : record->reason;
      state.SkipWithError(
          fmt::format("{}: {}", record == nullptr ? "skipped" : name(record->verdict), visible(reason)).c_str());
      return;
    }
    const RoundRecord& round = record->rounds[told++ % record->rounds.size()];
    if (!round.valid) {
      state.SkipWithError(visible(round.note).c_str());
      return;
    }
    const double per_run_ns = median(round.times.device_ns) / static_cast<double>(record->batch);
    for (auto ignored : state) {  // once
      (void)ignored;
      state.SetIterationTime(per_run_ns * 1e-9);
    }
    if (!record->c.label.empty()) state.SetLabel(record->c.label.c_str());
    // For a counter of 0 the library would write NaN as coefficient of variation, which is not JSON.
    for (const auto& [counter, work] :
         {std::pair{"flop_per_second", record->derived.flop}, {"bytes_per_second", record->derived.bytes}}) {
      if (work > 0.0) state.counters[counter] = benchmark::Counter(work, benchmark::Counter::kIsRate);
    }
  }

  std::unique_ptr<Backend> backend_;
  std::vector<PlannedCase> plan_;
  RunOptions options_;
  const StopFlag& stop_;
  Records records_;
  std::optional<AnonymousObserver> anonymous_;
  std::map<std::string, std::size_t> told_;
};

int run(std::vector<std::string> words, char* program, const Environment& environment) {
  const auto first_of_library =
      std::stable_partition(words.begin(), words.end(), [](const std::string& word) { return !is_librarys(word); });
  std::vector<std::string> for_library(first_of_library, words.end());
  words.erase(first_of_library, words.end());

  const Options options = parse_options(words, environment.variable);
  if (options.verb->name == "probe") {  // the child that asks the driver
    probe(options.subject, options.worker_output, environment.backends);
    return exit_codes::ok;
  }
  refuse_unsupported_flags(options);
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Selection selection = selection_for(options, device);
  std::vector<PlannedCase> plan = plan_cases(environment.suites, selection);
  if (plan.empty()) return refuse_empty(selection, environment);
  RunOptions run = run_options(options, selection.tier, environment, device);
  run.rounds = requested_repetitions(for_library).value_or(run.protocol().min_rounds);

  Report machine;  // only the facts that the library prints
  machine.host.host_name = benchmark::SystemInfo::Get().name;
  machine.host.executable = program;
  std::optional<Anonymizer> anonymizer;
  if (const std::optional<HashKey> key = key_for(options, environment)) {
    anonymizer.emplace(*key, kept_flags(environment.suites), machine, users_of(environment));
    anonymizer->context(machine);
    // The library writes the host's name and has no flag against it. The object is not const; only Get() returns it so.
    const_cast<benchmark::SystemInfo&>(benchmark::SystemInfo::Get()).name = machine.host.host_name;
  }

  std::vector<char*> argv{machine.host.executable.data()};
  for (std::string& word : for_library) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) throw UsageError(fmt::format("unknown flag '{}' of Google Benchmark", visible(argv[1])));
  benchmark::AddCustomContext("gpubench", std::string(version()));
  benchmark::AddCustomContext("device", visible(device.word()));

  Session session(open_backend(device), std::move(plan), std::move(run), environment,
                  anonymizer ? &*anonymizer : nullptr);
  session.register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (only_lists(for_library)) return exit_codes::ok;
  return exit_code({totals_of(session.records()), environment.stop.load(), false});
}

}  // namespace

int run_gbench(int argc, char** argv, const Environment& environment) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  try {
    if (std::find(words.begin(), words.end(), "--help") != words.end()) {
      environment.out << usage << std::flush;
      std::string help = "--help";
      char* library[] = {argv[0], help.data(), nullptr};
      int count = 2;
      benchmark::Initialize(&count, library);  // prints its own and ends the program
      return exit_codes::ok;
    }
    return run(words, argv[0], environment);
  } catch (const UsageError& e) {
    environment.err << "gpubench-gbench: " << visible(e.what()) << std::endl;
    return exit_codes::usage;
  } catch (const std::exception& e) {
    environment.err << "gpubench-gbench: " << visible(e.what()) << std::endl;
    return exit_codes::could_not_measure;
  }
}

}  // namespace gpubench
