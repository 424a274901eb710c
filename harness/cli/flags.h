// Flags of verbs. The parser, help, completion, the manual page and the environment's variables are all made from their
// rows, and so are the lines that repeat flags (Flag::use); shared_flags.cpp has those that several verbs take.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <any>
#include <charconv>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/options.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/plan/names.h"
#include "harness/run/injected_fault.h"

namespace gpubench {

// Words of the command line as values. Every conversion throws UsageError: the flag, the word, what was expected.

template <class T>
struct Word {
  std::string_view text;
  T value;
};

template <class T, std::size_t count>
[[nodiscard]] std::vector<std::string> texts(const Word<T> (&words)[count]) {
  std::vector<std::string> all;
  for (const Word<T>& word : words) all.emplace_back(word.text);
  return all;
}

/// The names of an enumeration.
template <NamedEnum T>
[[nodiscard]] std::vector<std::string> texts() {
  return {enum_names<T>.begin(), enum_names<T>.end()};
}

/// Which of `known` the word is. Names all of them, and the nearest.
[[nodiscard]] std::size_t choose(std::string_view flag, const std::string& word, const std::vector<std::string>& known);

/// The value that a word stands for.
template <class T, std::size_t count>
[[nodiscard]] T choose(std::string_view flag, const std::string& word, const Word<T> (&known)[count]) {
  return known[choose(flag, word, texts(known))].value;
}
template <NamedEnum T>
[[nodiscard]] T choose(std::string_view flag, const std::string& word) {
  return static_cast<T>(choose(flag, word, texts<T>()));
}

/// The word that `word` is another name of; itself where it is none.
template <std::size_t count>
[[nodiscard]] std::string unaliased(const std::string& word, const Word<std::string_view> (&aliases)[count]) {
  for (const auto& [text, value] : aliases) {
    if (word == text) return std::string(value);
  }
  return word;
}

/// The number that the whole word is, in the base of an integer; nothing where it is none.
template <class Number, class... Base>
[[nodiscard]] std::optional<Number> number(std::string_view word, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base...);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// A whole number from `low`, to `high` where that is less than the type can hold.
template <class Integer>
[[nodiscard]] Integer whole(std::string_view flag, std::string_view word, Integer low,
                            Integer high = std::numeric_limits<Integer>::max()) {
  const std::optional<Integer> value = number<Integer>(word);
  if (value && *value >= low && *value <= high) return *value;
  const bool bounded = high < std::numeric_limits<Integer>::max();
  throw UsageError(fmt::format("{}: '{}' is not a whole number from {}{}", flag, visible(word), low,
                               bounded ? fmt::format(" to {}", high) : ""));
}

/// The words between commas, empty ones too.
[[nodiscard]] std::vector<std::string> split_at_commas(std::string_view list);

/// "3%" and "0.03" alike: 0.03. Must be above 0 and below 1000%; 1 and more need a percent sign: who writes 3 means 3%.
[[nodiscard]] double share_of(std::string_view flag, const std::string& word);

/// "k=256,512".
[[nodiscard]] std::pair<std::string, std::vector<std::int64_t>> axis_of(std::string_view flag, const std::string& word);

/// "tp=2", "dp=2,tp=2", "tp=4,sp".
[[nodiscard]] Selection::Layout layout_of(std::string_view flag, const std::string& word);

/// "gemm=25%".
[[nodiscard]] Slowdown slowdown_of(std::string_view flag, const std::string& word);

/// "gemm=bit".
[[nodiscard]] InjectedError error_of(std::string_view flag, const std::string& word);

/// "5", "0.5"; above 0, at most a year.
[[nodiscard]] double minutes_of(std::string_view flag, const std::string& word);
/// "12.5": from 1e-9 to 1e9.
[[nodiscard]] double positive_of(std::string_view flag, const std::string& word);
/// "3=1.5": of rank 3, from 0.
[[nodiscard]] std::pair<int, double> of_rank(std::string_view flag, const std::string& word);
/// "2": from 1, at most 1e9.
[[nodiscard]] double oversubscription_of(std::string_view flag, const std::string& word);
/// "15e12"; a number from 1.
[[nodiscard]] double tokens_of(std::string_view flag, const std::string& word);
/// "2.49": from 1e-9.
[[nodiscard]] double price_of(std::string_view flag, const std::string& word);

/// Seconds; 0 for off, nothing for auto.
[[nodiscard]] std::optional<double> deadline_of(std::string_view flag, const std::string& word);

/// Permissions as chmod takes them in digits. Whoever writes a file must be able to read it again.
[[nodiscard]] unsigned mode_of(std::string_view flag, const std::string& word);

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

/// Bits of Flag::use: which command lines repeat a flag, and what its value names.
namespace use {
inline constexpr unsigned journal = 1;    ///< --resume takes it from the journal
inline constexpr unsigned rerun = 2;      ///< the rerun line of a case, whose id names what chooses it
inline constexpr unsigned processes = 4;  ///< all processes of a run have the same
inline constexpr unsigned runs = 8;       ///< runs that calibrate starts
inline constexpr unsigned everywhere = journal | rerun | processes | runs;
inline constexpr unsigned code = 16;  ///< names code of others, or lets it be loaded
inline constexpr unsigned file = 32;  ///< names a file that is read
}  // namespace use

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
  std::string_view brief{};           ///< its text where help is short; empty: left out there unless the verb has few
  /// No value: the flag does not affect what is run or how. Equal words of the other flags give equal runs. --anonymize
  /// is one of those: a run must not show half of its names.
  std::optional<unsigned> use{};

