#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/file/descriptor.h"
#include "harness/core/program.h"
#include "harness/plan/plan.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The contender name of the device's libraries.
inline constexpr std::string_view reference_name = "reference";

/// An op in one type of its first operand, as an implementation accepts it.
struct OpClaim {
  std::string op, type;
  int taken = 0, declined = 0;
  std::string reason{};  ///< why it declined the first
};

/// Names of the files of --impl, without "lib" and extension: libmy_gemm.so is my_gemm. Throws UsageError for an
/// unreadable file, a name that is not an is_contender_name(), or a duplicate.
[[nodiscard]] std::vector<NamedImplementation> named_implementations(std::span<const std::string> files,
                                                                     const std::string& python);

/// Distinct calls that an implementation accepts, in every precision: of the planned cases, and of the suites that are
/// Suite::only_by_name. impl check lists those that no case of the run tried.
struct OfferedCalls {
  struct Call {
    std::string op, recipe;
  };
  std::vector<Call> calls;
  std::map<std::string, std::vector<std::size_t>> of_cases;  ///< by id of a planned case: indices of its calls
};

[[nodiscard]] OfferedCalls offered_calls(std::span<const PlannedCase> planned, std::span<const Suite> suites,
                                         const std::function<bool(const Program&, const OpCall&)>& takes);

/// By op, the calls that none of these cases makes: "layer_norm_forward: 12 calls in f64, 12 in tf32".
[[nodiscard]] std::vector<std::string> untried(const OfferedCalls& offered, const std::set<std::string>& tried_cases);

[[nodiscard]] Json to_json(const OfferedCalls& offered);
/// Throws ReadError for invalid input.
[[nodiscard]] OfferedCalls read_offered_calls(const Node& node);

struct Claims {
  ImplementationFile file;
  /// The cases with an op that it accepts. Not set if it did not answer (crash, hang): it is then asked in each case.
  std::optional<std::set<std::string>> cases{};
  std::vector<OpClaim> ops{};
  std::optional<OfferedCalls> offered{};  ///< with --untried

  [[nodiscard]] bool may_take(const std::string& id) const { return !cases || cases->contains(id); }
};

/// Asks each in a child process, which isolates their code. `words`: the command line. Throws UsageError with the
/// loader's or the library's message if one does not load.
[[nodiscard]] std::vector<Claims> query_claims(std::span<const NamedImplementation> named,
                                               std::span<const std::string> words, const std::string& device,
                                               const Environment& environment, double deadline_s);

/// In the child: loads the file, asks it for every op of the cases, and sends the answer to `output_fd`. `suites`: with
/// --untried, suites to ask about in addition.
void send_claims(const NamedImplementation& named, std::span<const PlannedCase> cases, std::span<const Suite> suites,
                 const DeviceInfo& device, bool deterministic, int output_fd);

/// The start of a child's command line: this program, or for a Python file the interpreter (harness/python).
[[nodiscard]] std::vector<std::string> program_for(std::span<const NamedImplementation> named,
                                                   const std::string& program);

/// Each case once for the device's libraries, if they are in the run, and once per implementation, consecutively.
[[nodiscard]] std::vector<PlannedCase> for_contenders(std::vector<PlannedCase> cases,
                                                      std::span<const NamedImplementation> named, bool with_reference);

/// The cases that some implementation accepts, each for those implementations.
[[nodiscard]] std::vector<PlannedCase> claimed(std::vector<PlannedCase> cases, std::span<const Claims> claims);

/// The log of what implementations print, next to a journal: printed.log in its folder, or FILE.printed.log.
[[nodiscard]] std::string printed_log_path(const std::string& journal_file);

/// A file for the output of implementations. The destructor removes it if it is empty.
class PrintedLog {
 public:
  /// Throws as fail_to_write() if it cannot be made, or exists and `rules` do not allow to replace it.
  PrintedLog(std::string path, const WriteRules& rules);
  PrintedLog(const PrintedLog&) = delete;
  PrintedLog& operator=(const PrintedLog&) = delete;
  ~PrintedLog();
  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// "the implementations printed 120 bytes: PATH"; empty if they printed nothing.
  [[nodiscard]] std::string told() const;

 private:
  [[nodiscard]] std::int64_t bytes() const;
  std::string path_;
  WriteRules rules_;
  Descriptor file_;
};

/// Throws UsageError if --versus names neither "reference" nor an implementation of --impl.
void check_versus(const std::optional<std::string>& versus, std::span<const NamedImplementation> named);

/// Template sources of `gpubench impl new`, embedded by the build: reference/examples and the header of the C
/// interface. `file`: "rms_norm_forward.c"; null for an unknown name.
[[nodiscard]] const std::string* starting_point(const std::string& file);

}  // namespace gpubench
