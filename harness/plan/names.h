// Names as users type them: patterns that choose cases, and the known name that a mistaken one comes closest to.
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
/// RE2, not std::regex: filters come from outside, and std::regex recurses (20,000 parentheses overflow the stack) and
/// backtracks ("(.+)+Z" never ends). RE2's time is linear in the id, its depth and memory are bounded. Its syntax is
/// that of std::regex without what cannot be searched in linear time: back-references and look-ahead.
class Pattern {
 public:
  /// Throws UsageError where the text is not a regular expression, with what is wrong, where, and an example. `what`:
  /// what the user calls it, "filter".
  Pattern(std::string_view what, const std::string& text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// Whether it matches anywhere in `id`.
  [[nodiscard]] bool found_in(std::string_view id) const;

 private:
  std::unique_ptr<re2::RE2> compiled_;
};

/// One pattern per text, in order. Throws as Pattern() does.
[[nodiscard]] std::vector<Pattern> patterns(std::string_view what, const std::vector<std::string>& texts);

/// Whether any of them is found.
[[nodiscard]] bool any_found(const std::vector<Pattern>& patterns, std::string_view id);

[[nodiscard]] bool contains(std::span<const std::string> names, std::string_view name);

/// Letters to insert, delete, replace or swap with their neighbour to get from `a` to `b` (optimal string alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of the known names that is closest to `wanted`; empty where none is close (more than a third of its
/// letters wrong, but two are always forgiven in names longer than two). A known name that `wanted` begins counts as
/// close, and so does one of at least four letters that begins `wanted`.
[[nodiscard]] std::string nearest(std::string_view wanted, std::span<const std::string> known);

/// "; did you mean 'gemm'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view wanted, std::span<const std::string> known);

}  // namespace gpubench
