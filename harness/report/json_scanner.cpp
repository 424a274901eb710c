#include "harness/report/json_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

// A hint on frequent mistakes; "" if there is none. `before`: the text up to `word`.
std::string_view hint(std::string_view before, std::string_view word) {
  const std::size_t last = before.find_last_not_of(" \t\r\n");
  const bool after_comma = last != std::string_view::npos && before[last] == ',';
  if (after_comma && (word.starts_with('}') || word.starts_with(']'))) return "; remove the comma before it";
  if (word.starts_with('\'')) return "; names and strings need double quotes";
  if (word.starts_with('/') || word.starts_with('#')) return "; JSON has no comments";
  if (word.starts_with('<')) return "; this looks like a web page or XML";
  if (word.starts_with('N') || word.starts_with('I') || word.starts_with("na"))
    return "; JSON has no NaN and no infinity";
  return "";
}

// The word around character `at`; for other characters, the character.
std::string_view word_around(std::string_view text, std::size_t at) {
  const auto is_word_character = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
  };
  if (!is_word_character(text[at])) return text.substr(at, 1);
  std::size_t begin = at;
  while (begin > 0 && is_word_character(text[begin - 1])) --begin;
  std::size_t end = at;
  while (end < text.size() && is_word_character(text[end])) ++end;
  return text.substr(begin, end - begin);
}

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Characters that stand for themselves in a string.
constexpr std::array<bool, 256> plain = [] {
  std::array<bool, 256> all{};
  for (unsigned c = 0x20; c < 0x80; ++c) all[c] = c != '"' && c != '\\';
  return all;
}();

void append_utf8(std::uint32_t c, std::string& to) {
  const auto byte = [&to](std::uint32_t bits) { to += static_cast<char>(bits); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xc0U | c >> 6U);
  } else if (c < 0x10000) {
    byte(0xe0U | c >> 12U);
  } else {
    byte(0xf0U | c >> 18U);
    byte(0x80U | (c >> 12U & 0x3fU));
  }
  if (c >= 0x800) byte(0x80U | (c >> 6U & 0x3fU));
  byte(0x80U | (c & 0x3fU));
}

// For up to 15 digits with a point and no exponent, as most samples: exact integer over exact power of ten, which
// rounds correctly (Clinger, "How to read floating point numbers accurately", PLDI 1990). Nothing for other numbers.
std::optional<double> short_decimal(std::string_view number) {
  constexpr std::size_t max_digits = 15;
  constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
  const bool negative = number.front() == '-';
  if (negative) number.remove_prefix(1);
  if (number.size() > max_digits + 1) return std::nullopt;
  std::int64_t digits = 0;
  std::size_t point = number.size();
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (is_digit(c)) {
      digits = digits * 10 + (c - '0');
    } else if (c == '.') {
      point = i;
    } else {
      return std::nullopt;
    }
  }
  if (point == number.size()) return std::nullopt;
  const double value = static_cast<double>(digits) / powers[number.size() - point - 1];
  return negative ? -value : value;
}

// Whether a number outside fp64 is too small instead of too large.
bool vanishes(std::string_view number) {
  const std::string_view digits = number.substr(0, number.find_first_of("eE"));
  std::string_view exponent = number.substr(std::min(digits.size() + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (read.ec == std::errc::result_out_of_range) return exponent.starts_with('-');
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  return power < first - point;  // power + point would overflow at the largest exponents
}

}  // namespace

JsonScanner::JsonScanner(std::string_view text, DigestMaker* digest, std::size_t content)
    : text_(text), digest_(digest), content_(content) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

void JsonScanner::fail(std::size_t position, Fault fault) const {
  constexpr std::size_t longest_word = 20;  // keeps messages readable
  if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) throw NotJson("the input is empty");
  if (position > text_.size()) throw NotJson("unexpected end of input: unclosed string, array or object");
  const std::size_t last = position - 1;
  const std::string_view before_last = text_.substr(0, last);
  const std::size_t line_start = before_last.rfind('\n') + 1;
  const auto line = 1 + std::count(before_last.begin(), before_last.end(), '\n');
  const std::string place = fmt::format("line {}, column {}: ", line, position - line_start);
  if (fault == Fault::overflow) throw NotJson(place + "a number beyond fp64");
  if (fault == Fault::utf8) throw NotJson(place + "bytes that are not UTF-8");
  if (fault == Fault::control) throw NotJson(place + "a control character in a string, which must be escaped");
  if (fault == Fault::string) throw NotJson(place + "a string that is not closed, or with an invalid escape");
  const std::string_view word = word_around(text_, last);
  const std::string_view before = text_.substr(0, static_cast<std::size_t>(word.data() - text_.data()));
  throw NotJson(
      fmt::format("{}'{}' cannot stand here{}", place, visible(word.substr(0, longest_word)), hint(before, word)));
}

char JsonScanner::next() {
  if (at_end() || is_blank(text_[at_])) pass_blanks();
  return at_end() ? '\0' : text_[at_];
}

