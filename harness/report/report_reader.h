// Reports that somebody wrote, from file to Report: everything that is read is checked, and an error says where it is.
//
// Two sieves. The shape: every member has its kind and range (this is what the published schema says). The meaning:
// what the members say fits together; rates follow from times, times from samples, totals from cases. A report that is
// refused by either was written by something else, or changed since.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "harness/report/reader.h"
#include "harness/report/report_json.h"

namespace gpubench {

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

/// Restates what a report of this minor version of the schema tells by rules that changed. Before 1.5 "noisy" was a
/// median above 1.3 times the minimum, and unreliable timings took part in efficiencies and were the best of a run.
void restate(Report& report, int minor);

/// Implementations by case id and op label, of the cases in a report that passed. Throws ReadError where the file
/// cannot be read or is no report.
[[nodiscard]] std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path);

/// Runs per sample by case id, of the cases in a report that passed. Throws ReadError likewise, and for numbers that no
/// run has.
[[nodiscard]] std::map<std::string, std::int64_t> read_batches(const std::string& path);

// The second sieve.

/// Adds every contradiction: two cases of one id, a verdict against its op checks, a summary against its samples, a
/// rate against its time, `benchmarks` and totals against the cases. `root`: the document that `report` was read from.
void check_meaning(const Report& report, const Node& root, Problems& problems);

/// The same for one case alone.
void check_case(const CaseRecord& record, const Node& node, Problems& problems);

/// Whether two computations of one number agree: compilers fuse products differently. `scale`: of its operands.
[[nodiscard]] bool nearly(double a, double b, double scale = 0.0);

}  // namespace gpubench
