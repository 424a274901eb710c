// Builds HTML from trusted markup and escaped text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/text/visible_text.h"

namespace gpubench::page {

struct TableColumn {
  std::string title;
  bool number = false;  ///< right-aligned with tabular figures, sorted by value
  std::string unit{};   ///< unit after the prefix in its cells ("FLOP/s"), so that 2 G sorts after 10 M
};

struct DataTable {
  std::string title;
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note{};  ///< facts common to all rows: "all: dilation=1, groups=1"
};

class Html {
 public:
  /// Trusted markup: a literal, or the output of Html or of a chart.
  Html& raw(std::string_view markup) {
    text_ += markup;
    return *this;
  }
  Html& raw(Html made) { return raw(made.text_); }
  /// Untrusted text as content, or as an attribute's value in double quotes.
  Html& text(std::string_view untrusted) {
    text_ += xml_text(untrusted);
    return *this;
  }
  /// As text(), for case ids and paths: allows line breaks after separators.
  Html& id(std::string_view untrusted) {
    const std::string text = xml_text(untrusted);
    for (std::size_t i = 0; i < text.size(); ++i) {
      text_ += text[i];
      const bool separator = text[i] == '/' || text[i] == ',';
      // Before a name; not in "1,024", nor at the end of a clause.
      if (separator && i + 1 < text.size() && text[i + 1] >= 'a' && text[i + 1] <= 'z') text_ += "<wbr>";
    }
    return *this;
  }
  /// <name>untrusted</name>; `attributes` are trusted markup.
  Html& element(std::string_view name, std::string_view untrusted, std::string_view attributes = "") {
    raw("<").raw(name).raw(attributes.empty() ? "" : " ").raw(attributes).raw(">");
    return text(untrusted).raw("</").raw(name).raw(">");
  }

  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// In a box that scrolls sideways on narrow screens and takes the keyboard focus. `label`: of the box, for screen
/// readers; untrusted, as cells are.
void add_table(Html& html, const DataTable& table, std::string_view label);

/// As add_table(), collapsed to a line with the number of rows.
void add_folded_table(Html& html, const DataTable& table, std::string_view label);

[[nodiscard]] std::string_view style_sheet();
/// Without "</script".
[[nodiscard]] std::string_view script();
/// "sha256-..." of the bytes of script(), for the content security policy.
[[nodiscard]] std::string_view script_hash();

}  // namespace gpubench::page
