#include "tests/harness/page/chart/sample_charts.h"

#include <set>
#include <vector>

namespace gpubench {
namespace {

class Checker {
 public:
  explicit Checker(std::string_view xml) : xml_(xml) {}

  std::string check() {
    while (at_ < xml_.size() && error_.empty()) {
      if (xml_[at_] == '<') {
        tag();
      } else {
        characters('<');
      }
    }
    if (error_.empty() && !open_.empty()) fail("<" + open_.back() + "> is not closed");
    return error_;
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what + " at byte " + std::to_string(at_);
  }

  char peek() const { return at_ < xml_.size() ? xml_[at_] : '\0'; }

  // Text up to `end`: no "<", a known entity after each "&", only characters of XML 1.0 (section 2.2).
  void characters(char end) {
    for (; at_ < xml_.size() && xml_[at_] != end; ++at_) {
      const auto c = static_cast<unsigned char>(xml_[at_]);
      if (c == '<') return fail("'<' in an attribute");
      if (c < 0x20 && c != '\n') return fail("a control character");
      if (xml_.substr(at_, 3) == "]]>") return fail("']]>' in text");
      if (xml_.substr(at_, 3) == "\xef\xbf\xbe" || xml_.substr(at_, 3) == "\xef\xbf\xbf")
        return fail("a code point that is no character");
      if (c == '&') entity();
    }
  }

  void entity() {
    const auto is_next = [&](std::string_view entity) { return xml_.substr(at_).starts_with(entity); };
    if (!is_next("&amp;") && !is_next("&lt;") && !is_next("&gt;") && !is_next("&quot;") && !is_next("&apos;"))
      fail("an unknown entity");
  }

  std::string name() {
    const std::size_t first = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '-' || peek() == ':') ++at_;
    if (first == at_) fail("a name is missing");
    return std::string(xml_.substr(first, at_ - first));
  }

  void tag() {
    ++at_;
    const bool closing = peek() == '/';
    if (closing) ++at_;
    const std::string element = name();
    if (closing) {
      if (open_.empty() || open_.back() != element) return fail("</" + element + "> closes nothing");
      open_.pop_back();
    }
    std::set<std::string> seen;
    while (error_.empty() && peek() == ' ') {
      ++at_;
      if (!seen.insert(name()).second) return fail("an attribute twice");
      if (xml_.substr(at_, 2) != "=\"") return fail("no value");
      at_ += 2;
      characters('"');
      ++at_;
    }
    if (peek() == '/') {
      ++at_;
    } else if (!closing) {
      open_.push_back(element);
    }
    if (peek() != '>') return fail("no '>'");
    ++at_;
  }

  std::string_view xml_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::string error_;
};

}  // namespace

std::string not_well_formed(std::string_view xml) { return Checker(xml).check(); }

}  // namespace gpubench
