// Tables in plain text: columns as wide as their widest cell, numbers to the right, colour added after padding.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// How the words of a terminal are printed. Words carry the meaning; colour only underlines it.
struct ConsoleStyle {
  bool color = false;
  bool utf8 = false;   ///< false: ASCII only ("+-" for the plus-minus sign)
  bool quiet = false;  ///< only what went wrong, and the summary
  int verbosity = 0;   ///< 1: implementation, coverage and the ops of composite steps
  int width = 0;       ///< columns of a line; 0: no limit
};

/// `widest` columns, or the terminal's where it has fewer.
[[nodiscard]] int width_up_to(int widest, const ConsoleStyle& style);

enum class Tone { plain, good, bad, doubtful, faint };

/// `text` in the tone's colour, or as it is where colour is off.
[[nodiscard]] std::string paint(std::string_view text, Tone tone, const ConsoleStyle& style);

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

/// Columns of these titles, without the ">" of those that are aligned to the right.
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

  /// One cell per column; untrusted text is made visible. Missing cells are empty. The first cell is painted in `tone`;
  /// `below`, where there is any, stands under the row.
  void add(std::vector<std::string> cells, Tone tone = Tone::plain, std::string_view below = {});
  /// Header and rows, each line starting with `indent` spaces; no trailing blanks. Where `style.width` is not 0, a last
  /// column that would end beyond it is broken at blanks into lines of at least 24 columns, under one another. Where
  /// even that, or a word of it, is too wide, each row is its first cell, and under it "title cell" of the others that
  /// hold something, as many on a line as have room.
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

/// `text` broken at blanks into lines that end at column `width`; the first is taken to start at column `indent`, the
/// others are given `indent` blanks. Longer words are not broken.
[[nodiscard]] std::string wrap(std::string_view text, int width, int indent);

/// `text` as it is where it ends by column `width` or `width` is 0; else wrap()ped.
[[nodiscard]] std::string fitted(std::string_view text, int width, int indent);

/// `text`, cut with an ellipsis where it takes more than `most` columns.
[[nodiscard]] std::string clipped(std::string_view text, int most, const ConsoleStyle& style);

/// "smoke, quick, standard"
[[nodiscard]] std::string joined(std::span<const std::string> words, std::string_view between = ", ");

/// What is between the separators, empty words too. The text outlives it.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` with blanks added, before it or after it, up to `width` columns.
[[nodiscard]] std::string padded(std::string_view text, int width, Align align = Align::left);

}  // namespace gpubench
