#include "tests/harness/report/format_readers.h"

#include <algorithm>
#include <stdexcept>

namespace gpubench {
namespace {

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == ':';
}

class Reader {
 public:
  explicit Reader(std::string_view document) : rest_(document) {}

  XmlElement document() {
    if (rest_.starts_with("<?xml ")) rest_.remove_prefix(rest_.find("?>") + 2);
    blanks();
    XmlElement root = element();
    blanks();
    if (!rest_.empty()) throw std::runtime_error("something after the root: " + std::string(rest_.substr(0, 40)));
    return root;
  }

 private:
  void expect(std::string_view word) {
    if (!rest_.starts_with(word))
      throw std::runtime_error("expected " + std::string(word) + " at: " + std::string(rest_.substr(0, 40)));
    rest_.remove_prefix(word.size());
  }
  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  std::string name() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), name_character);
    std::string word(rest_.begin(), end);
    if (word.empty()) throw std::runtime_error("a name was expected at: " + std::string(rest_.substr(0, 40)));
    rest_.remove_prefix(word.size());
    return word;
  }
  // XML 1.0, production 2 (Char), of bytes: the only control character is newline.
  std::string text_until(char end) {
    std::string text;
    while (!rest_.empty() && rest_.front() != end) {
      const char c = rest_.front();
      if (c == '<' || (static_cast<unsigned char>(c) < 0x20 && (c != '\n' || end == '"')))
        throw std::runtime_error("a character that may not stand in text at: " + std::string(rest_.substr(0, 40)));
      if (c == '&') {
        text += entity();
      } else {
        text += c;
        rest_.remove_prefix(1);
      }
    }
    if (rest_.empty()) throw std::runtime_error("the document ends in text");
    return text;
  }
  char entity() {
    for (const auto& [word, c] : {std::pair{"&amp;", '&'}, std::pair{"&lt;", '<'}, std::pair{"&gt;", '>'},
                                  std::pair{"&quot;", '"'}, std::pair{"&apos;", '\''}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(std::string_view(word).size());
      return c;
    }
    throw std::runtime_error("a bare & at: " + std::string(rest_.substr(0, 40)));
  }
  XmlElement element() {
    XmlElement e;
    expect("<");
    e.name = name();
    while (rest_.starts_with(" ")) {
      expect(" ");
      const std::string key = name();
      expect("=\"");
      if (!e.attributes.emplace(key, text_until('"')).second) throw std::runtime_error(key + " stands twice");
      expect("\"");
    }
    if (rest_.starts_with("/>")) {
      expect("/>");
      return e;
    }
    expect(">");
    while (true) {
      e.text += text_until('<');
      if (rest_.starts_with("</")) break;
      e.children.push_back(element());
    }
    expect("</" + e.name + ">");
    return e;
  }

  std::string_view rest_;
};

void add_paths(const XmlElement& e, const std::string& above, std::vector<std::string>& paths) {
  const std::string path = above + "/" + e.name;
  paths.push_back(path);
  for (const XmlElement& child : e.children) add_paths(child, path, paths);
}

}  // namespace

std::vector<const XmlElement*> XmlElement::all(std::string_view child) const {
  std::vector<const XmlElement*> found;
  for (const XmlElement& one : children) {
    if (one.name == child) found.push_back(&one);
  }
  return found;
}

std::vector<std::string> XmlElement::paths() const {
  std::vector<std::string> paths;
  add_paths(*this, "", paths);
  return paths;
}

std::optional<XmlElement> read_xml(std::string_view document, std::string& problem) {
  try {
    return Reader(document).document();
  } catch (const std::exception& e) {
    problem = e.what();
    return std::nullopt;
  }
}

}  // namespace gpubench
