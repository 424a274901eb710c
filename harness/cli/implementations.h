// Implementations under test on the command line: --impl FILE, --versus, and the verb impl.
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

/// What a contender is called that is the device's own.
inline constexpr std::string_view reference_name = "reference";

/// An op in one type of its first operand, as one implementation takes it or not.
struct OpClaim {
  std::string op, type;
  int taken = 0, declined = 0;  ///< calls of the cases asked about
  std::string reason{};         ///< of the first that it declined
};

/// The files of --impl, named after themselves without "lib" and ending: libmy_gemm.so is my_gemm. Throws UsageError
/// for one that cannot be read, whose name is no is_contender_name(), or that another one has.
[[nodiscard]] std::vector<NamedImplementation> named_implementations(std::span<const std::string> files,
                                                                     const std::string& python);

/// The calls that an implementation takes, each once: of the planned cases, and of those of the suites that are
/// Suite::only_by_name, in every precision. What of it no case of a run tried is listed by impl check.
struct OfferedCalls {
  struct Call {
    std::string op, recipe;
  };
  std::vector<Call> calls;
  std::map<std::string, std::vector<std::size_t>> of_cases;  ///< by id of a planned case: its calls
};

/// `takes`: whether the implementation takes an op of a program.
[[nodiscard]] OfferedCalls offered_calls(std::span<const PlannedCase> planned, std::span<const Suite> suites,
                                         const std::function<bool(const Program&, const OpCall&)>& takes);

/// "layer_norm_forward: 12 calls in f64, 12 in tf32": the calls that none of these cases makes, by op.
[[nodiscard]] std::vector<std::string> untried(const OfferedCalls& offered, const std::set<std::string>& tried_cases);

[[nodiscard]] Json to_json(const OfferedCalls& offered);
/// Throws ReadError where it is none.
[[nodiscard]] OfferedCalls read_offered_calls(const Node& node);

/// What an implementation says of itself before anything runs.
struct Claims {
  ImplementationFile file;
  /// The cases of which it takes an op; none: it does not tell, as one that crashes or hangs, and is asked in each
  /// case.
  std::optional<std::set<std::string>> cases{};
  std::vector<OpClaim> ops{};             ///< by name and type
  std::optional<OfferedCalls> offered{};  ///< where it was asked for them (--untried)

  [[nodiscard]] bool may_take(const std::string& id) const { return !cases || cases->contains(id); }
};

/// Asks a child process for each, so that this one never runs their code. `words`: the command line; `device`: the one
/// that was chosen. Throws UsageError with the loader's or the library's words where one does not load.
[[nodiscard]] std::vector<Claims> ask_claims(std::span<const NamedImplementation> named,
                                             std::span<const std::string> words, const std::string& device,
                                             const Environment& environment, double deadline_s);

/// The child's side: loads the file, asks it for every op of the cases, and sends what it says to `output_fd`.
/// `suites`: with --untried, those that are asked about beyond the cases; else none.
void tell_claims(const NamedImplementation& named, std::span<const PlannedCase> cases, std::span<const Suite> suites,
                 const DeviceInfo& device, bool deterministic, int output_fd);

/// The start of the command line of a child that runs these implementations: this program, or where one is a Python
/// file the interpreter, which stands in for it (harness/python).
[[nodiscard]] std::vector<std::string> program_for(std::span<const NamedImplementation> named,
                                                   const std::string& program);

/// Each case once for the device's own libraries, if they are in the run, and once for each implementation, next to
/// each other.
[[nodiscard]] std::vector<PlannedCase> for_contenders(std::vector<PlannedCase> cases,
                                                      std::span<const NamedImplementation> named, bool with_reference);

/// Of those, the cases that some implementation takes, each with those that do.
[[nodiscard]] std::vector<PlannedCase> claimed(std::vector<PlannedCase> cases, std::span<const Claims> claims);

/// Where they print to beside a journal: printed.log in its folder, or FILE.printed.log.
[[nodiscard]] std::string printed_beside(const std::string& journal_file);

/// A file for what implementations print; gone with its scope if they print nothing.
class PrintedLog {
 public:
  /// Throws as fail_to_write() where it cannot be made, or is there already and `rules` do not replace it.
  PrintedLog(std::string path, const WriteRules& rules);
  PrintedLog(const PrintedLog&) = delete;
  PrintedLog& operator=(const PrintedLog&) = delete;
  ~PrintedLog();
  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// "the implementations printed 120 bytes: PATH"; empty where they printed nothing.
  [[nodiscard]] std::string told() const;

 private:
  [[nodiscard]] std::int64_t bytes() const;
  std::string path_;
  WriteRules rules_;
  Descriptor file_;
};

/// Throws UsageError where --versus names neither "reference" nor an implementation of --impl.
void check_versus(const std::optional<std::string>& versus, std::span<const NamedImplementation> named);

/// Sources that `gpubench impl new` begins from: those of reference/examples, and the header of the C interface, as the
/// build put them into the program. The text of a file, "rms_norm_forward.c"; null where there is none of that name.
[[nodiscard]] const std::string* starting_point(const std::string& file);

}  // namespace gpubench
