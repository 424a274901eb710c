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

std::string TextTable::text(int indent) const {
  std::vector<int> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    int width = columns(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, columns(row[c]));
    widths.push_back(width);
  }
  std::string all;
  const auto line = [&](const auto& cell) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      text += (c == 0 ? "" : "  ") + padded(cell(c), widths[c], columns_[c].align);
    }
    all += without_trailing_blanks(std::move(text)) + "\n";
  };
  const bool titled = std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.title.empty(); });
  if (titled) line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
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

}  // namespace gpubench
