#include "harness/core/text/text_table.h"

#include <algorithm>
#include <sstream>

#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string painted_word(const std::string& cell, Tone tone, const ConsoleStyle& style) {
  const std::size_t first = cell.find_first_not_of(' ');
  if (tone == Tone::plain || first == std::string::npos) return cell;
  const std::size_t end = cell.find_last_not_of(' ') + 1;
  return cell.substr(0, first) + paint(cell.substr(first, end - first), tone, style) + cell.substr(end);
}

}  // namespace

int width_up_to(int widest, const ConsoleStyle& style) {
  return style.width == 0 ? widest : std::min(style.width, widest);
}

std::string paint(std::string_view text, Tone tone, const ConsoleStyle& style) {
  if (!style.color || tone == Tone::plain) return std::string(text);
  const std::string_view start = tone == Tone::good       ? "\x1b[32m"
                                 : tone == Tone::bad      ? "\x1b[1;31m"
                                 : tone == Tone::doubtful ? "\x1b[33m"
                                                          : "\x1b[2m";
  return std::string(start) + std::string(text) + "\x1b[0m";
}

std::string joined(std::span<const std::string> words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string padded(std::string_view text, int width, Align align) {
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
  return align == Align::left ? std::string(text) + blanks : blanks + std::string(text);
}

void TextTable::add(std::vector<std::string> cells, Tone tone, std::string_view below) {
  for (std::string& cell : cells) cell = visible(cell);
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), tone, visible(below)});
}

std::string TextTable::text(const ConsoleStyle& style, int indent) const {
  std::vector<int> widths;
  int start = indent;  // of the last column
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int widest = columns(columns_[c].title);
    for (const Row& row : rows_) widest = std::max(widest, columns(row.cells[c]));
    widths.push_back(widest);
    if (c + 1 < columns_.size()) start += widest + 2;
  }
  const bool breaks = style.width > 0 && start + widths.back() > style.width;
  if (breaks && start + min_last_column() > style.width) return list(style, indent);
  if (breaks) widths.back() = 0;
  std::string all;
  const auto add_line = [&](const std::vector<std::string>& cells, Tone tone) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool last = c + 1 == columns_.size();
      const std::string cell =
          padded(breaks && last ? wrap(cells[c], style.width, start) : cells[c], widths[c], columns_[c].align);
      text += c == 0 ? painted_word(cell, tone, style) : "  " + cell;
    }
    all += without_trailing_blanks(std::move(text)) + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); }))
    add_line(titles, Tone::plain);
  for (const Row& row : rows_) {
    add_line(row.cells, row.tone);
    all += under(row, style, indent);
  }
  return all;
}

int TextTable::min_last_column() const {
  int least = 24;
  for (const Row& row : rows_) {
    std::istringstream words(row.cells.back());
    for (std::string word; words >> word;) least = std::max(least, columns(word));
  }
  return least;
}

std::string TextTable::list(const ConsoleStyle& style, int indent) const {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string all;
  for (const Row& row : rows_) {
    all += margin + paint(row.cells.front(), row.tone, style) + "\n";
    std::string line;
    const auto end_line = [&] {
      if (!line.empty()) all += margin + "  " + fitted(line, style.width, indent + 2) + "\n";
      line.clear();
    };
    for (std::size_t c = 1; c < columns_.size(); ++c) {
      if (row.cells[c].empty()) continue;
      const std::string named = columns_[c].title + (columns_[c].title.empty() ? "" : " ") + row.cells[c];
      if (!line.empty() && indent + 2 + columns(line) + 2 + columns(named) > style.width) end_line();
      line += (line.empty() ? "" : "  ") + named;
    }
    end_line();
    all += under(row, style, indent);
  }
  return all;
}

std::string TextTable::under(const Row& row, const ConsoleStyle& style, int indent) const {
  if (row.below.empty()) return "";
  const int begin = indent + 4;
  return std::string(static_cast<std::size_t>(begin), ' ') +
         paint(fitted(row.below, style.width, begin), Tone::faint, style) + "\n";
}

std::string clipped(std::string_view text, int most, const ConsoleStyle& style) {
  if (columns(text) <= most) return std::string(text);
  const std::string_view ellipsis = style.utf8 ? "…" : "...";
  return std::string(first_columns(text, std::max(0, most - columns(ellipsis)))) + std::string(ellipsis);
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string out;
  int column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const bool first = column == indent;
    if (!first && column + 1 + columns(word) > width) {
      out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns(word);
  }
  return out;
}

std::string fitted(std::string_view text, int width, int indent) {
  return width == 0 || indent + columns(text) <= width ? std::string(text) : wrap(text, width, indent);
}

}  // namespace gpubench
