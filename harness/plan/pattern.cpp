#include "harness/plan/pattern.h"

#include <re2/re2.h>

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {
namespace {

/// Of what an error message shows of a pattern or a part of it: a mistake can be a hundred thousand characters long.
constexpr std::size_t shown = 60;

std::string shortened(const std::string& text) {
  return text.size() <= shown ? text : text.substr(0, shown) + "... (" + std::to_string(text.size()) + " characters)";
}

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_encoding(
      re2::RE2::Options::EncodingLatin1);  // a byte is a character: ids are ASCII, filters are anything
  options.set_log_errors(false);
  return options;
}

// Where the parenthesis stands that has no other; none where all have.
std::size_t lone_parenthesis(const std::string& text) {
  std::vector<std::size_t> open;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (in_class) {
      in_class = text[i] != ']';
    } else if (text[i] == '[') {
      in_class = true;
    } else if (text[i] == '(') {
      open.push_back(i);
    } else if (text[i] == ')') {
      if (open.empty()) return i;
      open.pop_back();
    }
  }
  return open.empty() ? std::string::npos : open.back();
}

// RE2 names the part that is wrong; where that is the whole pattern, only a parenthesis can be pointed at.
std::string place(const re2::RE2& compiled) {
  const std::string& part = compiled.error_arg();
  const std::string& text = compiled.pattern();
  const std::size_t at = part.empty() || part == text ? lone_parenthesis(text) : text.find(part);
  return at == std::string::npos ? "" : " at character " + std::to_string(at + 1);
}

}  // namespace

Pattern::Pattern(std::string_view what, const std::string& text)
    : compiled_(std::make_unique<re2::RE2>(text, options())) {
  if (compiled_->ok()) return;
  throw UsageError(std::string(what) + " '" + shortened(text) +
                   "' is not a regular expression: " + shortened(compiled_->error()) + place(*compiled_) +
                   "; expected a pattern to search for in ids, such as 'gemm/.*/bf16' or '^memory/copy'");
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

bool Pattern::found_in(std::string_view id) const {
  return compiled_->Match({id.data(), id.size()}, 0, id.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

std::vector<Pattern> patterns(std::string_view what, const std::vector<std::string>& texts) {
  std::vector<Pattern> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.emplace_back(what, text);
  return all;
}

bool any_found(const std::vector<Pattern>& patterns, std::string_view id) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& one) { return one.found_in(id); });
}

}  // namespace gpubench
