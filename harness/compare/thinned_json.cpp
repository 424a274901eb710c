#include "harness/compare/thinned_json.h"

#include <algorithm>
#include <array>

namespace gpubench {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// What follows the string that begins at `at`; the end of the text where it does not end.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (std::size_t quote = text.find('"', at + 1); quote != text.npos; quote = text.find('"', quote + 1)) {
    std::size_t backslashes = 0;
    while (text[quote - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote + 1;
  }
  return text.size();
}

std::size_t after_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// What begins or ends something inside an object or array: everything else there is passed over.
constexpr std::array<bool, 256> brackets = [] {
  std::array<bool, 256> all{};
  for (const unsigned char c : {'"', '{', '}', '[', ']'}) all[c] = true;
  return all;
}();

std::size_t after_value(std::string_view text, std::size_t at) {
  at = after_blanks(text, at);
  int open = 0;
  while (at < text.size()) {
    while (open > 0 && at < text.size() && !brackets[static_cast<unsigned char>(text[at])]) ++at;
    if (at == text.size()) return at;
    const char c = text[at];
    if (c == '"') {
      at = after_string(text, at);
    } else {
      if (open == 0 && (c == ',' || c == '}' || c == ']')) return at;
      open += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      ++at;
      if (open > 0 || (c != '}' && c != ']')) continue;
    }
    if (open == 0) return at;
  }
  return at;
}

}  // namespace

std::string thinned_json(std::string_view text, const Dropped& dropped) {
  std::string_view dropped_by_value = dropped.otherwise;
  std::string thin;
  thin.reserve(text.size() / 2);
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      const std::size_t end = after_string(text, at);
      const std::string_view string = text.substr(at, end - at);
      thin += string;
      at = end;
      const std::size_t colon = after_blanks(text, at);
      const bool is_key = colon < text.size() && text[colon] == ':';
      const auto is_named = [&](std::string_view name) {
        return string.size() == name.size() + 2 && string.substr(1, name.size()) == name;
      };
      const std::size_t value = after_blanks(text, colon + 1);
      const bool has_value = is_key && value < text.size() && std::string_view(",}]").find(text[value]) == text.npos;
      if (!has_value) continue;
      if (!dropped.selector.empty()) {
        if (is_named(dropped.selector) && text[value] == '"') {
          const bool so = text.substr(value + 1, after_string(text, value) - value - 2) == dropped.value;
          dropped_by_value = so ? dropped.if_so : dropped.otherwise;
        } else if (is_named(dropped_by_value)) {
          thin += ":null";
          at = after_value(text, value);
          continue;
        }
      }
      if (std::none_of(dropped.always.begin(), dropped.always.end(), is_named)) continue;
      thin += ":null";
      at = after_value(text, value);
    } else if (is_blank(text[at])) {
      at = after_blanks(text, at);
      // Two tokens must not become one: a blank stays unless a punctuation mark stands before it.
      if (!thin.empty() && std::string_view(",:{[").find(thin.back()) == std::string_view::npos) thin += ' ';
    } else {
      const std::size_t start = at;
      while (at < text.size() && text[at] != '"' && !is_blank(text[at])) ++at;
      thin += text.substr(start, at - start);
    }
  }
  return thin;
}

}  // namespace gpubench
