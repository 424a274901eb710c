// JSON's tokens (RFC 8259), strictly, and what is wrong with a text that has others.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/report/content_digest.h"
#include "harness/report/json_parser.h"

namespace gpubench {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Why a text is no JSON, for readers who do not know JSON: "line 3, column 1: '}' cannot stand here".
class NotJson : public std::runtime_error {
 public:
  explicit NotJson(const std::string& why) : std::runtime_error(why) {}
};

/// Goes through a text token by token; a byte order mark before the first one is passed over. Refers to the text.
class JsonScanner {
 public:
  /// `digest`, if there is one, takes the first `content` bytes of the text except blanks outside strings: all of them
  /// once at_end().
  explicit JsonScanner(std::string_view text, DigestMaker* digest = nullptr, std::size_t content = 0);

  /// Moves to the next non-blank character and returns it; '\0' at the end.
  char next();
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  /// Passes over the character where this stands.
  void pass() { ++at_; }
  /// next() has to be this one; passes over it. This and all that follow throw NotJson.
  void expect(char wanted);

  /// The text that begins with the '"' where this stands, as UTF-8. Valid until the next one.
  [[nodiscard]] std::string_view string();
  /// true, false or null: whichever begins with the letter where this stands.
  void literal();
  /// The number that begins with the digit or '-' where this stands.
  [[nodiscard]] std::string_view number();
  /// Of number(): a whole one as 64 bits where those hold it, any other as the nearest fp64.
  [[nodiscard]] Json value_of(std::string_view number) const;

  /// The token at next() is in the wrong place, unless it is malformed itself.
  [[noreturn]] void misplaced();

 private:
  enum class Fault { misplaced, control, utf8, string, overflow };
  /// `position`: behind the character that is wrong.
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
  std::size_t digested_ = 0;  // bytes before it are blanks or in digest_
  std::string scratch_;       // a string that is not in the text as it is
};

}  // namespace gpubench
