#include "tests/harness/report/format_readers.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace gpubench {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view at) {
  throw std::runtime_error(std::string(what) + " at: " + std::string(at.substr(0, 60)));
}

class Reader {
 public:
  explicit Reader(std::string_view document) : rest_(document) {}

  HtmlContent content() {
    if (rest_.starts_with("<!DOCTYPE html>") || rest_.starts_with("<!doctype html>")) rest_.remove_prefix(15);
    while (!rest_.empty()) {
      if (rest_.front() == '<') {
        tag();
      } else {
        piece_ += text_until('<');
      }
    }
    end_piece();
    return std::move(content_);
  }

 private:
  std::string text_until(char end) {
    std::string text;
    while (!rest_.empty() && rest_.front() != end) {
      const char c = rest_.front();
      if (c == '<' || (static_cast<unsigned char>(c) < 0x20 && c != '\n')) refuse("no character of text", rest_);
      if (c != '&') {
        text += c;
        rest_.remove_prefix(1);
        continue;
      }
      const auto& [word, character] = entity();
      text += character;
      rest_.remove_prefix(std::string_view(word).size());
    }
    return text;
  }
  [[nodiscard]] const std::pair<const char*, const char*>& entity() const {
    static constexpr std::pair<const char*, const char*> known[] = {{"&amp;", "&"},   {"&lt;", "<"},   {"&gt;", ">"},
                                                                    {"&quot;", "\""}, {"&apos;", "'"}, {"&#39;", "'"}};
    for (const auto& one : known) {
      if (rest_.starts_with(one.first)) return one;
    }
    refuse("a bare &", rest_);
  }
  std::string name() {
    const auto end =
        std::find_if(rest_.begin(), rest_.end(), [](char c) { return c == ' ' || c == '>' || c == '/' || c == '='; });
    std::string word(rest_.begin(), end);
    if (word.empty() ||
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != ':'; }))
      refuse("no name of ours", rest_);
    rest_.remove_prefix(word.size());
    return word;
  }
  void tag() {
    rest_.remove_prefix(1);
    const bool closes = rest_.starts_with("/");
    if (closes) rest_.remove_prefix(1);
    const std::string element = name();
    std::string described = (closes ? "/" : "") + element;
    while (rest_.starts_with(" ")) {
      rest_.remove_prefix(1);
      described += " " + name();
      if (!rest_.starts_with("=")) continue;
      if (!rest_.starts_with("=\"")) refuse("a value without quotes", rest_);
      rest_.remove_prefix(2);
      content_.text += text_until('"') + "\n";
      if (rest_.empty()) refuse("a value that never ends", rest_);
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with("/")) rest_.remove_prefix(1);
    if (!rest_.starts_with(">")) refuse("no end of a tag", rest_);
    rest_.remove_prefix(1);
    if (element == "wbr") return;
    end_piece();
    content_.tags.push_back(described);
    if (described.starts_with("style") || described.starts_with("script")) {
      const std::size_t end = rest_.find("</" + element + ">");
      if (end == std::string_view::npos) refuse("no end of " + element, rest_);
      rest_.remove_prefix(end);
    }
  }
  void end_piece() {
    content_.text += piece_ + "\n";
    piece_.clear();
  }

  std::string_view rest_;
  std::string piece_;
  HtmlContent content_;
};

}  // namespace

HtmlContent read_html(const std::string& document) { return Reader(document).content(); }

}  // namespace gpubench
