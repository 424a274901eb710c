// Words of the command line as values. Every conversion throws UsageError: the flag, the word, what was expected.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"
#include "harness/run/injected_error.h"
#include "harness/run/slowdown.h"

namespace gpubench {

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

/// The names of enumerators, by their name().
template <class T>
[[nodiscard]] std::vector<std::string> texts(std::span<const T> values) {
  std::vector<std::string> all;
  for (const T value : values) all.emplace_back(name(value));
  return all;
}

/// Which of `known` the word is. Names all of them, and the nearest.
[[nodiscard]] std::size_t choose(std::string_view flag, const std::string& word, const std::vector<std::string>& known);

/// The value that a word stands for.
template <class T, std::size_t count>
[[nodiscard]] T choose(std::string_view flag, const std::string& word, const Word<T> (&known)[count]) {
  return known[choose(flag, word, texts(known))].value;
}
template <class T>
[[nodiscard]] T choose(std::string_view flag, const std::string& word, std::span<const T> known) {
  return known[choose(flag, word, texts(known))];
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

/// "gemm=25%".
[[nodiscard]] Slowdown slowdown_of(std::string_view flag, const std::string& word);

/// "gemm=bit".
[[nodiscard]] InjectedError error_of(std::string_view flag, const std::string& word);

/// "2.49".
[[nodiscard]] double price_of(std::string_view flag, const std::string& word);

/// Seconds; 0 for off, nothing for auto.
[[nodiscard]] std::optional<double> deadline_of(std::string_view flag, const std::string& word);

/// Permissions as chmod takes them in digits. Whoever writes a file must be able to read it again.
[[nodiscard]] unsigned mode_of(std::string_view flag, const std::string& word);

}  // namespace gpubench
