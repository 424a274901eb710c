// The report: one JSON file per invocation, a superset of Google Benchmark's layout, readable by its tools.
//
// `benchmarks` holds passing cases only, with an entry per valid round and one "<id>_median"; `gpubench.cases` holds
// every planned case with its verdict. The schema, results/schema/report.v1.json, is made from record_members.h. Within
// major version 1 members are only added, except that shares that follow from times were dropped (1.16).
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

inline constexpr std::string_view report_schema = "gpubench-report";
/// Written by report_json().
inline constexpr std::string_view report_schema_version = "1.16";

enum class Detail { brief, full };
template <>
inline constexpr auto enum_names<Detail> = std::to_array<std::string_view>({"brief", "full"});

/// A level of a processor's caches, as in Google Benchmark's context.
struct CacheContext {
  std::string type;
  int level = 0;
  std::int64_t bytes = 0;
  int sharing = 1;  ///< by how many logical processors
};

/// The machine. Filled in by the caller; reports read nothing from it.
struct HostContext {
  std::string host_name;
  std::string executable;
  int num_cpus = 1;
  int mhz_per_cpu = 0;
  bool cpu_scaling_enabled = false;
  std::vector<CacheContext> caches;
  std::vector<double> load_avg;
};

/// Calls of a list of shapes that are not measured as listed.
struct ShapesExcept {
  std::string reason;  ///< "primitive reorder"; "without the bias"
  double calls = 0.0;
  bool taken = false;  ///< measured without the part that the reason names; false: not measured
};

struct ShapesContext {
  std::string file;
  std::string format;
  std::vector<ShapesExcept> excepts;
};

struct ImplementationFile {
  std::string name;
  std::string digest;   ///< of its bytes: 16 hexadecimal digits
  std::string version;  ///< as it reports itself; untrusted, may be empty
  /// By op, the calls that it accepts and no case tried: "gemm: 12 calls in f64". Set by impl check.
  std::optional<std::vector<std::string>> untried{};
};

/// The total time of the calls in a list of shapes, such as a model's matrix products.
struct CallsTotal {
  std::string suite;
  std::string recipe;
  std::int64_t shapes = 0;
  double calls = 0.0;
  std::optional<double> ns{}, low_ns{}, high_ns{};  ///< not set if a shape has no time
  std::string missing{};
};

struct RunContext {
  std::string invocation;  ///< 16 hexadecimal digits, unique; may be empty
  std::string tool_version;
  std::vector<std::pair<std::string, std::string>> build;  ///< "compiler" -> "g++ 12.2.0", "type" -> "Release"
  std::vector<std::string> argv;
  std::vector<std::string> suites;
  std::uint64_t seed = 0;
  std::string tier;
  std::string preset;        ///< duration of measurements; empty before 1.3
  std::string injected;      ///< injected faults: "gemm=25%" slower, "gemm=bit" wrong; empty: none
  int locked_clock_mhz = 0;  ///< by the user; 0: not locked, or a report before 1.4
  std::string check;
  /// Only implementations with reproducible bits were used. Not set before 1.2.
  std::optional<bool> deterministic = false;
  /// Accepted arithmetic below the declared precision (--arithmetic); since 1.12.
  std::vector<std::string> arithmetic;
  std::vector<std::pair<std::string, std::string>> env;  ///< only variables of an allow-list
  std::vector<DeviceInfo> devices;
  std::time_t started_at = 0;
  std::time_t finished_at = 0;
  std::optional<ShapesContext> shapes{};  ///< of --shapes; since 1.9
  /// Of --impl; since 1.10.
  std::optional<std::vector<ImplementationFile>> implementations{};
  int resumed = 0;        ///< number of resumptions; 0 before 1.6
  bool complete = false;  ///< false: interrupted, with some cases `skipped`
};

struct Report {
  HostContext host;
  RunContext run;
  std::vector<CaseRecord> cases;
};

/// Cases by verdict, and their costs.
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

/// By suite and recipe (with unusual modes and ranks); "all" if a recipe has several suites. No sum if a shape did not
/// pass. The interval is the sum of the cases' 95% intervals, since the same disturbances affect all. Empty without a
/// list.
[[nodiscard]] std::vector<CallsTotal> calls_totals(std::span<const CaseRecord> records);

[[nodiscard]] Json calls_totals_json(std::span<const CaseRecord> records);

/// The entries of `benchmarks`: per passing case one for each valid round and one "<id>_median".
[[nodiscard]] Json benchmarks_json(std::span<const CaseRecord> records);

[[nodiscard]] Json google_context_json(const Report& report);

