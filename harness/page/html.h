// Builds HTML: our own markup as it stands, everybody else's text escaped. There is no third way in.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "harness/report/escape.h"

namespace gpubench::page {

class Html {
 public:
  /// Markup of our own: a literal, or what another Html or the drawing of a chart made.
  Html& raw(std::string_view markup) {
    text_ += markup;
    return *this;
  }
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
      if ((text[i] == '/' || text[i] == ',') && i + 1 < text.size() && text[i + 1] != ' ') text_ += "<wbr>";
    }
    return *this;
  }
  /// <name>untrusted</name>; `attributes` are markup of our own.
  Html& element(std::string_view name, std::string_view untrusted, std::string_view attributes = "") {
    raw("<").raw(name).raw(attributes.empty() ? "" : " ").raw(attributes).raw(">");
    return text(untrusted).raw("</").raw(name).raw(">");
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace gpubench::page
