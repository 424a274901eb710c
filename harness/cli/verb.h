// A verb: one file, verbs/<name>.cpp, with options, flags, help, examples and code. The build makes the table of verbs
// from these files (`verbs` in CMakeLists.txt).
#pragma once

#include <any>
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/exit_code.h"
#include "harness/cli/flags.h"
#include "harness/cli/options.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verb_output.h"
#include "harness/compare/effect.h"
#include "harness/core/enum_names.h"

namespace gpubench {

struct Verb {
  std::string_view name{};
  std::string_view arguments{};
  std::string_view summary{};  ///< for the list of verbs; at most 64 columns
  std::string_view description{};
  /// Lines "  gpubench ...", some followed by two or more blanks and an explanation; ends with a newline.
  std::string_view examples{};
  /// In the order of the help. `suites`: completions of --suite.
  std::vector<Flag> (*flags)(std::span<const std::string> suites) = [](auto) { return std::vector<Flag>{}; };
  /// Returns the exit code. Throws UsageError for errors that the user can correct, CannotMeasure if nothing can be
  /// measured.
  int (*act)(const Options& options, const Environment& environment) = nullptr;
  std::any options{};                      ///< initial Options::own
  void (*check)(Options&) = [](auto&) {};  ///< checks combinations of flags; throws UsageError
  std::string_view notes{};                ///< end of the full help: lines as in `examples`, the first empty
  bool shows_variables = false;
  bool hidden = false;  ///< not in help, completion and manual page
};

/// In the order of the help.
[[nodiscard]] std::span<const Verb> verbs();

/// The verb of a command line without one.
[[nodiscard]] inline const Verb& default_verb() { return verbs().front(); }

[[nodiscard]] std::vector<std::string> verb_names();

[[nodiscard]] const Verb* find_verb(std::string_view name);

/// In the order of the help; groups: compare, start, select, measure, check, output.
[[nodiscard]] std::vector<Flag> flags_of(std::string_view verb, std::span<const std::string> suites = {});

/// Flags by name, or all under a heading: "select" (without --shapes), "measure", "check". In this order. `suites`:
/// completions of --suite.
[[nodiscard]] std::vector<Flag> shared_flags(std::initializer_list<std::string_view> names,
                                             std::span<const std::string> suites = {});

/// One argument without a flag, or several. `known`: completions.
[[nodiscard]] std::vector<Flag> subject_argument(std::string_view type, std::vector<std::string> known = {});
[[nodiscard]] std::vector<Flag> several_arguments(std::string_view type, ValueKind value,
                                                  std::vector<std::string> known = {});

/// "[SUITE=]PERCENT"; the last one per suite wins. Throws UsageError.
void set_tau(Tau& tau, const std::string& flag, const std::string& word);

template <class Own>
[[nodiscard]] std::vector<Flag> comparison_flags() {
  return under("compare",
               row("--noise", "FILE",
                   "noise file of gpubench calibrate, or a folder with that of this set-up (noise-FINGERPRINT.json)",
                   text(own(&Own::noise))),
               row("--tau", "[SUITE=]PERCENT",
                   "smallest relevant change (default: 3%); SUITE=10%: for one suite; may be repeated",
                   {Takes::each, [](Options& o, const std::string& flag, const std::string& word) {
                      set_tau(std::any_cast<Own&>(o.own).tau, flag, word);
                    }}));
}

template <class Own>
[[nodiscard]] std::vector<Flag> node_flags() {
  return under("measure",
               row("--nvlink", "GB/S", "bandwidth of each device to others of its node, one way (default: 450)",
                   converted(own(&Own::node_gb_per_s), positive_of)),
               row("--gpus-per-node", "N", "GPUs joined by NVLink (default: 8)",
                   converted(own(&Own::per_node), whole_from<std::int64_t>(1, 1 << 20))));
}

struct HelpOptions {
  bool all = false;
};

enum class Shell { bash, zsh, fish };
template <>
inline constexpr auto enum_names<Shell> = std::to_array<std::string_view>({"bash", "zsh", "fish"});

/// Help for the program ("") or for one verb, `width` columns wide, at most 100; commands are not broken. Fits 40
/// lines: if the full help would not, only the usage, the eight most common flags and two examples. Throws UsageError
/// for an unknown verb.
[[nodiscard]] std::string help_text(std::string_view verb, int width = 100);

/// Help with every flag, in groups (--help-all).
[[nodiscard]] std::string full_help_text(std::string_view verb, int width = 100);

/// The output of the program without arguments: one sentence, three examples, pointers to more.
[[nodiscard]] std::string short_help(int width = 100);

/// Lines as in Verb::examples.
[[nodiscard]] std::string_view first_examples();

/// gpubench(1) in roff with the man macros: visible verbs with their flags, environment, exit codes.
[[nodiscard]] std::string manual_page(std::string_view version);

[[nodiscard]] std::string completion_text(Shell shell, std::span<const std::string> suites);

}  // namespace gpubench
