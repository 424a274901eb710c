// Patterns that select cases, and suggestions for misspelled names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace gpubench {

/// A regular expression of --filter, --exclude and `list`, searched in case ids.
///
/// RE2, not std::regex: on untrusted filters std::regex overflows the stack (20,000 parentheses) and backtracks without
/// end ("(.+)+Z"). RE2 takes linear time and bounded memory; it lacks back-references and look-ahead.
class Pattern {
 public:
  /// `what`: the user's word for it, "filter". Throws UsageError for an invalid expression, with position and example.
  Pattern(std::string_view what, const std::string& text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  [[nodiscard]] bool found_in(std::string_view id) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
};

[[nodiscard]] std::vector<Pattern> patterns(std::string_view what, const std::vector<std::string>& texts);

[[nodiscard]] bool any_found(const std::vector<Pattern>& patterns, std::string_view id);

[[nodiscard]] bool contains(std::span<const std::string> names, std::string_view name);

/// Number of insertions, deletions, replacements and swaps of adjacent letters (optimal string alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known name closest to `wanted`, the first of equals; empty if none is within a third of its letters (at least
/// 2, or 1 for up to two letters). Distance 1 at most: a name that begins with `wanted` (2 letters or more), or with
/// which `wanted` begins (4 letters or more).
[[nodiscard]] std::string nearest(std::string_view wanted, std::span<const std::string> known);

/// "; did you mean 'gemm'?", or empty.
[[nodiscard]] std::string did_you_mean(std::string_view wanted, std::span<const std::string> known);

}  // namespace gpubench
