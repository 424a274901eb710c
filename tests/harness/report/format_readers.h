// Strict readers of the formats that gpubench writes. They refuse syntax that gpubench's writers never use: it would
// come from unescaped text.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// XML: elements, attributes in double quotes, text, the five named entities; no comments, CDATA, DTDs or processing
/// instructions except the declaration.
struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;
  std::vector<XmlElement> children;

  [[nodiscard]] std::vector<const XmlElement*> all(std::string_view child) const;
  /// "testsuites/testsuite/testcase ...": every element's path, in order.
  [[nodiscard]] std::vector<std::string> paths() const;
};

/// The root; or nothing, with the reason in `problem`.
[[nodiscard]] std::optional<XmlElement> read_xml(std::string_view document, std::string& problem);

/// xmllint's errors for a JUnit document by junit.xsd; "" if valid.
[[nodiscard]] std::string junit_problem(const std::string& document);

// Strict CSV (RFC 4180, section 2): CRLF ends each record, a quoted cell doubles its quotes, others have none.

using CsvRow = std::vector<std::string>;

/// Throws std::runtime_error for invalid CSV.
inline std::vector<CsvRow> csv_rows(std::string_view text) {
  std::vector<CsvRow> rows;
  std::size_t at = 0;
  while (at < text.size()) {
    CsvRow row;
    while (true) {
      std::string cell;
      if (at < text.size() && text[at] == '"') {
        for (++at; at < text.size(); ++at) {
          if (text[at] == '"' && (at + 1 >= text.size() || text[at + 1] != '"')) break;
          if (text[at] == '"') ++at;
          cell += text[at];
        }
        if (at >= text.size()) throw std::runtime_error("a quote that never ends");
        ++at;
      } else {
        while (at < text.size() && text[at] != ',' && text[at] != '\r') {
          if (text[at] == '"' || text[at] == '\n') throw std::runtime_error("a bare quote or newline");
          cell += text[at++];
        }
      }
      row.push_back(cell);
      if (at < text.size() && text[at] == ',') {
        ++at;
        continue;
      }
      if (text.substr(at, 2) != "\r\n") throw std::runtime_error("a record without CRLF");
      at += 2;
      break;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// HTML as gpubench writes it: tags with attributes in double quotes, text without a bare < or &.

struct HtmlContent {
  std::vector<std::string> tags;  ///< in order: "a href class", "/a"; without <wbr>
  std::string text;               ///< text and values of attributes, decoded, a line per piece
};

/// Throws std::runtime_error for other syntax. Skips the content of <style> and <script>.
[[nodiscard]] HtmlContent read_html(const std::string& document);

}  // namespace gpubench

// Prometheus' text exposition format 0.0.4, from its documentation, restricted to gpubench's output: gauges only,
// finite numbers, no timestamps (node_exporter's textfile collector drops files with them).
namespace gpubench::prometheus {

struct Sample {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0.0;
};

/// Every sample of a file. Throws std::runtime_error for bad names, labels or escapes, bytes that are not UTF-8, a
/// family without HELP and TYPE before its samples, a repeated family or series, and a missing final newline.
[[nodiscard]] std::vector<Sample> samples_of(const std::string& text);

[[nodiscard]] std::vector<Sample> of_metric(const std::vector<Sample>& samples, const std::string& metric);

}  // namespace gpubench::prometheus
