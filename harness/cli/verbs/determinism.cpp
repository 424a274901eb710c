// gpubench determinism: repeats cases and finds the first op whose bits differ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "harness/cli/finding_records.h"
#include "harness/cli/repeated_runs.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"
#include "harness/cli/verb_work.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/verify/determinism.h"

namespace gpubench {
namespace {

struct DeterminismOptions {
  int runs = 5;
  std::vector<int> threads;  ///< numbers of threads to compare; empty: one thread; 0: none
  std::string save;
  std::string against;
};

std::string threads_text(int threads) { return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"); }

// The hashes of the same cases with another number of threads, in a child: libraries read it when they start.
std::map<std::string, CaseBits> bits_of_threads(int threads, std::span<const std::string> words,
                                                const Environment& environment) {
  const ReportFolder folder("", "determinism");
  std::vector<std::string> argv{environment.program};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto is = [&](std::string_view flag) {
      return words[i] == flag || words[i].starts_with(std::string(flag) + "=");
    };
    if (!is("--against") && !is("--json"))
      argv.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;
  }
  argv.insert(argv.end(), {"--threads", "0", "--runs", "2", "--save", folder.report(1), "--isolate", "off"});
  const OnProcessors fewer(threads);
  static_cast<void>(run_child_process(argv, environment.stop, environment.err));  // a failure shows in the file that it
                                                                                  // left
  return read_bits(folder.report(1)).cases;
}

std::string_view word_of(Sameness outcome) {
  constexpr std::array<std::string_view, 3> words{"same", "DIFFERS", "-"};
  return words[static_cast<std::size_t>(outcome)];
}

std::vector<std::string> ways_of(std::span<const DeterminismRecord> records) {
  std::vector<std::string> ways;
  for (const DeterminismRecord& record : records) {
    for (const Repetition& repetition : record.repetitions) {
      if (std::ranges::find(ways, repetition.way) == ways.end()) ways.push_back(repetition.way);
    }
  }
  return ways;
}

std::string table_of(std::span<const DeterminismRecord> records, const ConsoleStyle& style) {
  const std::vector<std::string> ways = ways_of(records);
  std::vector<Column> columns;
  for (const std::string& way : ways) columns.push_back({way});
  columns.push_back({"case"});
  TextTable table(columns);
  for (const DeterminismRecord& record : records) {
    std::vector<std::string> cells(ways.size());
    std::string below;
    for (const Repetition& repetition : record.repetitions) {
      cells[static_cast<std::size_t>(std::ranges::find(ways, repetition.way) - ways.begin())] =
          word_of(repetition.outcome);
      if (repetition.outcome == Sameness::differs)
        below += fmt::format("{}{}: {}", below.empty() ? "" : "; ", repetition.way, visible(repetition.text));
    }
    if (!record.unsupported.empty()) below = "unsupported: " + visible(record.unsupported);
    cells.push_back(record.id);
    table.add(cells, below.empty() ? Tone::plain : Tone::doubtful, below);
  }
  return table.text(style);
}

struct WayCount {
  std::string way, untested_reason;
  int same = 0, differ = 0;
};

std::vector<WayCount> counted(std::span<const DeterminismRecord> records) {
  std::vector<WayCount> counts;
  for (const std::string& way : ways_of(records)) counts.push_back({way, ""});
  for (const DeterminismRecord& record : records) {
    for (const Repetition& repetition : record.repetitions) {
      WayCount& count = *std::ranges::find(counts, repetition.way, &WayCount::way);
      if (repetition.outcome == Sameness::same) ++count.same;
      if (repetition.outcome == Sameness::differs) ++count.differ;
      if (repetition.outcome == Sameness::untested && count.untested_reason.empty())
        count.untested_reason = repetition.text;
    }
  }
  return counts;
}

// The result per way, and whether it is promised.
std::string summary_of(std::span<const DeterminismRecord> records, bool deterministic, int runs) {
  std::string text, promised, broken;
  for (const WayCount& count : counted(records)) {
    const bool is_promise = is_promised(count.way, deterministic);
    if (count.same + count.differ == 0) {
      text += fmt::format("{:<20} not tried: {}\n", count.way, visible(count.untested_reason));
      continue;
    }
    text += fmt::format("{:<20} the same bits in {} of {} cases{}\n", count.way, count.same, count.same + count.differ,
                        is_promise ? ", promised" : "");
    if (is_promise) promised += (promised.empty() ? "" : ", ") + count.way;
    if (is_promise && count.differ > 0) broken += (broken.empty() ? "" : ", ") + count.way;
  }
  if (!deterministic && broken.empty()) return text;
  return text + fmt::format("promised{}: {}; {}\n", deterministic ? " with --deterministic" : "", promised,
                            broken.empty() ? fmt::format("shown in {} runs each", runs) : "BROKEN: " + broken);
}

Json document_of(std::span<const DeterminismRecord> records, const DeviceInfo& device, const Options& options,
                 const Completion& completion, bool passed) {
  Json cases = Json::array();
  for (const DeterminismRecord& record : records) {
    Json repetitions = Json::array();
    for (const Repetition& repetition : record.repetitions)
      repetitions.push_back({{"way", repetition.way},
                             {"outcome", name(repetition.outcome)},
                             {"promised", is_promised(repetition.way, options.run.deterministic)},
                             {"text", repetition.text}});
    Json one = {{"id", record.id}, {"repetitions", std::move(repetitions)}};
    if (!record.unsupported.empty()) one["unsupported"] = record.unsupported;
    cases.push_back(std::move(one));
  }
  Json json = {{"schema", "gpubench-determinism"},
               {"schema_version", 1},
               {"version", version()},
               {"device", device.name},
               {"seed", options.run.seed},
               {"deterministic", options.run.deterministic},
               {"runs", options.of<DeterminismOptions>().runs},
               {"passed", passed},
               {"cases", std::move(cases)}};
  completion.add_to(json);
  return json;
}

void determinism_in_process(const Options& options, const WorkPlan& plan, const Environment& environment,
                            const WorkFindings& findings) {
  const std::unique_ptr<Backend> backend = open_for_work(plan.device, findings);
  RunOptions run = run_options(options, plan.selection.tier, environment, plan.device);
  run.alive = findings.alive;
  const DeterminismEffort effort{options.of<DeterminismOptions>().runs, plan.device.backend->has_graphs, findings.now};
  DeterminismProbe probe(*backend, run, effort);
  for (const PlannedCase& planned : plan.cases) {
    if (environment.stop != 0) break;
    findings.found({{"record", to_json(probe.measure(planned))}});
  }
  findings.now("the end");
}

std::vector<int> numbers_of_threads(const Options& options) {
  std::vector<int> numbers = options.of<DeterminismOptions>().threads;
  if (numbers.empty()) numbers = {1};
  if (std::ranges::find(numbers, 0) != numbers.end()) numbers.clear();  // a child gets 0, whatever numbers came before
  const int usable = usable_processors();
  for (const int threads : numbers) {
    if (threads > 1 && usable > 0 && threads > usable)
      throw UsageError(
          fmt::format("--threads: {} threads need that many processors, but this process may use {}", threads, usable));
  }
  return numbers;
}

// Exit code 1 if promised bits differ (is_promised()); 3 if the child crashed or hung.
int determinism_command(const Options& options, const Environment& environment) {
  const auto& own = options.of<DeterminismOptions>();
  const WorkPlan plan = work_plan(options, environment);
  if (plan.cases.empty()) return refuse_empty(plan.selection, environment);
  const auto work = [&](const WorkFindings& findings) { determinism_in_process(options, plan, environment, findings); };
  if (is_working_child(options)) return work_as_child(options, environment, work);
  std::optional<SavedBits> before;
  if (!own.against.empty()) {
    try {
      before = read_bits(own.against);
    } catch (const ReadError& e) {
      throw UsageError(fmt::format("--against: {}", e.what()));
    }
  }
  const ResultFile saved("--save", own.save, options.writing, environment);
  const ResultFile json("--json", options.json.value_or(""), options.writing, environment);
  const std::vector<int> threads = numbers_of_threads(options);
  environment.catch_signals();
  StatusLine status(environment);
  std::vector<DeterminismRecord> records;
  const auto [info, trouble] = do_work(options, plan, environment, status, work, [&](const WorkFinding& finding) {
    if (finding.kind == "record") records.push_back(determinism_from_json(finding.content));
  });
  const auto add = [&](const std::map<std::string, CaseBits>& others, std::string_view way) {
    for (DeterminismRecord& record : records) {
      if (record.unsupported.empty()) record.repetitions.push_back(against(others, record.bits, way));
    }
  };
  const std::size_t passes = info.kind == "cpu" ? threads.size() : 0;
  double measured = static_cast<double>(records.size());
  for (const int number : threads) {
    if (info.kind != "cpu" || environment.stop != 0 || !trouble.empty()) break;
    try {
      status.show(threads_text(number));
      add(bits_of_threads(number, options.words, environment), threads_text(number));
      if (environment.stop == 0) measured += static_cast<double>(plan.cases.size());
    } catch (const ReadError&) {
      environment.err << fmt::format("{}: the process that ran with these wrote no results\n", threads_text(number));
    }
  }
  status.erase();
  if (before) add(before->cases, way::before);
  const Stream stream = json.is_stdout() ? Stream::err : Stream::out;
  json.prose() << table_of(records, console_style(options, stream, environment)) << "\n"
               << summary_of(records, options.run.deterministic, own.runs);
  if (before) json.prose() << against_text(*before, info) << "\n";
  if (!trouble.empty()) json.prose() << "after these cases its process " << trouble << "\n";
  const int signal = environment.stop.load();
  const auto requested = static_cast<double>(plan.cases.size() * (1 + passes));
  const Completion completion{signal == 0 && trouble.empty() && measured >= requested, measured, requested,
                              "measurements of cases", trouble};
  if (signal != 0) json.prose() << "determinism " << completion.interrupted() << "\n";
  bool ran = false, broken = false;
  for (const DeterminismRecord& record : records) {
    for (const Repetition& repetition : record.repetitions) {
      ran = ran || repetition.outcome != Sameness::untested;
      broken =
          broken || (is_promised(repetition.way, options.run.deterministic) && repetition.outcome == Sameness::differs);
    }
  }
  saved.write(bits_json(records, info));
  json.write(document_of(records, info, options, completion, ran && !broken && completion.complete));
  if (signal != 0) return exit_code({{}, signal, false});
  if (broken) return exit_codes::verdict_failed;
  if (!trouble.empty()) return exit_codes::could_not_measure;
  return ran ? exit_codes::ok : exit_codes::nothing_ran;
}

std::vector<Flag> determinism_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--device", "--deadline", "--seed", "--deterministic", "--isolate", "--force", "--mode",
                    "--worker-output", "--worker-page", "--worker-share", "--color", "--json"},
                   suites),
      under("check",
            row("--runs", "N", "runs of each case (default: 5)",
                converted(own(&DeterminismOptions::runs), whole_from(2))),
            row("--threads", "N,...",
                "on the CPU, compare with runs of N threads (default: 1); 0 in the list: compare with none",
                several(Takes::list, own(&DeterminismOptions::threads), whole_from(0))),
            row("--save", "FILE", "save the results of every case, as hashes", text(own(&DeterminismOptions::save))),
            row("--against", "FILE", "compare with saved hashes, as of another library, driver or device",
                text(own(&DeterminismOptions::against)))));
}

}  // namespace

Verb determinism_verb() {
  return {.name = "determinism",
          .arguments = "[flags]",
          .summary = "test whether results are bitwise reproducible",
          .description =
              "From run to run, op by op, as a graph, in another batch, and with other numbers of ranks and threads.",
          .examples = R"(  gpubench determinism
  gpubench determinism --deterministic --suite conv,attention
  gpubench determinism --suite transformer --ranks 1,2,4
  gpubench determinism --save before.json      and after an update of a library or driver:
  gpubench determinism --against before.json
)",
          .flags = determinism_flags,
          .act = determinism_command,
          .options = DeterminismOptions{}};
}

}  // namespace gpubench
