// Rows of the table of flags: what a flag is called, and where the words after it go.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>

#include "harness/cli/flags.h"

namespace gpubench {

/// Flags of the same verbs under the same heading of the help.
struct FlagSection {
  std::vector<Verb> verbs;
  std::string_view group;  ///< empty: hidden
  std::vector<Flag> flags;
};

/// compare, gate, calibrate, baseline; and run, with what else chooses and measures; and what is written where.
[[nodiscard]] std::vector<FlagSection> compare_sections();
[[nodiscard]] std::vector<FlagSection> run_sections(std::span<const std::string> suites);
[[nodiscard]] std::vector<FlagSection> output_sections();

// Where a value goes: a member of the options, or one of a part of them.
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
template <class Member>
auto in_compare(Member CompareOptions::*member) {
  return in(&Options::compare, member);
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

inline Flag row(std::string_view names, std::string_view type, std::string text, FlagValue value) {
  Flag flag{"", type, std::move(text), value.takes, std::move(value.set), std::move(value.words)};
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

}  // namespace gpubench
