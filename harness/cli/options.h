// Verbs and flags: from the words of a command line to checked values.
#pragma once

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

#include "harness/cli/children.h"
#include "harness/compare/effect.h"
#include "harness/core/case.h"
#include "harness/plan/plan.h"
#include "harness/report/atomic_file.h"
#include "harness/report/export.h"
#include "harness/run/run.h"

namespace gpubench {

enum class Verb {
  run,
  list,
  explain,
  doctor,
  compare,
  gate,
  calibrate,
  tune_batch,
  baseline,
  impl,
  selftest,
  determinism,
  soak,
  learn,
  predict,
  simulate,
  validate,
  export_report,
  report_page,
  completion,
  help,
  version,
  man,             ///< hidden: the manual page, for the install
  probe,           ///< hidden: a child process that asks the driver or NVML
  describe_device  ///< hidden: a child process that opens the backend and tells its DeviceInfo
};

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

enum class Shell { bash, zsh, fish };
template <>
inline constexpr auto enum_names<Shell> = std::to_array<std::string_view>({"bash", "zsh", "fish"});

enum class GithubMode { automatic, on, off };
template <>
inline constexpr auto enum_names<GithubMode> = std::to_array<std::string_view>({"auto", "on", "off"});

/// What a report can be written as after a run.
enum class ReportForm { json, junit, csv, markdown };
enum class CompareFormat { table, markdown, json, csv };
template <>
inline constexpr auto enum_names<CompareFormat> = std::to_array<std::string_view>({"table", "markdown", "json", "csv"});

/// Of the verbs that hold reports against each other: compare, gate, calibrate, baseline.
struct CompareOptions {
  std::vector<std::string>
      words;  ///< without a flag: reports of compare; of baseline "save", NAME, reports...; of impl
  std::vector<std::string> side_a, side_b;
  std::vector<std::vector<std::string>> sides;  ///< of compare, from the two above or the words; the first is A
  std::vector<std::string> baselines, candidates;
  std::vector<std::string> from;  ///< of calibrate: reports that there are already
  std::vector<std::string> allowed_differences;
  std::string noise;  ///< file, or folder of them; "" for none
  Tau tau{};
  CompareFormat format = CompareFormat::table;
  std::string junit, markdown;             ///< files; "" for none
  std::string json;                        ///< file, "-" for standard output, "" for none
  std::string output;                      ///< of calibrate: the noise file; "": named after the set-up
  std::string keep;                        ///< of calibrate: folder in which its reports stay
  std::string dir = "gpubench-baselines";  ///< of baseline
  int runs = 10;
  bool strict = false;
  bool allow_missing = false;
  bool github = false;
  bool force = false;
};

/// Of predict.
struct PredictOptions {
  std::string model;                  ///< empty: published series are scored
  std::string layout;                 ///< "tp=8,pp=8"
  std::vector<std::string> sizes;     ///< "512", "64..16384:x2"
  std::vector<std::string> measured;  ///< "512:1152=55.1"
  std::string from;                   ///< a report
  std::optional<std::int64_t> global_batch{};
  std::int64_t micro_batches = 32, sequence = 8192, per_node = 8;
  std::optional<double> rate{};  ///< TFLOP/s of a device
  double node_gb_per_s = 450.0;
  std::string optimizer = "sharded";
  std::vector<std::string> network;  ///< beyond nodes: "50", or "256:50", "25"; empty: 50
  double memory_gb = 80.0;           ///< of a device
  std::optional<double> tokens{};
};

/// Of simulate, beside predict's nodes and rate.
struct SimulateOptions {
  static constexpr int most_ranks = 4096;
  std::vector<int> ranks;  ///< empty: 8, or the next multiple of what a layout asks for
  std::string from;        ///< a report with the case on one rank
  double memory_gb_per_s = 3000.0, network_gb_per_s = 50.0;
  double oversubscription = 1.0;
  std::vector<std::pair<int, double>> slower;      ///< ranks, and how many times as long their ops take
  std::vector<std::pair<int, double>> stops;       ///< ranks, and when they stop: seconds
  std::vector<std::pair<int, double>> slow_links;  ///< ranks, and how many times as long their links take
  std::vector<std::pair<int, double>> cuts;        ///< ranks, and when their links are cut: seconds
};

/// The words that own_words ends with where no choices are kept.
inline constexpr std::array<std::string_view, 2> no_tuning_cache{"--tuning-cache", "off"};

struct Options {
  Verb verb = Verb::run;
  Selection selection;       ///< its tier is set once the device is known
  std::optional<Tier> tier;  ///< absent: quick, or standard on a GPU
  RunOptions run{};          ///< from the flags; run_options() adds the rest
  std::string device = "auto";
  bool isolate = true;
  bool mpi = true;         ///< processes that a launcher has started are ranks of one run
  std::string started_by;  ///< what starts them, before a command that repeats a case: "mpirun -np 2 "
  bool dry_run = false;
  bool turns = false;                   ///< --turns
  bool full = false;                    ///< of selftest
  std::int64_t clean_launches = 0;      ///< of selftest; 0: as --full says
  int repetitions = 5;                  ///< of determinism
  std::vector<int> other_threads;       ///< likewise; empty: one thread; 0: not tried
  std::string save_bits;                ///< likewise: file; empty: none
  std::string bits_before;              ///< likewise: a file that was saved; empty: none
  double minutes = 5.0;                 ///< of soak
  std::string journal;                  ///< likewise: file; empty: none
  std::string read_journal;             ///< likewise: of a soak that was; empty: there is to be one
  std::vector<std::string> devices;     ///< likewise: a number of devices, or several names; empty: one
  std::optional<int> learning_steps{};  ///< of learn: steps of training by itself
  bool brief_learning = false;          ///< likewise: one model, fewer steps
  bool trust_libraries = false;         ///< --trust-libraries
  /// --impl; their names and files are in run.implementations.
  std::vector<std::string> implementations{};
  std::string impl_op;                                    ///< of impl new
  std::string impl_language = "c";                        ///< likewise: "c", "cuda", "python"
  std::string python = "python3";                         ///< --python
  std::string claims_of;                                  ///< hidden: this child tells what this implementation takes
  Untried untried = Untried::off;                         ///< hidden: of impl check
  std::optional<std::string> versus;                      ///< --versus: what ratios are taken against
  std::optional<std::string> pin;                         ///< --pin
  std::optional<std::string> shapes;                      ///< --shapes
  std::optional<std::string> like;                        ///< --like
  std::optional<std::string> tuning_cache;                ///< --tuning-cache; "off" for none
  std::optional<std::string> out;                         ///< --out
  std::optional<std::string> json;                        ///< --json; "-" is standard output
  std::optional<std::string> junit{}, csv{}, markdown{};  ///< the same in other forms
  WriteRules writing{};                                   ///< --force, --mode
  std::optional<std::string> resume{};                    ///< --resume
  bool anonymize = false;                                 ///< --anonymize
  std::optional<std::string> anonymize_key{};             ///< --anonymize-key
  /// The flags of the command line that say what is run and how it is measured, as they were given. Where choices are
  /// kept does not belong to them, that none are does: no_tuning_cache.
  std::vector<std::string> own_words{};
  /// Those of them, and of variables, that a case's rerun line repeats.
  std::vector<std::string> rerun_words{};
  /// Flags that all processes of a run must share, with their values; not those from variables, which a launcher may
  /// pass to its own host alone.
  std::map<std::string, std::string> shared_settings{};
  GithubMode github = GithubMode::automatic;
  ColorMode color = ColorMode::automatic;
  ProgressMode progress = ProgressMode::automatic;
  bool quiet = false;
  bool verbose = false;
  std::optional<double> deadline_s{};  ///< --deadline; 0: off; absent: as long as each thing may take
  int worker_input = -1;               ///< hidden: this process is a worker
  int worker_output = -1;
  int worker_page = -1;  ///< hidden: where a child of selftest, determinism or soak says what it does
  int worker_share = 0;  ///< hidden: which of several devices it is that share a processor
  std::string subject;   ///< of list ("suites", a case), explain (an op, a case), tune-batch and learn (a workload, a
                         ///< part of an id) and help (a verb)
  bool help_all = false;  ///< of help: everything
  bool list_json = false;
  std::string html;  ///< of explain: the folder for its pages; empty: none
  PredictOptions predict{};
  SimulateOptions simulate{};
  CompareOptions compare;          ///< of compare, gate, calibrate and baseline
  std::vector<std::string> files;  ///< reports to read
  std::optional<ExportFormat> export_format{};
  std::optional<Shell> shell{};  ///< of completion
  std::string output;  ///< of export: the file to write; empty: standard output. Of report: the page; empty: beside it
  std::string svg;     ///< of report and learn: a folder for charts; of others: a file; empty: none
  double budget_s = 120.0;                    ///< of tune-batch
  std::optional<double> price_per_hour{};     ///< of report and predict
  std::map<std::string, std::string> labels;  ///< of report: what its files are called, by their letters
  std::vector<std::pair<std::string, std::string>> from_environment;  ///< variables that stood in for flags

  bool asks_for_nothing = false;  ///< no word, no variable: a question rather than a wish for minutes of work

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

/// The word for a verb as a user types it.
[[nodiscard]] std::string_view name(Verb verb);

}  // namespace gpubench
