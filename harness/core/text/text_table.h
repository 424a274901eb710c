// Plain-text tables: minimal column widths, numbers right-aligned, colour added after padding.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// Terminal output. Words carry the meaning; colour is redundant.
struct ConsoleStyle {
  bool color = false;
  bool utf8 = false;   ///< false: ASCII only ("+-" for the plus-minus sign)
  bool quiet = false;  ///< only failures and the summary
  int verbosity = 0;   ///< 1: implementation, coverage and the ops of composite steps
  int width = 0;       ///< columns of a line; 0: no limit
};

/// `widest` columns, or the terminal's if it has fewer.
[[nodiscard]] int width_up_to(int widest, const ConsoleStyle& style);

enum class Tone { plain, good, bad, doubtful, faint };

[[nodiscard]] std::string paint(std::string_view text, Tone tone, const ConsoleStyle& style);

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

/// Columns with these titles; a trailing ">" aligns to the right and is dropped.
[[nodiscard]] inline std::vector<Column> columns_titled(std::initializer_list<std::string_view> titles) {
  std::vector<Column> columns;
  for (const std::string_view title : titles)
    columns.push_back(title.ends_with('>') ? Column{std::string(title.substr(0, title.size() - 1)), Align::right}
                                           : Column{std::string(title)});
  return columns;
}

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column; untrusted text is made visible. Missing cells are empty. The first cell gets the colour of
  /// `tone`; `below`, if not empty, is printed under the row.
  void add(std::vector<std::string> cells, Tone tone = Tone::plain, std::string_view below = {});
  /// Header and rows, each line indented by `indent` spaces; no trailing blanks. If `style.width` is not 0, a last
  /// column that would exceed it is broken at blanks into lines of at least 24 columns. If that is still too wide, each
  /// row becomes its first cell, and below it "title cell" of the other nonempty cells, as many per line as fit.
  [[nodiscard]] std::string text(const ConsoleStyle& style = {}, int indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Tone tone = Tone::plain;
    std::string below;
  };
  [[nodiscard]] int min_last_column() const;
  [[nodiscard]] std::string list(const ConsoleStyle& style, int indent) const;
  [[nodiscard]] std::string under(const Row& row, const ConsoleStyle& style, int indent) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// `text` broken at blanks into lines that end at column `width`; the first starts at column `indent`, the others get
/// `indent` blanks. Longer words are not broken.
[[nodiscard]] std::string wrap(std::string_view text, int width, int indent);

/// `text` unchanged if it ends by column `width` or `width` is 0; else wrap()ped.
[[nodiscard]] std::string fitted(std::string_view text, int width, int indent);

/// `text`, cut with an ellipsis beyond `most` columns.
[[nodiscard]] std::string clipped(std::string_view text, int most, const ConsoleStyle& style);

[[nodiscard]] std::string joined(std::span<const std::string> words, std::string_view between = ", ");

/// The parts between separators, with empty ones. The text must outlive them.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` padded with blanks, before or after it, to `width` columns.
[[nodiscard]] std::string padded(std::string_view text, int width, Align align = Align::left);

}  // namespace gpubench
