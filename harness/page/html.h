// Builds HTML: our own markup unchanged, all other text escaped. There is no third way in.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/text/visible_text.h"

namespace gpubench::page {

/// A column of a data table.
struct TableColumn {
  std::string title;
  bool number = false;  ///< right-aligned, in figures of equal width, and sorted by value
  std::string unit{};   ///< what follows the prefix in its cells ("FLOP/s"), so that 2 G sorts after 10 M
};

/// Rows of cells, one per column.
struct DataTable {
  std::string title;  ///< what the reader opens: "12 cases"
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note{};  ///< what all rows have in common: "all: dilation=1, groups=1"
};

class Html {
 public:
  /// Markup of our own: a literal, or what another Html or the drawing of a chart made.
  Html& raw(std::string_view markup) {
    text_ += markup;
    return *this;
  }
  Html& raw(Html made) { return raw(made.text_); }
  /// Text that may be hostile, as content of an element or as an attribute's value in double quotes.
  Html& text(std::string_view untrusted) {
    text_ += xml_text(untrusted);
    return *this;
  }
  /// The same of a case id or a path, which may be broken into lines after its separators.
  Html& id(std::string_view untrusted) {
    const std::string text = xml_text(untrusted);
    for (std::size_t i = 0; i < text.size(); ++i) {
      text_ += text[i];
      const bool separator = text[i] == '/' || text[i] == ',';
      // A name follows: not in "1,024", nor at the end of a sentence's part.
      if (separator && i + 1 < text.size() && text[i + 1] >= 'a' && text[i + 1] <= 'z') text_ += "<wbr>";
    }
    return *this;
  }
  /// <name>untrusted</name>; `attributes` are markup of our own.
  Html& element(std::string_view name, std::string_view untrusted, std::string_view attributes = "") {
    raw("<").raw(name).raw(attributes.empty() ? "" : " ").raw(attributes).raw(">");
    return text(untrusted).raw("</").raw(name).raw(">");
  }

  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// The table, in a box that scrolls sideways on a narrow screen and can be focused with the keyboard.
/// `label` names the box for screen readers; untrusted, as the cells are.
void add_table(Html& html, const DataTable& table, std::string_view label);

/// The same, collapsed to a line that says how much there is and opens it.
void add_folded_table(Html& html, const DataTable& table, std::string_view label);

[[nodiscard]] std::string_view style_sheet();
/// Holds no "</script".
[[nodiscard]] std::string_view script();
/// "sha256-...", over exactly the bytes of script(): what the content security policy allows.
[[nodiscard]] std::string_view script_hash();

}  // namespace gpubench::page
