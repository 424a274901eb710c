// Words of the command line as values: chosen among a few, or whole numbers.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"
#include "harness/plan/nearest.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {

template <class T>
struct Word {
  std::string_view text;
  T value;
};

/// The value that a word stands for. Throws UsageError with all of them, and the nearest.
template <class T, std::size_t count>
[[nodiscard]] T choose(std::string_view flag, const std::string& word, const Word<T> (&known)[count]) {
  std::vector<std::string> names;
  for (const auto& [text, value] : known) {
    if (word == text) return value;
    names.emplace_back(text);
  }
  throw UsageError(
      fmt::format("{}: '{}' is not one of {}{}", flag, visible(word), joined(names), did_you_mean(word, names)));
}

/// The word that `word` is another name of; itself where it is none.
template <std::size_t count>
[[nodiscard]] std::string unaliased(const std::string& word, const Word<std::string_view> (&aliases)[count]) {
  for (const auto& [text, value] : aliases) {
    if (word == text) return std::string(value);
  }
  return word;
}

/// A whole number from `low`, to `high` where that is less than the type can hold. Throws UsageError.
template <class Integer>
[[nodiscard]] Integer whole(std::string_view flag, std::string_view word, Integer low,
                            Integer high = std::numeric_limits<Integer>::max()) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < low || value > high) {
    const bool bounded = high < std::numeric_limits<Integer>::max();
    throw UsageError(fmt::format("{}: '{}' is not a whole number from {}{}", flag, visible(word), low,
                                 bounded ? fmt::format(" to {}", high) : ""));
  }
  return value;
}

}  // namespace gpubench
