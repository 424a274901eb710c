// Strict readers of the formats that gpubench writes. What our writers never use is refused: where it is there,
// somebody's text became markup.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// Of XML: elements, attributes in double quotes, text, the five named entities; no comments, CDATA, DTDs or processing
/// instructions but the declaration.
struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< of the element itself, without that of its children
  std::vector<XmlElement> children;

  /// The children of that name.
  [[nodiscard]] std::vector<const XmlElement*> all(std::string_view child) const;
  /// "testsuites/testsuite/testcase ...": every element's path, in order.
  [[nodiscard]] std::vector<std::string> paths() const;
};

/// The root; or nothing, with why in `problem`.
[[nodiscard]] std::optional<XmlElement> read_xml(std::string_view document, std::string& problem);

/// What xmllint finds wrong in a JUnit document by junit.xsd; "" for nothing.
[[nodiscard]] std::string junit_problem(const std::string& document);

// CSV as RFC 4180, section 2, has it, strictly: CRLF ends each record, a quoted cell doubles its quotes, others have
// none.

using CsvRow = std::vector<std::string>;

/// Throws std::runtime_error for what is no CSV.
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

// HTML as gpubench writes it, read strictly: tags with attributes in double quotes, text without a bare < or &.

struct HtmlContent {
  std::vector<std::string>
      tags;          ///< in order: "a href class", "/a"; <wbr>, which ids have after their slashes, left out
  std::string text;  ///< text and values of attributes, entities read, a line for each piece
};

/// Throws std::runtime_error where something stands in it that we do not write. What <style> and <script> hold is
/// skipped.
[[nodiscard]] HtmlContent read_html(const std::string& document);

}  // namespace gpubench

// Prometheus' text exposition format 0.0.4 as a scraper reads it, written from its documentation. Stricter where we
// promise more: gauges only, no timestamps (node_exporter's textfile collector drops a file that has one), finite
// numbers only.
namespace gpubench::prometheus {

struct Sample {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0.0;
};

/// Every sample of a file. Throws std::runtime_error for whatever would be refused: bad names, labels or escapes, bytes
/// that are not UTF-8, a family without HELP and TYPE before its samples or that stands twice, a series that does, no
/// newline at the end.
[[nodiscard]] std::vector<Sample> samples_of(const std::string& text);

/// Those of one metric.
[[nodiscard]] std::vector<Sample> of_metric(const std::vector<Sample>& samples, const std::string& metric);

}  // namespace gpubench::prometheus
