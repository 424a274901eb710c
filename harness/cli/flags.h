// Flags of verbs. Parser, help, completion, manual page, environment variables and repeated command lines (Flag::use)
// are made from these rows; shared_flags.cpp has the rows that verbs share.
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

// Conversions of words. Each throws UsageError with the flag, the word and the expected form.

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

template <NamedEnum T>
[[nodiscard]] std::vector<std::string> texts() {
  return {enum_names<T>.begin(), enum_names<T>.end()};
}

/// The index in `known`. The error lists all of them and the nearest.
[[nodiscard]] std::size_t choose(std::string_view flag, const std::string& word, const std::vector<std::string>& known);

template <class T, std::size_t count>
[[nodiscard]] T choose(std::string_view flag, const std::string& word, const Word<T> (&known)[count]) {
  return known[choose(flag, word, texts(known))].value;
}
template <NamedEnum T>
[[nodiscard]] T choose(std::string_view flag, const std::string& word) {
  return static_cast<T>(choose(flag, word, texts<T>()));
}

/// Resolves an alias; other words are returned as they are.
template <std::size_t count>
[[nodiscard]] std::string unaliased(const std::string& word, const Word<std::string_view> (&aliases)[count]) {
  for (const auto& [text, value] : aliases) {
    if (word == text) return std::string(value);
  }
  return word;
}

/// Nothing unless the whole word is a number; for integers in the given base.
template <class Number, class... Base>
[[nodiscard]] std::optional<Number> number(std::string_view word, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base...);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// A whole number from `low` to `high`, which is limited to the type's range.
template <class Integer>
[[nodiscard]] Integer whole(std::string_view flag, std::string_view word, Integer low,
                            Integer high = std::numeric_limits<Integer>::max()) {
  const std::optional<Integer> value = number<Integer>(word);
  if (value && *value >= low && *value <= high) return *value;
  const bool bounded = high < std::numeric_limits<Integer>::max();
  throw UsageError(fmt::format("{}: '{}' is not a whole number from {}{}", flag, visible(word), low,
                               bounded ? fmt::format(" to {}", high) : ""));
}

/// Keeps empty words.
[[nodiscard]] std::vector<std::string> split_at_commas(std::string_view list);

/// "3%" or "0.03": 0.03. Above 0 and below 1000%. Values from 1 need a percent sign, since "3" usually means 3%.
[[nodiscard]] double share_of(std::string_view flag, const std::string& word);

[[nodiscard]] std::pair<std::string, std::vector<std::int64_t>> axis_of(std::string_view flag, const std::string& word);

[[nodiscard]] Selection::Layout layout_of(std::string_view flag, const std::string& word);

[[nodiscard]] Slowdown slowdown_of(std::string_view flag, const std::string& word);

[[nodiscard]] InjectedError error_of(std::string_view flag, const std::string& word);

/// "5", "0.5"; above 0, at most a year.
[[nodiscard]] double minutes_of(std::string_view flag, const std::string& word);
/// "12.5": from 1e-9 to 1e9.
[[nodiscard]] double positive_of(std::string_view flag, const std::string& word);
/// "3=1.5": of rank 3, from 0.
[[nodiscard]] std::pair<int, double> of_rank(std::string_view flag, const std::string& word);
/// "2": from 1 to 1e9.
[[nodiscard]] double oversubscription_of(std::string_view flag, const std::string& word);
/// "15e12"; a number from 1.
[[nodiscard]] double tokens_of(std::string_view flag, const std::string& word);
/// "2.49": from 1e-9.
[[nodiscard]] double price_of(std::string_view flag, const std::string& word);

/// Seconds; 0: off; nothing: auto.
[[nodiscard]] std::optional<double> deadline_of(std::string_view flag, const std::string& word);

/// Octal permissions as for chmod. The owner must be able to read the file.
[[nodiscard]] unsigned mode_of(std::string_view flag, const std::string& word);

/// Number of words after a flag.
enum class Takes {
  nothing,  ///< a switch
  one,      ///< the last one counts, so that a script's defaults can be overridden
  each,     ///< one per occurrence
  list,     ///< comma-separated, per occurrence
  many      ///< any number, such as a shell's pattern expands to
};

