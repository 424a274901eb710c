// HTML as gpubench writes it, read strictly: tags with attributes in double quotes, text without a bare < or &.
#pragma once

#include <string>
#include <vector>

namespace gpubench {

struct HtmlContent {
  std::vector<std::string>
      tags;          ///< in order: "a href class", "/a"; <wbr>, which ids have after their slashes, left out
  std::string text;  ///< text and values of attributes, entities read, a line for each piece
};

/// Throws std::runtime_error where something stands in it that we do not write. What <style> and <script> hold is
/// skipped.
[[nodiscard]] HtmlContent read_html(const std::string& document);

}  // namespace gpubench
