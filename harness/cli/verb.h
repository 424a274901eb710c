// A verb: one file, verbs/<name>.cpp, with its options, flags, help, examples and code; and its row in the table of
// verbs, which the build makes of these files (`verbs` in CMakeLists.txt). Also includes what most of these files need.
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
  std::string_view arguments{};    ///< after the verb in the usage line
  std::string_view summary{};      ///< for the list of verbs; at most 64 columns
  std::string_view description{};  ///< what the summary leaves out; empty: nothing
  /// Lines "  gpubench ...", some followed by two blanks or more and what it does; ends with a newline.
  std::string_view examples{};
  /// What it takes, in the order of the help. `suites`: words that complete --suite.
  std::vector<Flag> (*flags)(std::span<const std::string> suites) = [](auto) { return std::vector<Flag>{}; };
  /// Returns the exit code. Throws UsageError for what the user can correct, CannotMeasure where nothing can be
  /// measured.
  int (*act)(const Options& options, const Environment& environment) = nullptr;
  std::any options{};                      ///< Options::own without any flag
  void (*check)(Options&) = [](auto&) {};  ///< checks flags against each other. Throws UsageError.
  std::string_view notes{};                ///< ends the full help: lines like those of `examples`, the first empty
  bool shows_variables = false;            ///< its full help shows the variables that stand in for flags
  bool hidden = false;                     ///< absent from help, completion and the manual page
};

/// Every verb, in the order of the help.
[[nodiscard]] std::span<const Verb> verbs();

/// The verb of a command line without one: the first.
[[nodiscard]] inline const Verb& default_verb() { return verbs().front(); }

/// The names of the verbs that are not hidden.
[[nodiscard]] std::vector<std::string> verb_names();

/// The verb of this name; null where there is none.
[[nodiscard]] const Verb* find_verb(std::string_view name);

/// What one of them takes, in the order of the help; groups: compare, start, select, measure, check, output.
[[nodiscard]] std::vector<Flag> flags_of(std::string_view verb, std::span<const std::string> suites = {});

// Flags and arguments that several verbs take, in shared_flags.cpp.

/// Those of these names, and all under a heading of the help that is one of them ("select" but for --shapes, "measure",
/// "check"), in this order. `suites`: words that complete --suite.
[[nodiscard]] std::vector<Flag> shared_flags(std::initializer_list<std::string_view> names,
                                             std::span<const std::string> suites = {});

/// One word without a flag, or several. `known`: words offered for completion.
[[nodiscard]] std::vector<Flag> subject_argument(std::string_view type, std::vector<std::string> known = {});
[[nodiscard]] std::vector<Flag> several_arguments(std::string_view type, ValueKind value,
                                                  std::vector<std::string> known = {});

/// "[SUITE=]PERCENT"; if repeated for a suite, the last one wins. Throws UsageError.
void set_tau(Tau& tau, const std::string& flag, const std::string& word);

/// Of compare and gate, whose own options have `noise` and `tau`.
template <class Own>
[[nodiscard]] std::vector<Flag> comparison_flags() {
  return under("compare",
               row("--noise", "FILE",
                   "what gpubench calibrate wrote, or a folder in which it is named after the set-up "
                   "(noise-FINGERPRINT.json)",
                   text(own(&Own::noise))),
               row("--tau", "[SUITE=]PERCENT",
                   "a change that matters (default: 3%); SUITE=10%: for the cases of one suite; may be repeated",
                   {Takes::each, [](Options& o, const std::string& flag, const std::string& word) {
                      set_tau(std::any_cast<Own&>(o.own).tau, flag, word);
                    }}));
}

/// Of predict and simulate, whose own options have `node_gb_per_s` and `per_node`.
template <class Own>
[[nodiscard]] std::vector<Flag> node_flags() {
  return under("measure",
               row("--nvlink", "GB/S", "of each device to others of its node, one way (default: 450)",
                   converted(own(&Own::node_gb_per_s), positive_of)),
               row("--gpus-per-node", "N", "that NVLink joins (default: 8)",
                   converted(own(&Own::per_node), whole_from<std::int64_t>(1, 1 << 20))));
}

/// The options of help alone.
struct HelpOptions {
  bool all = false;  ///< --help-all
};

enum class Shell { bash, zsh, fish };
template <>
inline constexpr auto enum_names<Shell> = std::to_array<std::string_view>({"bash", "zsh", "fish"});

/// Help for the program ("") or for one verb, `width` columns wide, at most 100; commands to copy are not broken. Made
/// from the same table as the parser. On one screen: the verbs, or a verb's usage, its eight most common flags and two
/// examples, where all of it would take more than 40 lines. Throws UsageError for an unknown verb.
[[nodiscard]] std::string help_text(std::string_view verb, int width = 100);

/// The same with every flag, in groups (--help-all).
[[nodiscard]] std::string full_help_text(std::string_view verb, int width = 100);

/// What a program called without any word shows: what it is, three examples, and where the rest is.
[[nodiscard]] std::string short_help(int width = 100);

/// Three examples, which a program called without any word shows: lines as of Verb::examples.
[[nodiscard]] std::string_view first_examples();

/// gpubench(1) in roff, with the man macros: every visible verb with its flags, the environment, exit codes.
[[nodiscard]] std::string manual_page(std::string_view version);

/// A script that completes gpubench's command line in a shell. Verbs, flags, the words of choice flags (those of lists
/// one by one), and files where a file is meant.
[[nodiscard]] std::string completion_text(Shell shell, std::span<const std::string> suites);

}  // namespace gpubench