enum class ValueKind { none, text, file, folder };

/// Bits of Flag::use: which command lines repeat a flag, and what its value names.
namespace use {
inline constexpr unsigned journal = 1;    ///< --resume takes it from the journal
inline constexpr unsigned rerun = 2;      ///< in the rerun line of a case; not for flags that the case id covers
inline constexpr unsigned processes = 4;  ///< the same in all processes of a run
inline constexpr unsigned runs = 8;       ///< passed to the runs of calibrate
inline constexpr unsigned everywhere = journal | rerun | processes | runs;
inline constexpr unsigned code = 16;  ///< names foreign code, or allows loading it
inline constexpr unsigned file = 32;  ///< names an input file
}  // namespace use

struct Flag {
  /// Stores one given word. Throws UsageError that begins with `flag`: this flag, or the variable that replaced it.
  using Set = std::function<void(Options& options, const std::string& flag, const std::string& word)>;

  std::string long_name;  ///< "--tier"; "files" for an argument without a flag
  std::string_view type;  ///< "TIER"; empty for a switch
  std::string text;
  Takes takes = Takes::one;
  Set set;
  std::vector<std::string> words{};
  ValueKind value = ValueKind::text;
  std::vector<std::string> others{};
  std::string_view group{};  ///< help heading; empty: hidden
  std::string_view brief{};  ///< text of the short help; empty: omitted there unless the verb has few flags
  /// Not set: the flag does not affect what runs or how, so runs whose other flags are equal are equal. --anonymize is
  /// set: names must be hashed in all parts of a run or in none.
  std::optional<unsigned> use{};

  [[nodiscard]] bool is_argument() const { return !long_name.starts_with("-"); }
  [[nodiscard]] bool is_visible() const { return !group.empty() && !is_argument(); }
  [[nodiscard]] bool has(unsigned any_of) const { return (use.value_or(0) & any_of) != 0; }
  [[nodiscard]] std::vector<std::string> names() const;
};

struct PartedWords {
  std::vector<std::string> taken, others;
};

/// Separates `taken` flags, with their values, from the others. `own_words`: as Options::own_words; each flag by its
/// long name, before its value.
[[nodiscard]] PartedWords parted(std::string_view verb, const std::vector<std::string>& own_words,
                                 bool (*taken)(const Flag&));

// Variables that stand in for flags, checked as flags are and shown before anything runs.

/// "--dry-run" -> "GPUBENCH_DRY_RUN".
[[nodiscard]] std::string variable_of(const std::string& flag);

/// True for "on" and "1", false for "off" and "0". Throws UsageError for other values.
[[nodiscard]] bool switched_on(const std::string& variable, const std::string& value);

/// Warnings, one sentence each, for `names` that begin with GPUBENCH_ but match no flag of any verb; each names the
/// nearest.
[[nodiscard]] std::vector<std::string> unknown_variables(std::span<const std::string> names);

/// "GPUBENCH_TIER=smoke GPUBENCH_SEED=1", with control characters escaped.
[[nodiscard]] std::string variables_text(std::span<const std::pair<std::string, std::string>> variables);

/// Rows under one heading of the help; an empty heading hides them. Flags that select, measure or check get all bits of
/// `use`, unless their row sets it.
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

template <std::same_as<std::vector<Flag>>... Part>
[[nodiscard]] std::vector<Flag> together(Part... parts) {
  std::vector<Flag> all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}

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

struct FlagValue {
  Takes takes = Takes::one;
  Flag::Set set;
  std::vector<std::string> words{};
};

inline FlagValue turn_on(auto place) {
  return {Takes::nothing, [=](Options& o, const std::string&, const std::string&) { std::invoke(place, o) = true; }};
}

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

// Appends each value once.
inline FlagValue several(Takes takes, auto place, auto convert, std::vector<std::string> words = {}) {
  return {takes,
          [=](Options& o, const std::string& flag, const std::string& word) {
            auto& all = std::invoke(place, o);
            auto value = convert(flag, word);
            if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
          },
          std::move(words)};
}

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

/// Shows the flag in the short help, with this text.
inline Flag common(std::string_view brief, Flag flag) {
  flag.brief = brief;
  return flag;
}

}  // namespace gpubench
