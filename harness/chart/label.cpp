#include "harness/chart/label.h"

#include <algorithm>

#include "harness/report/visible_text.h"

namespace gpubench::chart {
namespace {

constexpr std::string_view ellipsis = "\u2026";

std::size_t bytes_of_first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return std::min(bytes, text.size());
}

// In parts of the font size. From Arial's metrics, rounded up; scripts of East Asia take a full square.
double width_of(std::string_view character) {
  if (character.size() >= 3) return character == ellipsis ? 1.0 : 1.05;
  if (character.size() == 2) return 0.75;
  const char c = character.front();
  if (std::string_view("ijl.,:;'|!").find(c) != std::string_view::npos) return 0.29;
  if (std::string_view(" ftr()[]/\\I-\"`").find(c) != std::string_view::npos) return 0.36;
  if (std::string_view("mMW@%w").find(c) != std::string_view::npos) return 0.9;
  if (c >= 'A' && c <= 'Z') return 0.72;
  return 0.585;
}

// Bytes of the longest start of `text` that is at most so wide.
std::size_t fitting_bytes(std::string_view text, double width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const std::string_view next = text.substr(bytes, bytes_of_first(text.substr(bytes)));
    width -= width_of(next);
    if (width < 0.0) break;
    bytes += next.size();
  }
  return bytes;
}

std::string shortened_visible(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  const std::size_t bytes = fitting_bytes(text, width / font_size - width_of(ellipsis));
  return std::string(text.substr(0, bytes)) + std::string(ellipsis);
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  double width = 0.0;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_first(text);
    width += width_of(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return width * font_size;
}

std::string shortened(std::string_view text, double width, double font_size) {
  return shortened_visible(visible(text), width, font_size);
}

std::string cut(std::string_view text, std::size_t characters) {
  const std::string shown = visible(text);
  std::size_t bytes = 0;
  for (std::size_t count = 0; bytes < shown.size(); ++count) {
    if (count + 1 == characters && columns(std::string_view(shown).substr(bytes)) > 1)
      return shown.substr(0, bytes) + std::string(ellipsis);
    bytes += bytes_of_first(std::string_view(shown).substr(bytes));
  }
  return shown;
}

std::vector<std::string> wrapped(std::string_view text, double width, double font_size, int lines) {
  const std::string shown = visible(text);
  std::string_view rest = shown;
  std::vector<std::string> found;
  while (!rest.empty()) {
    const std::size_t fit = fitting_bytes(rest, width / font_size);
    if (fit == rest.size() || static_cast<int>(found.size()) + 1 == lines || fit == 0) {
      found.push_back(shortened_visible(rest, width, font_size));
      break;
    }
    const std::size_t after = rest.substr(0, fit).find_last_of(" /,;_");
    const std::size_t end = after == std::string_view::npos ? fit : after + 1;
    found.emplace_back(rest.substr(0, end));
    if (found.back().back() == ' ') found.back().pop_back();
    rest.remove_prefix(end);
  }
  return found;
}

}  // namespace gpubench::chart
