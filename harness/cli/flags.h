// The tables of verbs and flags. The parser, help, completion, the manual page and the environment's variables are all
// made from them: a flag's declaration is its only place, beside what it does.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/flag_values.h"
#include "harness/cli/options.h"

namespace gpubench {

struct VerbInfo {
  Verb verb;
  std::string_view name;
  std::string_view arguments;  ///< after the verb in the usage line
  std::string_view description;
  bool hidden = false;
};

/// Every verb, in the order of the help text.
[[nodiscard]] std::span<const VerbInfo> verbs();

inline constexpr Word<Tier> tier_words[] = {
    {"smoke", Tier::smoke}, {"quick", Tier::quick}, {"standard", Tier::standard}, {"large", Tier::large}};

/// How many words stand after a flag.
enum class Takes {
  nothing,  ///< a switch
  one,      ///< of several the last one counts, so that a script's defaults can be overridden
  each,     ///< one each time that it is given
  list,     ///< the same, each of them several with commas between
  many      ///< as many as there are, as a shell's pattern gives them
};

/// What may stand after a flag, as far as a shell can complete it.
enum class ValueKind { none, text, file, folder };

/// A flag of some verbs, or what stands after a verb without one.
struct Flag {
  /// Puts the word, one of those that were given, where it belongs. Throws UsageError that begins with `flag`: this
  /// one, or the variable that stood in for it.
  using Set = std::function<void(Options& options, const std::string& flag, const std::string& word)>;

  std::string long_name;  ///< "--tier"; "files", for what stands without a flag
  std::string_view type;  ///< "TIER"; empty for a switch
  std::string text;       ///< what it is for, in the help
  Takes takes = Takes::one;
  Set set;
  std::vector<std::string> words{};  ///< of a choice among a few
  ValueKind value = ValueKind::text;
  std::vector<std::string> others{};  ///< "-q", "--gpus"
  std::string_view group{};           ///< heading in the help; empty: hidden

  [[nodiscard]] bool stands_alone() const { return !long_name.starts_with("-"); }
  [[nodiscard]] bool is_visible() const { return !group.empty() && !stands_alone(); }
  /// "-q", "--quiet".
  [[nodiscard]] std::vector<std::string> names() const;
};

/// What a verb takes, in the order of the help; groups: compare, select, measure, check, output. `suites`: words that
/// complete --suite.
[[nodiscard]] std::vector<Flag> flags_of(Verb verb, std::span<const std::string> suites = {});

/// Of the words of a calibrate call, those that its runs are started with: all but its own flags.
[[nodiscard]] std::vector<std::string> words_for_runs(const std::vector<std::string>& words);

}  // namespace gpubench
