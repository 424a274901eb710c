// A verb: one file, verbs/<name>.cpp, with its options, flags, help, examples and code; and its row in the table of
// verbs, which the build makes of these files (`verbs` in CMakeLists.txt).
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/exit_code.h"
#include "harness/cli/flags.h"
#include "harness/cli/options.h"

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

}  // namespace gpubench
