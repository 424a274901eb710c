// What in a text tells of a machine or its user by its form: paths, UUIDs, addresses.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace gpubench {

/// Letters, digits, '_' and whatever is not ASCII.
[[nodiscard]] inline bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

[[nodiscard]] constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// How much at the start of the text belongs together.
template <class Belongs>
[[nodiscard]] std::size_t length_of(std::string_view text, const Belongs& belongs) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), belongs) - text.begin());
}

/// Whether the text starts with this name and a word ends there; case does not matter, as in names of hosts.
[[nodiscard]] bool starts_with_name(std::string_view text, std::string_view name);

struct Identifying {
  std::string_view kind;  ///< "path", "gpu" (a UUID), "bus" (PCI), "address" (IPv4)
  std::size_t size = 0;   ///< bytes; 0: there is none
};

/// What begins at `at`, a place within the text.
[[nodiscard]] Identifying identifying_at(std::string_view text, std::size_t at);

/// Whether a variable's value is made of numbers and well-known words alone ("close", "avx2", ":4096:8").
[[nodiscard]] bool is_common_value(std::string_view value);

}  // namespace gpubench
