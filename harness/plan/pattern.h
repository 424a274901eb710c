// A regular expression of --filter, --exclude and `list`, searched in case ids.
//
// RE2, not std::regex: filters come from outside, and std::regex recurses (20,000 parentheses overflow the stack) and
// backtracks ("(.+)+Z" takes for ever). RE2's time is linear in the id, its depth and memory are bounded. Its syntax is
// that of std::regex but for what cannot be searched for in linear time: references back, and looking ahead.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace gpubench {

class Pattern {
 public:
  /// Throws UsageError for what is no regular expression, with what is wrong, where, and an example. `what`: what the
  /// user calls it, "filter".
  Pattern(std::string_view what, const std::string& text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// Whether it matches anywhere in `id`.
  [[nodiscard]] bool found_in(std::string_view id) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
};

/// One each, in order. Throws as Pattern().
[[nodiscard]] std::vector<Pattern> patterns(std::string_view what, const std::vector<std::string>& texts);

/// Whether any of them is found.
[[nodiscard]] bool any_found(const std::vector<Pattern>& patterns, std::string_view id);

}  // namespace gpubench
