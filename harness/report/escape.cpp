#include "harness/report/escape.h"

#include "harness/report/visible_text.h"

namespace gpubench {
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

// Numeric entities: a backslash does not protect a pipe in every renderer, nor an @ or a bare address in any. GitHub
// looks for mentions and numbers of issues in what is left after that, so a space of no width follows their signs.
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

// The format could hold every character but quotes and line ends; people look at it on terminals, though.
std::string prometheus_label(std::string_view text) {
  return replaced(text, [](char c) { return c == '\\' ? "\\\\" : c == '"' ? "\\\"" : ""; });
}

}  // namespace gpubench
