// A command line as checked values: what several verbs share, and the options of the one verb that it names.
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/case.h"
#include "harness/core/file/atomic_file.h"
#include "harness/plan/plan.h"
#include "harness/report/report_json.h"
#include "harness/run/run.h"
#include "harness/verify/working_children.h"

namespace gpubench {

struct Verb;  // verb.h

enum class ColorMode { automatic, always, never };
template <>
inline constexpr auto enum_names<ColorMode> = std::to_array<std::string_view>({"auto", "always", "never"});

enum class ProgressMode { automatic, bar, lines, none };
template <>
inline constexpr auto enum_names<ProgressMode> = std::to_array<std::string_view>({"auto", "bar", "lines", "none"});

/// What becomes of calls that an implementation takes and no case tried.
enum class Untried { off, list, fail };
template <>
inline constexpr auto enum_names<Untried> = std::to_array<std::string_view>({"off", "list", "fail"});

enum class GithubMode { automatic, on, off };
template <>
inline constexpr auto enum_names<GithubMode> = std::to_array<std::string_view>({"auto", "on", "off"});

/// What a report can be written as after a run.
enum class ReportForm { json, junit, csv, markdown };

/// The words that own_words ends with where no choices are kept.
inline constexpr std::array<std::string_view, 2> no_tuning_cache{"--tuning-cache", "off"};

struct Options {
  const Verb* verb = nullptr;          ///< a row of the table of verbs
  std::any own{};                      ///< the verb's own options, of the type that its file declares
  std::string subject;                 ///< of verbs that take one word without a flag: a case, an op, a workload
  std::vector<std::string> arguments;  ///< of verbs that take several: files, actions

  // What is run, and on which device.
  Selection selection;       ///< its tier is set once the device is known
  std::optional<Tier> tier;  ///< absent: quick, or standard on a GPU
  RunOptions run{};          ///< from the flags; run_options() adds the rest
  std::string device = "auto";
  bool isolate = true;
  bool mpi = true;         ///< processes that a launcher has started are ranks of one run
  std::string started_by;  ///< what starts them, before a command that repeats a case: "mpirun -np 2 "
  bool dry_run = false;
  bool turns = false;                          ///< --turns
  bool trust_libraries = false;                ///< --trust-libraries
  std::vector<std::string> implementations{};  ///< --impl; their names and files are in run.implementations
  std::string python = "python3";              ///< --python
  std::string claims_of;                       ///< hidden: this child reports what this implementation takes
  Untried untried = Untried::off;              ///< hidden: of impl check
  std::optional<std::string> versus;           ///< --versus: the implementation that ratios refer to
  std::optional<std::string> pin;              ///< --pin
  std::optional<std::string> shapes;           ///< --shapes
  std::optional<std::string> like;             ///< --like
  std::optional<std::string> tuning_cache;     ///< --tuning-cache; "off" for none
  std::optional<double> deadline_s{};          ///< --deadline; 0: off; absent: as long as each thing may take

  // What is written, and where.
  std::optional<std::string> out;                         ///< --out
  std::optional<std::string> json;                        ///< --json; "-" is standard output
  std::optional<std::string> junit{}, csv{}, markdown{};  ///< the same in other forms
  Detail detail = Detail::brief;                          ///< --detail
  std::string output;                                     ///< -o: the document that the verb writes; empty: its default
  std::string svg;                             ///< --svg: a file, or a folder for several charts; empty: none
  WriteRules writing{};                        ///< --force, --mode
  std::optional<std::string> resume{};         ///< --resume
  bool anonymize = false;                      ///< --anonymize
  std::optional<std::string> anonymize_key{};  ///< --anonymize-key
  GithubMode github = GithubMode::automatic;
  ColorMode color = ColorMode::automatic;
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool verbose = false;

  // The command line itself.
  std::vector<std::string> words;  ///< as typed, without the program's name; children are started with the same
  /// The flags of the command line that say what is run and how it is measured, as they were given: without the folder
  /// of --tuning-cache, but with --tuning-cache off (no_tuning_cache).
  std::vector<std::string> own_words{};
  /// Those of them, and of variables, that a case's rerun line repeats.
  std::vector<std::string> rerun_words{};
  /// Of calibrate: the flags that its runs are started with.
  std::vector<std::string> words_for_runs{};
  /// Flags that all processes of a run must share, with their values; not those from variables, which a launcher may
  /// pass to its own host alone.
  std::map<std::string, std::string> shared_settings{};
  std::vector<std::pair<std::string, std::string>> from_environment;  ///< variables that stood in for flags
  bool asks_for_nothing = false;  ///< no word, no variable: prints the short help and runs nothing

  // Hidden: of child processes.
  int worker_input = -1;  ///< this process is a worker
  int worker_output = -1;
  int worker_page = -1;  ///< where a child that does a verb's work writes what it does
  int worker_share = 0;  ///< which of several devices that share a processor it is

  /// The verb's own options. Throws std::bad_any_cast for those of another verb.
  template <class Own>
  [[nodiscard]] const Own& of() const {
    return std::any_cast<const Own&>(own);
  }
  [[nodiscard]] bool is_worker() const { return worker_input >= 0; }
  /// Of a call to a driver, and of a backend that opens its device; 0: none.
  [[nodiscard]] double for_driver_s() const { return deadline_s.value_or(driver_deadline_s); }
  [[nodiscard]] double for_opening_s() const { return deadline_s.value_or(opening_deadline_s); }
};

/// The value of a variable; "" where unset. An empty function: there is no environment.
using Variables = std::function<std::string(const char*)>;

/// `words`: the command line without the program's name; `variables` stand in for flags that are not given, as
/// GPUBENCH_TIER=smoke for --tier smoke. Throws UsageError that names what is wrong (the flag or the variable), what
/// was expected and the nearest match. `suites`: the names that --suite takes, so that one in another place is told
/// where it belongs.
[[nodiscard]] Options parse_options(std::span<const std::string> words, const Variables& variables = {},
                                    std::span<const std::string> suites = {});

}  // namespace gpubench
