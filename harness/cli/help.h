// Help, the manual page and the completion of shells, from the tables of verbs and flags; and command lines to copy,
// each of which a test parses.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/enum_names.h"

namespace gpubench {

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
