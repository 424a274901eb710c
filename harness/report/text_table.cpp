#include "harness/report/text_table.h"

#include <algorithm>

#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

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

std::string padded(std::string_view text, int width, Align align) {
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
  return align == Align::left ? std::string(text) + blanks : blanks + std::string(text);
}

void TextTable::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = visible(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(int indent, int width) const {
  constexpr int least_last_column = 24;
  std::vector<int> widths;
  int start = indent;  // of the last column
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int widest = columns(columns_[c].title);
    for (const auto& row : rows_) widest = std::max(widest, columns(row[c]));
    widths.push_back(widest);
    if (c + 1 < columns_.size()) start += widest + 2;
  }
  const bool breaks = width > 0 && start + widths.back() > width;
  if (breaks) widths.back() = 0;
  const int end = std::max(width, start + least_last_column);
  std::string all;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool last = c + 1 == columns_.size();
      text += (c == 0 ? "" : "  ") +
              padded(breaks && last ? wrap(cells[c], end, start) : cells[c], widths[c], columns_[c].align);
    }
    all += without_trailing_blanks(std::move(text)) + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); })) line(titles);
  for (const auto& row : rows_) line(row);
  return all;
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
