#include "harness/core/text/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gpubench {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// Decodes one code point as Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  std::uint32_t value = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest[length] || value > 0x10ffff || surrogate) return {};
  return {value, length, true};
}

bool within(std::uint32_t c, std::uint32_t first, std::uint32_t last) { return c >= first && c <= last; }

// Unicode 15: C0, DEL and C1; Bidi_Control; line and paragraph separators.
bool steers(std::uint32_t c) {
  return c < 0x20 || within(c, 0x7f, 0x9f) || c == 0x061c || within(c, 0x200e, 0x200f) || within(c, 0x2028, 0x202e) ||
         within(c, 0x2066, 0x2069);
}

// The byte order mark, noncharacters (XML 1.0 excludes U+FFFE and U+FFFF too) and tags, which can hide sentences.
bool hides(std::uint32_t c) {
  return c == 0xfeff || (c & 0xfffeU) == 0xfffe || within(c, 0xfdd0, 0xfdef) || within(c, 0xe0000, 0xe007f);
}

// Whether a name may end in this character, before `::`: `cutlass::gemm`, `std::vector<int>::size`.
bool is_word_end(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '>' || c == ')';
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode(text);
    const std::string_view bytes = text.substr(0, c.bytes);
    if (c.valid && !steers(c.value) && !hides(c.value)) {
      shown += bytes;
    } else {
      for (const char b : bytes) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(b));
    }
    text.remove_prefix(c.bytes);
  }
  return shown;
}

std::string visible(std::string_view text) {
  const std::string line = printable(text);
  std::string shown;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool command = line.compare(i, 2, "::") == 0 && (i == 0 || !is_word_end(line[i - 1]));
    const bool old_command = line[i] == '[' && i >= 2 && line.compare(i - 2, 2, "##") == 0;
    shown +=
        command || old_command ? fmt::format("\\x{:02x}", static_cast<unsigned>(line[i])) : std::string(1, line[i]);
  }
  return shown;
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view dots = "...";
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes < dots.size() ? 0 : max_bytes - dots.size();
  for (int back = 0; back < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U; ++back) --end;
  return std::string(text.substr(0, end)) + std::string(dots.substr(0, std::min(max_bytes, dots.size())));
}

int columns(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0U) != 0x80U ? 1 : 0;
  return count;
}

std::string_view first_columns(std::string_view text, int most) {
  std::size_t end = 0;
  for (int count = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80U && ++count > most) break;
  }
  return text.substr(0, end);
}

namespace {

template <class Replacement>
std::string replaced(std::string_view text, Replacement replacement) {
  std::string out;
  for (const char c : printable(text)) {
    const std::string_view other = replacement(c);
    if (other.empty()) {
      out += c;
    } else {
      out += other;
    }
  }
  return out;
}

std::string_view github_escape(char c) { return c == '%' ? "%25" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : ""; }

}  // namespace

std::string xml_text(std::string_view text) {
  return replaced(text, [](char c) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      case '\'': return "&apos;";
      default: return "";
    }
  });
}

std::string xml_lines(std::string_view text) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines += xml_text(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

// Numeric entities: not every renderer honours a backslash before a pipe, and none before an @ or a bare address.
// GitHub then looks for mentions and issue numbers, so a zero-width space follows their signs.
std::string markdown_cell(std::string_view text) {
  std::string cell = replaced(text, [](char c) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '|': return "&#124;";
      case '*': return "&#42;";
      case '_': return "&#95;";
      case '`': return "&#96;";
      case '~': return "&#126;";
      case '[': return "&#91;";
      case ']': return "&#93;";
      case '!': return "&#33;";
      case '\\': return "&#92;";
      case '@': return "&#64;&#8203;";
      case '#': return "&#35;&#8203;";
      case ':': return "&#58;";
      default: return "";
    }
  });
  constexpr std::string_view address = "www.";  // a link without a scheme
  for (std::size_t at = cell.find(address); at != std::string::npos; at = cell.find(address, at + 1))
    cell.replace(at + address.size() - 1, 1, "&#46;");
  return cell;
}

std::string github_message(std::string_view text) { return replaced(text, github_escape); }

std::string github_property(std::string_view text) {
  return replaced(text, [](char c) { return c == ':' ? "%3A" : c == ',' ? "%2C" : github_escape(c); });
}

std::string csv_cell(std::string_view text) {
  std::string cell = printable(text);
  if (!cell.empty() && std::string_view("=+-@'").find(cell.front()) != std::string_view::npos) cell.insert(0, "'");
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// The format allows every character except quotes and line ends, but people read it on terminals.
std::string prometheus_label(std::string_view text) {
  return replaced(text, [](char c) { return c == '\\' ? "\\\\" : c == '"' ? "\\\"" : ""; });
}

}  // namespace gpubench
