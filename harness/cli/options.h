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

struct Verb;

enum class ColorMode { automatic, always, never };
template <>
inline constexpr auto enum_names<ColorMode> = std::to_array<std::string_view>({"auto", "always", "never"});

enum class ProgressMode { automatic, bar, lines, none };
template <>
inline constexpr auto enum_names<ProgressMode> = std::to_array<std::string_view>({"auto", "bar", "lines", "none"});

/// Handling of calls that an implementation accepts and no case tried.
enum class Untried { off, list, fail };
template <>
inline constexpr auto enum_names<Untried> = std::to_array<std::string_view>({"off", "list", "fail"});

enum class GithubMode { automatic, on, off };
template <>
inline constexpr auto enum_names<GithubMode> = std::to_array<std::string_view>({"auto", "on", "off"});

/// Forms in which a run writes its report.
enum class ReportForm { json, junit, csv, markdown };

/// The end of own_words with --tuning-cache off.
inline constexpr std::array<std::string_view, 2> no_tuning_cache{"--tuning-cache", "off"};

struct Options {
  const Verb* verb = nullptr;
  std::any own{};
  std::string subject;                 ///< for verbs with one argument: a case, an op, a workload
  std::vector<std::string> arguments;  ///< for verbs with several arguments: files, actions

  Selection selection;       ///< its tier is set when the device is known
  std::optional<Tier> tier;  ///< not set: quick, or standard on a GPU
  RunOptions run{};          ///< from flags; run_options() adds the rest
  std::string device = "auto";
  bool isolate = true;
  bool mpi = true;         ///< a launcher's processes are ranks of one run
  std::string started_by;  ///< prefix of a command that repeats a case: "mpirun -np 2 "
  bool dry_run = false;
  bool turns = false;
  bool trust_libraries = false;
  std::vector<std::string> implementations{};  ///< --impl; names and files are in run.implementations
  std::string python = "python3";
  std::string claims_of;              ///< hidden: in a child, the implementation whose claims it reports
  Untried untried = Untried::off;     ///< hidden: of impl check
  std::optional<std::string> versus;  ///< --versus: the implementation that is the base of ratios
  std::optional<std::string> pin;
  std::optional<std::string> shapes;
  std::optional<std::string> like;
  std::optional<std::string> tuning_cache;  ///< "off": none
  std::optional<double> deadline_s{};       ///< 0: off; not set: automatic

  std::optional<std::string> out;
  std::optional<std::string> json;                        ///< "-": standard output
  std::optional<std::string> junit{}, csv{}, markdown{};  ///< "-": standard output
  Detail detail = Detail::brief;
  std::string output;  ///< -o: the verb's document; empty: default name
  std::string svg;     ///< --svg: a file, or a folder for several charts; empty: none
  WriteRules writing{};
  std::optional<std::string> resume{};
  bool anonymize = false;
  std::optional<std::string> anonymize_key{};
  GithubMode github = GithubMode::automatic;
  ColorMode color = ColorMode::automatic;
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool verbose = false;

  std::vector<std::string> words;  ///< as typed, without the program's name; children get the same
  /// The given flags that affect what runs or how, without a folder of --tuning-cache, but with `no_tuning_cache`.
  std::vector<std::string> own_words{};
  /// Flags and variables that a case's rerun line repeats.
  std::vector<std::string> rerun_words{};
  /// calibrate: the flags of its runs.
  std::vector<std::string> run_flags{};
  /// Flags that all processes of a run must share, with their values. Without those from variables, which a launcher
  /// may pass to its host alone.
  std::map<std::string, std::string> shared_settings{};
  std::vector<std::pair<std::string, std::string>> from_environment;  ///< that stood in for flags
  bool is_empty_command = false;  ///< no word and no variable: prints the short help and runs nothing

  // Hidden, for child processes.
  int worker_input = -1;  ///< set: this process is a worker
  int worker_output = -1;
  int worker_page = -1;  ///< file in which a verb's child writes its current step
  int worker_share = 0;  ///< index among the CPU devices that share the processors

  /// Throws std::bad_any_cast for options of another verb.
  template <class Own>
  [[nodiscard]] const Own& of() const {
    return std::any_cast<const Own&>(own);
  }
  [[nodiscard]] bool is_worker() const { return worker_input >= 0; }
  /// Limit for a driver call and for a backend that opens its device; 0: none.
  [[nodiscard]] double for_driver_s() const { return deadline_s.value_or(driver_deadline_s); }
  [[nodiscard]] double for_opening_s() const { return deadline_s.value_or(opening_deadline_s); }
};

/// The value of a variable; "" if unset. Empty function: no environment.
using Variables = std::function<std::string(const char*)>;

/// `words`: the command line without the program's name. `variables` replace flags that are not given:
/// GPUBENCH_TIER=smoke for --tier smoke. `suites`: the names that --suite takes, for a hint if one is given as an
/// argument. Throws UsageError with the flag or variable, the expected form and the nearest match.
[[nodiscard]] Options parse_options(std::span<const std::string> words, const Variables& variables = {},
                                    std::span<const std::string> suites = {});

}  // namespace gpubench