/// The context with gpubench's members: machine, run and devices, without cases.
[[nodiscard]] Json context_json(const Report& report);

[[nodiscard]] Json report_json(const Report& report);
/// The sealed text (content_digest.h), with a line per case and benchmark.
[[nodiscard]] std::string report_json_text(const Report& report, Detail detail = Detail::brief);

/// "2026-11-21T02:34:19+00:00", always UTC.
[[nodiscard]] std::string iso_time(std::time_t time);

// Cases as JSON, in reports and journals. Exact: doubles have enough digits; NaN and infinity are null, and the
// object's member names them: {"nonfinite": {"got": "nan"}}.

[[nodiscard]] Json to_json(const CaseRecord& record);

/// Throws ReadError for values that to_json() does not write; ignores unknown members. Members in `left_out` keep their
/// defaults.
[[nodiscard]] CaseRecord record_from_json(const Node& node, LeftOut left_out = {});
/// Collects all problems; unreadable members keep their defaults.
[[nodiscard]] CaseRecord record_from_json(const Node& node, Problems& problems);

[[nodiscard]] Json to_json(const DeviceInfo& device);
[[nodiscard]] Json to_json(const RoundTelemetry& telemetry);

[[nodiscard]] DeviceInfo device_from_json(const Node& node);
[[nodiscard]] DeviceInfo device_from_json(const Node& node, Problems& problems);

// Reading untrusted reports. Two checks: the shape (kind and range of every member, as in the published schema), and
// the meaning (rates follow from times, times from samples, totals from cases). A report that fails was changed, or not
// written by gpubench.

/// Adds all problems with the shape, or else with the meaning. Ignores unknown members; refuses another major version.
/// `file`: for messages.
[[nodiscard]] Report report_from_json(const Json& document, const std::string& file, Problems& problems);

/// Checks the digest if there is one (content_digest.h). `path`: for messages. Throws ReadError with the first problem
/// and the number of others.
[[nodiscard]] Report parse_report(std::string_view text, const std::string& path);

/// As parse_report(), for times only: passes cases to `each` one by one, in order, instead of holding them. Members
/// unrelated to times keep their defaults. With a content digest only the shape is checked, else the meaning, too.
/// Index 0 occurs again if reading starts over. Throws what `each` throws.
using EachCase = std::function<void(const CaseRecord& record, std::size_t index)>;
[[nodiscard]] Report parse_times(std::string_view text, const std::string& path, const EachCase& each);

[[nodiscard]] Report read_report(const std::string& path);

/// All problems of a file; empty if it is valid.
[[nodiscard]] Problems problems_of_report(const std::string& path);

/// Updates values of a report of this minor schema version whose rules have changed. Before 1.5 "noisy" was a median
/// above 1.3 times the minimum, and unreliable timings counted in efficiencies and as the best of a run.
void restate(Report& report, int minor);

/// Implementations by case id and op label, of passing cases. Throws ReadError if the file is not a valid report.
[[nodiscard]] std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path);

/// Runs per sample by case id, of passing cases. Throws ReadError likewise, and for impossible numbers.
[[nodiscard]] std::map<std::string, std::int64_t> read_batches(const std::string& path);

/// Adds every contradiction: two cases with one id, verdict and op checks, summary and samples, rate and time,
/// `benchmarks`, totals and cases. `root`: the document of `report`.
void check_meaning(const Report& report, const Node& root, Problems& problems);

void check_case(const CaseRecord& record, const Node& node, Problems& problems);

/// Equal up to rounding: compilers fuse products differently. `scale`: of the operands.
[[nodiscard]] bool nearly(double a, double b, double scale = 0.0);

// Brief records: per phase the check of the worst op, and sums of the other checks.

/// Idempotent.
///
/// Parity::ops keeps ops that did not pass, those with rejected candidates, and per phase the one with the largest
/// error; of equal ones Parity::worst_op, else the first. Parity::passed and Parity::implementations sum up the others.
/// If an error is NaN, all ops stay. A share of the breakdown that follows from its times becomes 0, which JSON leaves
/// out and record_from_json() computes.
[[nodiscard]] CaseRecord brief(CaseRecord record);

/// Saturates: counts in reports are untrusted.
template <class T>
void add_count(T& sum, T more) {
  sum = more > std::numeric_limits<T>::max() - sum ? std::numeric_limits<T>::max() : sum + more;
}

/// By op label; for a brief record those of the full one.
[[nodiscard]] std::map<std::string, std::string> implementations_of(const CaseRecord& record);

}  // namespace gpubench
