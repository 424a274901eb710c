// The report: one JSON file per invocation, a superset of Google Benchmark's layout, so that its tools read it too.
//
// `benchmarks` holds passing cases only, one entry per valid round and one "<id>_median"; `gpubench.cases` holds every
// planned case with its verdict. The schema is results/schema/report.v1.json, made of the members' table
// (record_members.h); within major version 1 members are only added.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/report/json_parser.h"

namespace gpubench {

class Node;
class Problems;

/// What a report calls itself.
inline constexpr std::string_view report_schema = "gpubench-report";
/// The version that report_json() writes.
inline constexpr std::string_view report_schema_version = "1.9";

/// One level of a processor's caches, as Google Benchmark's context tells it.
struct CacheContext {
  std::string type;  ///< "Data", "Instruction", "Unified"
  int level = 0;
  std::int64_t bytes = 0;
  int sharing = 1;  ///< logical processors that share it
};

/// What the context says about the machine. The caller fills it in: a report looks at nothing by itself.
struct HostContext {
  std::string host_name;
  std::string executable;
  int num_cpus = 1;
  int mhz_per_cpu = 0;
  bool cpu_scaling_enabled = false;
  std::vector<CacheContext> caches;
  std::vector<double> load_avg;
};

/// Calls of a list of shapes that are not measured as they stand there.
struct ShapesExcept {
  std::string reason;  ///< "primitive reorder"; "without the bias"
  double calls = 0.0;
  bool taken = false;  ///< measured without something that the reason names; false: not measured at all
};

/// The list of shapes that a run took (--shapes).
struct ShapesContext {
  std::string file;
  std::string format;                 ///< "ONEDNN_VERBOSE"
  std::vector<ShapesExcept> excepts;  ///< each reason once
};

/// What all calls of a list take together (calls_total.h).
struct CallsTotal {
  std::string suite;   ///< or "all"
  std::string recipe;  ///< "bf16", "bf16/unfused"
  std::int64_t shapes = 0;
  double calls = 0.0;
  std::optional<double> ns{}, low_ns{}, high_ns{};  ///< none where a shape has no time
  std::string missing{};                            ///< why there is none
};

/// What the context says about the run.
struct RunContext {
  std::string invocation;  ///< 16 hexadecimal digits that no other run has; empty: not told
  std::string tool_version;
  std::vector<std::pair<std::string, std::string>> build;  ///< "compiler" -> "g++ 12.2.0", "type" -> "Release"
  std::vector<std::string> argv;
  std::vector<std::string> suites;
  std::uint64_t seed = 0;
  std::string tier;
  std::string preset;        ///< how long cases were measured; empty in reports before 1.3
  std::string injected;      ///< a fault on purpose, "gemm=25%" slower, "gemm=bit" wrong; empty in an honest report
  int locked_clock_mhz = 0;  ///< what the user locked the SM clock at; 0: it was free, or the report is before 1.4
  std::string check;
  /// Only implementations that give the same bits each time were taken; reports before 1.2 do not tell.
  std::optional<bool> deterministic = false;
  std::vector<std::pair<std::string, std::string>> env;  ///< of an allow-list, never the whole environment
  std::vector<DeviceInfo> devices;
  std::time_t started_at = 0;
  std::time_t finished_at = 0;
  std::optional<ShapesContext> shapes{};  ///< since 1.9, of a run of listed shapes
  int resumed = 0;                        ///< how often the run was interrupted and resumed; 0 before 1.6
  bool complete = false;                  ///< false: interrupted; some cases are `skipped` for that reason
};

struct Report {
  HostContext host;
  RunContext run;
  std::vector<CaseRecord> cases;  ///< every planned case, in the order of the plan
};

/// Cases by verdict, and what they cost.
struct Totals {
  std::map<Verdict, int> by_verdict;
  int cases = 0;
  double check_s = 0.0;
  double time_s = 0.0;

  void add(const CaseRecord& record);
  [[nodiscard]] int count(Verdict verdict) const;
};
[[nodiscard]] Totals totals_of(std::span<const CaseRecord> records);
[[nodiscard]] Json totals_json(const Totals& totals);

/// calls_totals(); an empty list without a list of shapes.
[[nodiscard]] Json calls_totals_json(std::span<const CaseRecord> records);

/// What `benchmarks` holds of these cases: of each that passed, one entry per round that counts and one "<id>_median".
[[nodiscard]] Json benchmarks_json(std::span<const CaseRecord> records);

/// The members of the context that are Google Benchmark's own.
[[nodiscard]] Json google_context_json(const Report& report);

/// The context, with what gpubench adds: machine, run and devices, no case.
[[nodiscard]] Json context_json(const Report& report);

/// The whole document.
[[nodiscard]] Json report_json(const Report& report);

/// "2026-11-21T02:34:19+00:00", always UTC.
[[nodiscard]] std::string iso_time(std::time_t time);

// A case as JSON and back: as in a report and in the journal. The round trip is exact: doubles are written
// with the digits that bring them back; NaN and infinity, which JSON has not, are null, and the object's "nonfinite"
// member says which ({"nonfinite": {"got": "nan"}}).

[[nodiscard]] Json to_json(const CaseRecord& record);

/// Throws ReadError for anything that to_json() would not have written, unknown members aside. Members in `left_out`
/// keep their defaults.
[[nodiscard]] CaseRecord record_from_json(const Node& node, LeftOut left_out = {});
/// Collects everything that is wrong; what cannot be read keeps its default.
[[nodiscard]] CaseRecord record_from_json(const Node& node, Problems& problems);

[[nodiscard]] Json to_json(const DeviceInfo& device);

/// Throws ReadError as above.
[[nodiscard]] DeviceInfo device_from_json(const Node& node);
[[nodiscard]] DeviceInfo device_from_json(const Node& node, Problems& problems);

}  // namespace gpubench
