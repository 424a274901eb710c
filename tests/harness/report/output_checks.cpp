#include "tests/harness/report/sinks.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "harness/report/json.h"

namespace gpubench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Unicode's white space, as .NET trims it.
std::string without_blanks_before(std::string line) {
  static const std::vector<std::string> blanks{" ",
                                               "\t",
                                               "\v",
                                               "\f",
                                               "\r",
                                               "\xc2\x85",
                                               "\xc2\xa0",
                                               "\xe1\x9a\x80",
                                               "\xe2\x80\x80",
                                               "\xe2\x80\x81",
                                               "\xe2\x80\x82",
                                               "\xe2\x80\x83",
                                               "\xe2\x80\x84",
                                               "\xe2\x80\x85",
                                               "\xe2\x80\x86",
                                               "\xe2\x80\x87",
                                               "\xe2\x80\x88",
                                               "\xe2\x80\x89",
                                               "\xe2\x80\x8a",
                                               "\xe2\x80\xa8",
                                               "\xe2\x80\xa9",
                                               "\xe2\x80\xaf",
                                               "\xe2\x81\x9f",
                                               "\xe3\x80\x80"};
  while (true) {
    const auto blank =
        std::find_if(blanks.begin(), blanks.end(), [&line](const std::string& b) { return line.starts_with(b); });
    if (blank == blanks.end()) return line;
    line.erase(0, blank->size());
  }
}

bool is_command(const std::string& line) {
  return without_blanks_before(line).starts_with("::") || line.find("##[") != std::string::npos;
}

// UTF-8 of control characters: C0, DEL, C1, Unicode's Bidi_Control, line and paragraph separators, the byte order mark.
bool steers(std::string_view line) {
  const auto at = [&line](std::size_t i) { return i < line.size() ? static_cast<unsigned char>(line[i]) : 0U; };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const unsigned a = at(i);
    const unsigned b = at(i + 1);
    const unsigned c = at(i + 2);
    if (a < 0x20 || a == 0x7f || (a == 0xc2 && b >= 0x80 && b <= 0x9f) || (a == 0xd8 && b == 0x9c) ||
        (a == 0xe2 && b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae))) ||
        (a == 0xe2 && b == 0x81 && c >= 0xa6 && c <= 0xa9) || (a == 0xef && b == 0xbb && c == 0xbf))
      return true;
  }
  return false;
}

std::string decoded(const std::string& text) {
  return replaced(replaced(replaced(replaced(replaced(text, "%0A", "\n"), "%0D", "\r"), "%3A", ":"), "%2C", ","), "%25",
                  "%");
}

// Markup of Markdown or of GitHub: tags, cells, emphasis, code, links, images, headings, mentions, addresses. Entities
// are text.
std::string markup_of(const std::string& line) {
  std::string markup;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '&') {
      const std::size_t end = line.find_first_not_of("#0123456789abcdefghijklmnopqrstuvwxyz", i + 1);
      if (end != std::string::npos && line[end] == ';') {
        i = end;
        continue;
      }
    }
    if (line[i] == '<') markup += line.substr(i, line.find('>', i) - i);
    if (std::string_view("<>&|*_`~[]!\\@#").find(line[i]) != std::string_view::npos) markup += line[i];
    for (const char* address : {"://", "www."}) {
      if (line.compare(i, std::string_view(address).size(), address) == 0) markup += address;
    }
  }
  return markup;
}

}  // namespace

std::string utf8_problem(const std::string& text) {
  try {
    (void)Json(text).dump();
    return "";
  } catch (const std::exception&) {
    return "bytes that are not UTF-8";
  }
}

std::string without_colors(std::string text) {
  for (const char* color : {"\x1b[32m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"})
    text = replaced(text, color, "");
  return text;
}

std::string terminal_problem(const std::string& output, const std::string& harmless) {
  const std::vector<std::string> lines = lines_of(without_colors(output));
  if (lines.size() != lines_of(harmless).size()) return "another number of lines";
  for (const std::string& line : lines) {
    if (steers(line)) return "it steers: " + line;
    if (is_command(line)) return "a command: " + line;
  }
  return utf8_problem(output);
}

std::string annotations_problem(const std::string& output, const std::string& harmless) {
  static const std::regex ours("::(error|warning) title=[^:,]*::[^\\r]*");
  const std::vector<std::string> lines = lines_of(output);
  if (lines.size() != lines_of(harmless).size()) return "another number of lines";
  for (const std::string& line : lines) {
    if (!std::regex_match(line, ours)) return "not ours: " + line;
  }
  return utf8_problem(output);
}

std::string annotations_read(const std::string& output) {
  std::string text;
  for (const std::string& line : lines_of(output)) text += decoded(line) + "\n";
  return text;
}

std::string markdown_problem(const std::string& output, const std::string& harmless) {
  const std::vector<std::string> lines = lines_of(output);
  const std::vector<std::string> others = lines_of(harmless);
  if (lines.size() != others.size()) return "another number of lines";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (markup_of(lines[i]) != markup_of(others[i])) return "markup: " + lines[i];
    if (steers(lines[i])) return "it steers: " + lines[i];
  }
  return utf8_problem(output);
}

std::string markdown_read(const std::string& output) {
  static const std::regex entity("&#([0-9]+);");
  std::string text = replaced(output, "&#8203;", "");
  std::string read;
  std::smatch match;
  while (std::regex_search(text, match, entity)) {
    read += match.prefix().str() + static_cast<char>(std::stoi(match[1]));
    text = match.suffix();
  }
  read += text;
  for (const auto& [name, c] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) read = replaced(read, name, c);
  return read;
}

}  // namespace gpubench
