// A strict reader of the XML that gpubench writes: elements, attributes in double quotes, text, the five named
// entities. Whatever else XML has (comments, CDATA, DTDs, processing instructions but the declaration) is refused: our
// writers use none of it, so if it is there, somebody's text became markup.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

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

}  // namespace gpubench