  [[nodiscard]] bool stands_alone() const { return !long_name.starts_with("-"); }
  [[nodiscard]] bool is_visible() const { return !group.empty() && !stands_alone(); }
  [[nodiscard]] bool has(unsigned any_of) const { return (use.value_or(0) & any_of) != 0; }
  /// "-q", "--quiet".
  [[nodiscard]] std::vector<std::string> names() const;
};

struct PartedWords {
  std::vector<std::string> taken, others;
};

/// The flags that are `taken`, with their values, apart from the others. `own_words`: Options::own_words of the verb,
/// each flag by its long name with its value behind it, whatever that looks like: a value "--impl" is no flag.
[[nodiscard]] PartedWords parted(std::string_view verb, const std::vector<std::string>& own_words,
                                 bool (*taken)(const Flag&));

// Flags from the environment. It is input like any other: its values are checked as the flags' are, and shown before
// anything runs.

/// "--dry-run" -> "GPUBENCH_DRY_RUN".
[[nodiscard]] std::string variable_of(const std::string& flag);

/// Whether a variable turns its switch on: "on" or "1", not "off" or "0". Throws UsageError for another value.
[[nodiscard]] bool switched_on(const std::string& variable, const std::string& value);

/// Of `names`, those that begin with GPUBENCH_ but stand for no flag of any verb: one sentence each, with the nearest
/// that does.
[[nodiscard]] std::vector<std::string> unknown_variables(std::span<const std::string> names);

/// "GPUBENCH_TIER=smoke GPUBENCH_SEED=1", made visible.
[[nodiscard]] std::string variables_text(std::span<const std::pair<std::string, std::string>> variables);

// A row: what a flag is called, and where the words after it go.

/// Flags under one heading of the help; an empty one hides them. Those that select, measure or check are used
/// everywhere unless their row says otherwise.
template <std::same_as<Flag>... Row>
[[nodiscard]] std::vector<Flag> under(std::string_view group, Row... flags) {
  std::vector<Flag> all;
  (all.push_back(std::move(flags)), ...);
  for (Flag& flag : all) {
    flag.group = group;
    if (!flag.use && (group == "select" || group == "measure" || group == "check")) flag.use = use::everywhere;
  }
  return all;
}

