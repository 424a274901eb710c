// Fuzz target: any text of a driver, library or file stays text in a terminal, log, HTML, XML, Markdown, CSV and
// Prometheus' format: one line of UTF-8 without characters that have a meaning there.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "harness/core/text/visible_text.h"

using namespace gpubench;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Well-formed UTF-8 (Unicode 15, table 3-7) without C0, DEL and C1.
bool is_one_plain_line(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned first = byte(at);
    if (first < 0x80) {
      if (first < 0x20 || first == 0x7f) return false;
      ++at;
      continue;
    }
    const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                               : first >= 0xe0 && first <= 0xef ? 3
                               : first >= 0xf0 && first <= 0xf4 ? 4
                                                                : 0;
    if (length == 0) return false;
    for (std::size_t i = 1; i < length; ++i) {
      if (byte(at + i) < 0x80 || byte(at + i) > 0xbf) return false;
    }
    const unsigned second = byte(at + 1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f) || (first == 0xc2 && second < 0xa0))
      return false;
    at += length;
  }
  return true;
}

bool has_any(std::string_view text, std::string_view signs) { return text.find_first_of(signs) != text.npos; }

// Valid cell of RFC 4180: quoted as a whole with doubled quotes, or without characters that need quotes.
bool is_one_cell(std::string_view cell) {
  if (!cell.starts_with('"')) return !has_any(cell, ",\"");
  if (cell.size() < 2 || !cell.ends_with('"')) return false;
  cell = cell.substr(1, cell.size() - 2);
  for (std::size_t at = cell.find('"'); at != cell.npos; at = cell.find('"', at + 2)) {
    if (at + 1 >= cell.size() || cell[at + 1] != '"') return false;
  }
  return true;
}

bool is_label_value(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"' || text[at] == '\n') return false;
    if (text[at] != '\\') continue;
    if (++at == text.size() || std::string_view("\\\"n").find(text[at]) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  require(is_one_plain_line(printable(text)));
  require(is_one_plain_line(visible(text)) && visible(text).find("##[") == std::string::npos);
  require(is_one_plain_line(xml_text(text)) && !has_any(xml_text(text), "<>\"'"));
  require(is_one_plain_line(markdown_cell(text)) && !has_any(markdown_cell(text), "<>|*_`~[]!\\@:"));
  require(is_one_plain_line(github_message(text)));
  require(is_one_plain_line(github_property(text)) && !has_any(github_property(text), ":,"));
  const std::string cell = csv_cell(text);
  require(is_one_plain_line(cell) && is_one_cell(cell));
  require(!has_any(std::string_view(cell).substr(cell.starts_with('"') ? 1 : 0, 1), "=+-@"));
  require(is_label_value(prometheus_label(text)));
  require(columns(first_columns(printable(text), 20)) <= 20);
  require(shortened(printable(text), 20).size() <= 20 && is_one_plain_line(shortened(printable(text), 20)));
  return 0;
}
