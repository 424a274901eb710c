#include "harness/plan/names.h"

#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

/// Characters of a pattern in an error message: patterns can be arbitrarily long.
constexpr std::size_t shown = 60;

std::string shortened(const std::string& text) {
  return text.size() <= shown ? text : text.substr(0, shown) + "... (" + std::to_string(text.size()) + " characters)";
}

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_encoding(
      re2::RE2::Options::EncodingLatin1);  // any byte is valid: ids are ASCII, filters are arbitrary bytes
  options.set_log_errors(false);
  return options;
}

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

// RE2 reports the invalid part. If that is the whole pattern, only an unpaired parenthesis has a position.
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
                   "; expected a pattern that is searched in case ids, such as 'gemm/.*/bf16' or '^memory/copy'");
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

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between prefixes of a and of b.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string nearest(std::string_view wanted, std::span<const std::string> known) {
  constexpr std::size_t longest_slip = 300;  // the comparison with longer ones would take minutes
  if (wanted.size() > longest_slip) return "";
  const std::size_t forgiven = wanted.size() <= 2 ? 1 : std::max<std::size_t>(2, wanted.size() / 3);
  std::size_t best = forgiven + 1;
  std::string result;
  for (const std::string& candidate : known) {
    const bool begun = (wanted.size() >= 2 && candidate.starts_with(wanted)) ||
                       (candidate.size() >= 4 && wanted.starts_with(candidate));
    const std::size_t distance =
        begun ? std::min<std::size_t>(edit_distance(wanted, candidate), 1) : edit_distance(wanted, candidate);
    if (distance < best) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string> known) {
  const std::string candidate = nearest(wanted, known);
  return candidate.empty() ? "" : "; did you mean '" + candidate + "'?";
}

}  // namespace gpubench