/// All of them, in this order.
template <std::same_as<std::vector<Flag>>... Part>
[[nodiscard]] std::vector<Flag> together(Part... parts) {
  std::vector<Flag> all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}

// Where a value goes: a member of the options, of a part of them, or of the verb's own.
template <class Part, class Member>
auto in(Part Options::*part, Member Part::*member) {
  return [=](Options& options) -> Member& { return options.*part.*member; };
}
template <class Member>
auto in_run(Member RunOptions::*member) {
  return in(&Options::run, member);
}
template <class Member>
auto in_selection(Member Selection::*member) {
  return in(&Options::selection, member);
}
template <class Own, class Member>
auto own(Member Own::*member) {
  return [=](Options& options) -> Member& { return std::any_cast<Own&>(options.own).*member; };
}

// How the words after a flag are read.
struct FlagValue {
  Takes takes = Takes::one;
  Flag::Set set;
  std::vector<std::string> words{};
};

inline FlagValue turn_on(auto place) {
  return {Takes::nothing, [=](Options& o, const std::string&, const std::string&) { std::invoke(place, o) = true; }};
}

// convert(flag, word)
inline FlagValue converted(auto place, auto convert, std::vector<std::string> words = {}) {
  return {Takes::one,
          [=](Options& o, const std::string& flag, const std::string& word) {
            std::invoke(place, o) = convert(flag, word);
          },
          std::move(words)};
}

inline FlagValue text(auto place, std::vector<std::string> words = {}) {
  return converted(
      place, [](const std::string&, const std::string& word) { return word; }, std::move(words));
}

inline FlagValue one_of(auto place, std::vector<std::string> words) {
  return converted(
      place, [words](const std::string& flag, const std::string& word) { return words[choose(flag, word, words)]; },
      words);
}

template <NamedEnum T>
FlagValue choice(auto place) {
  return converted(
      place, [](const std::string& flag, const std::string& word) { return choose<T>(flag, word); }, texts<T>());
}

template <class T, std::size_t count>
FlagValue choice(auto place, const Word<T> (&words)[count]) {
  return converted(
      place, [&words](const std::string& flag, const std::string& word) { return choose(flag, word, words); },
      texts(words));
}

template <class Integer>
auto whole_from(Integer low, Integer high = std::numeric_limits<Integer>::max()) {
  return [=](const std::string& flag, const std::string& word) { return whole<Integer>(flag, word, low, high); };
}

// Each value once.
inline FlagValue several(Takes takes, auto place, auto convert, std::vector<std::string> words = {}) {
  return {takes,
          [=](Options& o, const std::string& flag, const std::string& word) {
            auto& all = std::invoke(place, o);
            auto value = convert(flag, word);
            if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
          },
          std::move(words)};
}

// As they were given.
inline FlagValue all_of(Takes takes, auto place, std::vector<std::string> words = {}) {
  return {takes,
          [=](Options& o, const std::string&, const std::string& word) { std::invoke(place, o).push_back(word); },
          std::move(words)};
}

inline Flag row(std::string_view names, std::string_view type, std::string text, FlagValue value,
                std::optional<unsigned> use = {}) {
  Flag flag{"", type, std::move(text), value.takes, std::move(value.set), std::move(value.words)};
  flag.use = use;
  for (std::string& name : split_at_commas(names)) {
    const bool is_first_long = flag.long_name.empty() && (name.starts_with("--") || !name.starts_with("-"));
    if (is_first_long)
      flag.long_name = std::move(name);
    else
      flag.others.push_back(std::move(name));
  }
  if (value.takes == Takes::nothing)
    flag.value = ValueKind::none;
  else if (type.starts_with("DIR"))
    flag.value = ValueKind::folder;
  else if (type.starts_with("FILE") || type.starts_with("REPORT"))
    flag.value = ValueKind::file;
  return flag;
}

/// A flag that short help shows, with this text.
inline Flag common(std::string_view brief, Flag flag) {
  flag.brief = brief;
  return flag;
}

}  // namespace gpubench
