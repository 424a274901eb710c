// gpubench determinism: whether the same bits come again, and which op is the first that leaves others.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "harness/cli/children.h"
#include "harness/cli/device.h"
#include "harness/cli/flags.h"
#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verb_output.h"
#include "harness/cli/verbs.h"
#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"
#include "harness/run/determinism.h"

namespace gpubench {
namespace {

constexpr std::string_view schema = "gpubench-bits";
constexpr int schema_version = 1;

Json json_of(std::span<const DeterminismRecord> records, const DeviceInfo& device) {
  Json cases = Json::array();
  for (const DeterminismRecord& record : records) {
    if (!record.unsupported.empty()) continue;
    Json values = Json::array();
    for (const ValueBits& value : record.bits.values) {
      Json parts = Json::array();
      for (const std::uint64_t part : value.parts) parts.push_back(fmt::format("{:016x}", part));
      values.push_back({{"tensor", value.tensor},
                        {"op", value.op},
                        {"kind", value.kind},
                        {"implementation", value.implementation},
                        {"elements", value.elements},
                        {"part_elements", value.part_elements},
                        {"parts", std::move(parts)}});
    }
    cases.push_back({{"id", record.id}, {"seed", record.bits.seed}, {"values", std::move(values)}});
  }
  return {{"schema", schema},
          {"schema_version", schema_version},
          {"version", version()},
          {"device", device.name},
          {"cases", std::move(cases)}};
}

std::uint64_t hexadecimal(const Node& node) {
  const std::string text = node.text();
  const std::optional<std::uint64_t> value = number<std::uint64_t>(text, 16);
  if (!value || text.size() != 16) node.refuse("expected 16 hexadecimal digits");
  return *value;
}

// By case id.
std::map<std::string, CaseBits> read_bits(const std::string& path) {
  const Json json = read_json_file(path, {});
  const Node document(json, path);
  if (!document.has("schema") || document.at("schema").text() != schema)
    document.refuse("is not a file of gpubench determinism --save");
  static_cast<void>(document.at("schema_version").integer(1, schema_version));
  std::map<std::string, CaseBits> all;
  const Node cases = document.at("cases");
  for (std::size_t i = 0; i < cases.length(); ++i) {
    const Node one = cases.at(i);
    CaseBits bits{one.at("id").text(), one.at("seed").natural(), {}};
    const Node values = one.at("values");
    for (std::size_t v = 0; v < values.length(); ++v) {
      const Node value = values.at(v);
      ValueBits& read = bits.values.emplace_back();
      read.tensor = value.at("tensor").text();
      read.op = value.at("op").text();
      read.kind = value.at("kind").text();
      read.implementation = value.at("implementation").text();
      read.elements = value.at("elements").integer();
      read.part_elements = value.at("part_elements").integer(1);
      const Node parts = value.at("parts");
      for (std::size_t p = 0; p < parts.length(); ++p) read.parts.push_back(hexadecimal(parts.at(p)));
    }
    all.emplace(bits.id, std::move(bits));
  }
  return all;
}

// What other bits, of this case where there are any, say of what it leaves now.
Repetition against(const std::map<std::string, CaseBits>& others, const CaseBits& now, std::string way) {
  Repetition repetition{std::move(way), Sameness::untested, ""};
  const auto found = others.find(now.id);
  if (found == others.end()) {
    repetition.text = "the case is not in it";
  } else if (found->second.seed != now.seed) {
    repetition.text = fmt::format("other data: seed {} there", found->second.seed);
  } else {
    repetition.text = visible(first_difference(found->second, now));
    repetition.outcome = repetition.text.empty() ? Sameness::same : Sameness::differs;
  }
  return repetition;
}

// While it lives, this thread and the processes that it starts may use only the first so many of its processors: the
// CPU backend has a thread for each. Throws CannotMeasure.
class FewerProcessors {
 public:
  explicit FewerProcessors(int count) {
    cpu_set_t fewer;
    CPU_ZERO(&fewer);
    if (::sched_getaffinity(0, sizeof all_, &all_) != 0) throw CannotMeasure("--threads: cannot tell the processors");
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&fewer) < count; ++cpu) {
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &fewer);
    }
    if (::sched_setaffinity(0, sizeof fewer, &fewer) != 0)
      throw CannotMeasure("--threads: cannot choose the processors of another process");
  }
  FewerProcessors(const FewerProcessors&) = delete;
  FewerProcessors& operator=(const FewerProcessors&) = delete;
  ~FewerProcessors() { (void)::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

// The same cases by another number of threads, in a process of its own: libraries choose theirs when they start.
std::map<std::string, CaseBits> bits_of_threads(int threads, std::span<const std::string> words,
                                                const Environment& environment) {
  const ReportFolder folder("", "determinism");
  std::vector<std::string> argv{environment.program};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--against")
      ++i;  // and the file after it
    else if (!words[i].starts_with("--against="))
      argv.push_back(words[i]);
  }
  argv.insert(argv.end(), {"--threads", "0", "--runs", "2", "--save", folder.report(1)});
  const FewerProcessors fewer(threads);
  static_cast<void>(run_child_process(argv, environment.stop));  // what it left says whether it could
  return read_bits(folder.report(1));
}

