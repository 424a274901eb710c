#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/report/content_digest.h"
#include "harness/report/json_parser.h"

namespace gpubench {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A message for readers who do not know JSON: "line 3, column 1: '}' cannot stand here".
class NotJson : public std::runtime_error {
 public:
  explicit NotJson(const std::string& why) : std::runtime_error(why) {}
};

/// Skips a byte order mark at the start. Refers to the text.
class JsonScanner {
 public:
  /// `digest`, if not null, takes the first `content` bytes except blanks outside strings; all of them by at_end().
  explicit JsonScanner(std::string_view text, DigestMaker* digest = nullptr, std::size_t content = 0);

  /// Moves to the next non-blank character and returns it; '\0' at the end.
  char next();
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  void pass() { ++at_; }
  /// Skips next(), which must be `wanted`. This and all below throw NotJson.
  void expect(char wanted);

  /// The string at the current '"', as UTF-8. Valid until the next call.
  [[nodiscard]] std::string_view string();
  /// The true, false or null at the current letter.
  void literal();
  /// The number at the current digit or '-'.
  [[nodiscard]] std::string_view number();
  /// The value of number(): an integer if it is whole and fits 64 bits, else the nearest fp64.
  [[nodiscard]] Json value_of(std::string_view number) const;

  /// Throws for the token at next(): malformed, or in the wrong place.
  [[noreturn]] void misplaced();

 private:
  enum class Fault { misplaced, control, utf8, string, overflow };
  /// `position`: after the wrong character.
  [[noreturn]] void fail(std::size_t position, Fault fault) const;
  [[noreturn]] void ended() const { fail(text_.size() + 1, Fault::misplaced); }
  char taken();
  void pass_blanks();
  void several_bytes(unsigned char lead);
  void escape();
  std::uint32_t four_digits();

  std::string_view text_;
  std::size_t at_ = 0;
  DigestMaker* digest_;
  std::size_t content_;
  std::size_t digested_ = 0;  // number of bytes before it that are blank or digested
  std::string scratch_;       // for strings with escapes
};

}  // namespace gpubench