void JsonScanner::pass_blanks() {
  if (digest_ != nullptr && digested_ < content_)
    digest_->take(text_.substr(digested_, std::min(at_, content_) - digested_));
  std::uint64_t eight = 0;
  constexpr std::uint64_t eight_spaces = 0x2020202020202020;
  while (!at_end() && is_blank(text_[at_])) {
    ++at_;
    for (; at_ + sizeof eight <= text_.size(); at_ += sizeof eight) {  // most blanks are indentation
      std::memcpy(&eight, text_.data() + at_, sizeof eight);
      if (eight != eight_spaces) break;
    }
  }
  digested_ = at_;
}

void JsonScanner::expect(char wanted) {
  if (next() != wanted) misplaced();
  ++at_;
}

void JsonScanner::misplaced() {
  const char c = next();
  if (at_end()) ended();
  if (c == '"') {
    (void)string();
  } else if (c == '-' || is_digit(c)) {
    (void)number();
  } else if (c == 't' || c == 'f' || c == 'n') {
    literal();
  } else {
    ++at_;
  }
  fail(at_, Fault::misplaced);
}

char JsonScanner::taken() {
  if (at_end()) ended();
  return text_[at_++];
}

void JsonScanner::literal() {
  const std::string_view word = text_[at_] == 't' ? "true" : text_[at_] == 'f' ? "false" : "null";
  for (const char c : word) {
    if (taken() != c) fail(at_, Fault::misplaced);
  }
}

std::string_view JsonScanner::number() {
  const std::size_t begin = at_;
  const auto is = [this](char a, char b) { return !at_end() && (text_[at_] == a || text_[at_] == b); };
  const auto digits = [this] {
    if (!is_digit(taken())) fail(at_, Fault::misplaced);
    while (!at_end() && is_digit(text_[at_])) ++at_;
  };
  if (is('-', '-')) ++at_;
  if (is('0', '0')) {
    ++at_;
  } else {
    digits();
  }
  if (is('.', '.')) {
    ++at_;
    digits();
  }
  if (is('e', 'E')) {
    ++at_;
    if (is('+', '-')) ++at_;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

Json JsonScanner::value_of(std::string_view number) const {
  const char* const begin = number.data();
  const char* const end = begin + number.size();
  const auto read = [&](auto& value) { return std::from_chars(begin, end, value).ec == std::errc(); };
  const bool negative = *begin == '-';
  if (std::all_of(begin + (negative ? 1 : 0), end, is_digit)) {
    std::int64_t whole = 0;
    std::uint64_t natural = 0;
    if (negative && read(whole)) return whole;
    if (!negative && read(natural)) return natural;
  }
  if (const std::optional<double> value = short_decimal(number)) return *value;
  double value = 0.0;
  if (read(value)) return value;
  if (!vanishes(number)) fail(at_, Fault::overflow);
  return negative ? -0.0 : 0.0;
}

std::string_view JsonScanner::string() {
  const std::size_t begin = ++at_;
  while (!at_end() && plain[static_cast<unsigned char>(text_[at_])]) ++at_;
  if (!at_end() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  scratch_ = text_.substr(begin, at_ - begin);
  for (;;) {
    const auto c = static_cast<unsigned char>(taken());
    if (c == '"') return scratch_;
    if (plain[c]) {
      scratch_ += static_cast<char>(c);
    } else if (c == '\\') {
      escape();
    } else if (c < 0x20) {
      fail(at_, Fault::control);
    } else {
      several_bytes(c);
    }
  }
}

// A code point above U+007F, as in Unicode 15, table 3-7.
void JsonScanner::several_bytes(unsigned char lead) {
  if (lead < 0xc2 || lead > 0xf4) fail(at_, Fault::utf8);
  scratch_ += static_cast<char>(lead);
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3; more > 0; --more) {
    const char c = taken();
    if (static_cast<unsigned char>(c) < low || static_cast<unsigned char>(c) > high) fail(at_, Fault::utf8);
    scratch_ += c;
    low = 0x80;
    high = 0xbf;
  }
}

void JsonScanner::escape() {
  constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
  const char c = taken();
  if (const std::size_t letter = letters.find(c); letter != std::string_view::npos) {
    scratch_ += meant[letter];
    return;
  }
  if (c != 'u') fail(at_, Fault::string);
  std::uint32_t point = four_digits();
  if (point >= 0xdc00 && point <= 0xdfff) fail(at_, Fault::string);
  if (point >= 0xd800 && point <= 0xdbff) {  // surrogate: half of a code point above U+FFFF
    if (taken() != '\\' || taken() != 'u') fail(at_, Fault::string);
    const std::uint32_t low = four_digits();
    if (low < 0xdc00 || low > 0xdfff) fail(at_, Fault::string);
    point = 0x10000 + ((point - 0xd800) << 10U) + (low - 0xdc00);
  }
  append_utf8(point, scratch_);
}

std::uint32_t JsonScanner::four_digits() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = taken(), lower = static_cast<char>(c | 0x20);
    if (!is_digit(c) && (lower < 'a' || lower > 'f')) fail(at_, Fault::string);
    value = value * 16 + static_cast<std::uint32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
  }
  return value;
}

}  // namespace gpubench