std::string_view word_of(Sameness outcome) {
  constexpr std::array<std::string_view, 3> words{"same", "DIFFERS", "-"};
  return words[static_cast<std::size_t>(outcome)];
}

std::string table_of(std::span<const DeterminismRecord> records, const ConsoleStyle& style) {
  std::vector<Column> columns;
  for (const DeterminismRecord& record : records) {
    if (!columns.empty() || record.repetitions.empty()) continue;
    for (const Repetition& repetition : record.repetitions) columns.push_back({repetition.way});
  }
  columns.push_back({"case"});
  TextTable table(columns);
  for (const DeterminismRecord& record : records) {
    std::vector<std::string> cells;
    std::string below;
    for (const Repetition& repetition : record.repetitions) {
      cells.emplace_back(word_of(repetition.outcome));
      if (repetition.outcome == Sameness::differs)
        below += fmt::format("{}{}: {}", below.empty() ? "" : "; ", repetition.way, repetition.text);
    }
    if (!record.unsupported.empty()) {
      cells.assign(columns.size() - 1, "-");
      below = "unsupported: " + record.unsupported;
    }
    cells.push_back(record.id);
    table.add(cells, below.empty() ? Tone::plain : Tone::doubtful, below);
  }
  return table.text(style);
}

std::string summary_of(std::span<const DeterminismRecord> records) {
  struct Count {
    int same = 0, differ = 0;
  };
  std::vector<std::pair<std::string, Count>> counts;
  for (const DeterminismRecord& record : records) {
    for (const Repetition& repetition : record.repetitions) {
      auto found = std::ranges::find(counts, repetition.way, [](const auto& one) { return one.first; });
      if (found == counts.end()) found = counts.insert(counts.end(), {repetition.way, {}});
      if (repetition.outcome == Sameness::same) ++found->second.same;
      if (repetition.outcome == Sameness::differs) ++found->second.differ;
    }
  }
  std::string text;
  for (const auto& [way, count] : counts)
    text += fmt::format("{:<20} the same bits in {} of {} cases\n", way, count.same, count.same + count.differ);
  return text;
}

}  // namespace

int determinism_verb(const Options& options, std::span<const std::string> words, const Environment& environment) {
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  Selection selection = selection_for(options, device);
  selection.tier = options.tier.value_or(Tier::smoke);
  std::vector<PlannedCase> cases = plan_cases(environment.suites, selection);
  std::erase_if(cases, [](const PlannedCase& planned) { return planned.c.ranks > 1; });
  if (cases.empty()) return refuse_empty(selection, environment);
  std::map<std::string, CaseBits> before;
  if (!options.bits_before.empty()) {
    try {
      before = read_bits(options.bits_before);
    } catch (const ReadError& e) {
      throw UsageError(fmt::format("--against: {}", e.what()));
    }
  }
  const ResultFile saved("--save", options.save_bits, options.writing, environment);
  if (cpu_set_t all; options.other_threads > 1 && ::sched_getaffinity(0, sizeof all, &all) == 0 &&
                     options.other_threads > CPU_COUNT(&all))
    throw UsageError(fmt::format("--threads: {} threads need as many processors, and this process may use {}",
                                 options.other_threads, CPU_COUNT(&all)));
  environment.catch_signals();
  const std::unique_ptr<Backend> backend = open_backend(device);
  const RunOptions run = run_options(options, selection.tier, environment, device);
  StatusLine status(environment);
  std::vector<DeterminismRecord> records;
  for (const PlannedCase& planned : cases) {
    if (environment.stop != 0) break;
    status.show(planned.id());
    records.push_back(measure_determinism(*backend, planned, run, options.repetitions));
  }
  status.erase();
  const auto add = [&](const std::map<std::string, CaseBits>& others, const std::string& way) {
    for (DeterminismRecord& record : records) {
      if (record.unsupported.empty()) record.repetitions.push_back(against(others, record.bits, way));
    }
  };
  if (options.other_threads > 0 && backend->device().kind == "cpu" && environment.stop == 0) {
    try {
      add(bits_of_threads(options.other_threads, words, environment),
          fmt::format("{} thread{}", options.other_threads, options.other_threads == 1 ? "" : "s"));
    } catch (const ReadError&) {
      environment.err << fmt::format("{} threads: the process that ran with these left nothing\n",
                                     options.other_threads);
    }
  }
  if (!options.bits_before.empty()) add(before, "as before");
  environment.out << table_of(records, console_style(options, Stream::out, environment)) << "\n" << summary_of(records);
  saved.write(json_of(records, backend->device()));
  if (const int signal = environment.stop.load(); signal != 0) return exit_code({{}, signal, false});
  bool ran = false, broken = false;
  for (const DeterminismRecord& record : records) {
    for (const Repetition& repetition : record.repetitions) {
      ran = ran || repetition.outcome != Sameness::untested;
      const bool promised = repetition.way == "as before" || (run.deterministic && repetition.way == "again");
      broken = broken || (promised && repetition.outcome == Sameness::differs);
    }
  }
  if (!ran) return exit_codes::nothing_ran;
  return broken ? exit_codes::verdict_failed : exit_codes::ok;
}

}  // namespace gpubench
