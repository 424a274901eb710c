// The report: one JSON file per invocation, a superset of Google Benchmark's layout, so that its tools read it too.
//
// `benchmarks` holds passing cases only, one entry per valid round and one "<id>_median"; `gpubench.cases` holds every
// planned case with its verdict. The schema is results/schema/report.v1.json, made of the members' table
// (record_members.h); within major version 1 members are only added, but for shares that follow from times (1.16).
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/core/record.h"
#include "harness/report/json_parser.h"
#include "harness/report/reader.h"

namespace gpubench {

/// What a report calls itself.
inline constexpr std::string_view report_schema = "gpubench-report";
/// The version that report_json() writes.
inline constexpr std::string_view report_schema_version = "1.16";

/// What a report keeps of each case.
enum class Detail {
  brief,  ///< brief()
  full    ///< the whole record
};
template <>
inline constexpr auto enum_names<Detail> = std::to_array<std::string_view>({"brief", "full"});

/// One level of a processor's caches, as in Google Benchmark's context.
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

/// A file with an implementation under test.
struct ImplementationFile {
  std::string name;     ///< Case::contender of its records
  std::string digest;   ///< of its bytes: 16 hexadecimal digits
  std::string version;  ///< as it says itself; untrusted text, may be empty
  /// By op, the calls that it takes and no case tried: "gemm: 12 calls in f64"; where they were sought (impl check).
  std::optional<std::vector<std::string>> untried{};
};

/// What all calls of a list of shapes take together on this device: the time that a model spends in its matrix
/// products, say.
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
  std::string invocation;  ///< 16 hexadecimal digits that no other run has; may be empty
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
  /// Arithmetic below what ops declare that was accepted (--arithmetic); since 1.12.
  std::vector<std::string> arithmetic;
  std::vector<std::pair<std::string, std::string>> env;  ///< of an allow-list, never the whole environment
  std::vector<DeviceInfo> devices;
  std::time_t started_at = 0;
  std::time_t finished_at = 0;
  std::optional<ShapesContext> shapes{};  ///< since 1.9, of a run of listed shapes
  /// Since 1.10, of a run with --impl.
  std::optional<std::vector<ImplementationFile>> implementations{};
  int resumed = 0;        ///< how often the run was interrupted and resumed; 0 before 1.6
  bool complete = false;  ///< false: interrupted; some cases are `skipped` for that reason
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

/// By suite and recipe (with modes and ranks, where they are not the usual ones), and where a recipe has several
/// suites, "all" of them. Only of what passed: where a shape did not, there is no sum. The interval is the sum of the
/// cases' 95% intervals, as if all erred the same way: the same minutes disturb them all. Empty without a list.
[[nodiscard]] std::vector<CallsTotal> calls_totals(std::span<const CaseRecord> records);

/// The same as JSON: an empty list without a list of shapes.
[[nodiscard]] Json calls_totals_json(std::span<const CaseRecord> records);

/// What `benchmarks` holds of these cases: of each that passed, one entry per round that counts and one "<id>_median".
[[nodiscard]] Json benchmarks_json(std::span<const CaseRecord> records);

/// The members of the context that are Google Benchmark's own.
[[nodiscard]] Json google_context_json(const Report& report);

/// The context, with what gpubench adds: machine, run and devices, no case.
[[nodiscard]] Json context_json(const Report& report);

/// The whole document, with full detail.
[[nodiscard]] Json report_json(const Report& report);
/// Its text, sealed (content_digest.h), with one line for each case and each benchmark.
[[nodiscard]] std::string report_json_text(const Report& report, Detail detail = Detail::brief);

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
[[nodiscard]] Json to_json(const RoundTelemetry& telemetry);

/// Throws ReadError as above.
[[nodiscard]] DeviceInfo device_from_json(const Node& node);
[[nodiscard]] DeviceInfo device_from_json(const Node& node, Problems& problems);

// Reading untrusted reports: everything is checked, and an error says where it is.
//
// There are two checks. The shape: every member has its kind and range, as in the published schema. The meaning:
// members are consistent; rates follow from times, times from samples, totals from cases. A report that fails either
// was written by something else, or changed since.

/// The report of a document, with everything that is wrong with its shape, or else with its meaning, in `problems`.
/// Members that are unknown here do no harm; another major version is refused by name. `file` only names the source.
[[nodiscard]] Report report_from_json(const Json& document, const std::string& file, Problems& problems);

/// The report of a text, whose digest must be that of its content where it has one (content_digest.h); `path` names it.
/// Throws ReadError with the first problem and the number of the others.
[[nodiscard]] Report parse_report(std::string_view text, const std::string& path);

/// The same for the times of its cases: hands them over one by one, in order, instead of holding them all; members that
/// say nothing about times are as in a CaseRecord that is new. A text that carries the digest of its content is held to
/// its shape alone, any other to its meaning as well. Index 0 comes twice where reading begins anew. Throws what `each`
/// throws.
using EachCase = std::function<void(const CaseRecord& record, std::size_t index)>;
[[nodiscard]] Report parse_times(std::string_view text, const std::string& path, const EachCase& each);

/// The same of a file.
[[nodiscard]] Report read_report(const std::string& path);

/// Everything that is wrong with a file, none for a report that holds.
[[nodiscard]] Problems problems_of_report(const std::string& path);

/// Updates what a report of this minor version of the schema says by rules that have changed since. Before 1.5 "noisy"
/// was a median above 1.3 times the minimum, and unreliable timings took part in efficiencies and were the best of a
/// run.
void restate(Report& report, int minor);

/// Implementations by case id and op label, of the cases in a report that passed. Throws ReadError where the file
/// cannot be read or is no report.
[[nodiscard]] std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path);

/// Runs per sample by case id, of the cases in a report that passed. Throws ReadError likewise, and for numbers that no
/// run has.
[[nodiscard]] std::map<std::string, std::int64_t> read_batches(const std::string& path);

// The check of the meaning.

/// Adds every contradiction: two cases of one id, a verdict against its op checks, a summary against its samples, a
/// rate against its time, `benchmarks` and totals against the cases. `root`: the document that `report` was read from.
void check_meaning(const Report& report, const Node& root, Problems& problems);

/// The same for one case alone.
void check_case(const CaseRecord& record, const Node& node, Problems& problems);

/// Whether two computations of one number agree: compilers fuse products differently. `scale`: of its operands.
[[nodiscard]] bool nearly(double a, double b, double scale = 0.0);

// The brief form of a case: of each phase the check of its worst op, the checks of all others as sums.

/// The record as a brief report has it; a brief record stays as it is.
///
/// Parity::ops keeps the ops that did not pass, those with rejected candidates, and of each phase the one with the
/// largest error: of equal ones that of Parity::worst_op, else the first. Parity::passed and Parity::implementations
/// sum up the others. Where an error is NaN, all ops stay. A share of the breakdown that follows from its times becomes
/// 0, which JSON leaves out and record_from_json() computes.
[[nodiscard]] CaseRecord brief(CaseRecord record);

/// Adds to a count of a report, which may hold anything: the sum stays within its type.
template <class T>
void add_count(T& sum, T more) {
  sum = more > std::numeric_limits<T>::max() - sum ? std::numeric_limits<T>::max() : sum + more;
}

/// The implementations of its ops by label, of a brief record those of the full one.
[[nodiscard]] std::map<std::string, std::string> implementations_of(const CaseRecord& record);

}  // namespace gpubench
