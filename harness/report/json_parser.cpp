#include "harness/report/json_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// Names and messages come from the file: what a reader sees of them must stay readable.
constexpr std::size_t longest_shown = 100;
constexpr std::size_t longest_word = 20;

// What people write that JSON does not have; "" where the word says nothing more. `before`: the text up to it.
std::string_view hint(std::string_view before, std::string_view word) {
  const std::size_t last = before.find_last_not_of(" \t\r\n");
  const bool after_comma = last != std::string_view::npos && before[last] == ',';
  if (after_comma && (word.starts_with('}') || word.starts_with(']'))) return "; the comma before it is one too many";
  if (word.starts_with('\'')) return "; names and texts stand in double quotes";
  if (word.starts_with('/') || word.starts_with('#')) return "; JSON has no comments";
  if (word.starts_with('<')) return "; this looks like a web page or XML";
  if (word.starts_with('N') || word.starts_with('I') || word.starts_with("na"))
    return "; JSON has no NaN and no infinity";
  return "";
}

// The word that character `at` belongs to, from its beginning; of anything else the character.
std::string_view word_around(std::string_view text, std::size_t at) {
  const auto is_of_a_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
  };
  if (!is_of_a_word(text[at])) return text.substr(at, 1);
  std::size_t begin = at;
  while (begin > 0 && is_of_a_word(text[begin - 1])) --begin;
  std::size_t end = at;
  while (end < text.size() && is_of_a_word(text[end])) ++end;
  return text.substr(begin, end - begin);
}

// Why the parser stopped, in words that ask for no knowledge of it. `position`: characters that it had read; `theirs`:
// its own words, which are looked at, and not shown.
std::string complaint(std::string_view text, std::size_t position, std::string_view theirs) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "there is nothing in it";
  const std::string_view read = text.substr(0, std::min(position, text.size()));
  const auto said = [&theirs](std::string_view words) { return theirs.find(words) != std::string_view::npos; };
  if (said("unexpected end of input") || position > text.size())
    return "it ends too early: a text, list or object is not closed";
  const std::size_t last = std::max<std::size_t>(read.size(), 1) - 1;
  const std::size_t line_start = read.substr(0, last).rfind('\n') + 1;
  const auto line = 1 + std::count(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(line_start), '\n');
  const std::string place = fmt::format("line {}, column {}: ", line, read.size() - line_start);
  if (said("number overflow")) return place + "a number that fp64 cannot hold";
  if (said("UTF-8")) return place + "bytes that are no UTF-8";
  if (said("control character")) return place + "a control character in a text, which has to be escaped";
  if (said("invalid string")) return place + "a text that is not closed, or with an escape that JSON does not have";
  const std::string_view word = word_around(text, last);
  const std::string_view before = text.substr(0, static_cast<std::size_t>(word.data() - text.data()));
  return fmt::format("{}'{}' cannot stand here{}", place, visible(word.substr(0, longest_word)), hint(before, word));
}

// Builds a document from the parser's events. Throwing from one stops the parser at once, before anything deep or wide
// has been built.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string file, const StreamedArray& streamed, const ReadLimits& limits)
      : text_(text), file_(std::move(file)), streamed_(streamed), limits_(limits) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return value(v); }
  bool number_unsigned(number_unsigned_t v) override { return value(v); }
  bool number_float(number_float_t v, const string_t& /*text*/) override { return value(v); }
  bool string(string_t& v) override { return value(std::move(v)); }
  bool binary(binary_t& /*v*/) override { return false; }  // JSON has none
  bool start_object(std::size_t /*members*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Open& object = open_.back();
    auto& members = object.container->get_ref<Json::object_t&>();
    if (members.find(name) != members.end())
      refuse(fmt::format("key \"{}\" appears twice in one object", visible(name.substr(0, longest_shown))));
    if (members.size() >= limits_.members) refuse(fmt::format("more than {} members", limits_.members));
    if (open_.size() == 1) in_parent_ = streamed_.element && name == streamed_.parent;
    if (open_.size() == 2) streaming_next_ = in_parent_ && name == streamed_.member;
    auto& member = members.emplace_back(std::move(name), nullptr);
    object.key = &member.first;
    next_ = &member.second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& e) override {
    refuse("not JSON: " + complaint(text_, position, e.what()));
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw ReadError(fmt::format("{}:{}: {}", file_, place(), why));
  }

  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  // An object or array that has begun and not ended. What is pointed to stays where it is while it is the last of its
  // container, which it is until it is complete.
  struct Open {
    Json* container;
    const std::string* key = nullptr;  // of the member that the parser is at
  };

  // Where the value now stands.
  Json* place_value(Json&& v) {
    Json* const placed = open_.empty() ? &(root_ = std::move(v))
                         : open_.back().container->is_array()
                             ? &open_.back().container->get_ref<Json::array_t&>().emplace_back(std::move(v))
                             : &(*next_ = std::move(v));
    if (++values_ > limits_.values) refuse(fmt::format("more than {} values", limits_.values));
    if (streaming_ != 0 && open_.size() == streaming_ && !placed->is_object()) refuse("is no object");
    return placed;
  }

  template <class T>
  bool value(T&& v) {
    place_value(Json(std::forward<T>(v)));
    return true;
  }

  bool open(Json&& container) {
    Json* const placed = place_value(std::move(container));
    if (open_.size() >= static_cast<std::size_t>(limits_.depth))
      refuse(fmt::format("nested deeper than {} levels", limits_.depth));
    open_.push_back({placed});
    if (std::exchange(streaming_next_, false) && placed->is_array()) streaming_ = open_.size();
    return true;
  }

  bool close() {
    const Json& closed = *open_.back().container;
    open_.pop_back();
    if (streaming_ != 0 && open_.size() == streaming_) {
      streamed_.element(closed, elements_++);
      open_.back().container->get_ref<Json::array_t&>().clear();
    } else if (open_.size() + 1 == streaming_) {
      streaming_ = 0;
    }
    return true;
  }

  [[nodiscard]] std::string place() const {
    std::string path;
    for (std::size_t level = 0; level < open_.size(); ++level) {
      const Open& at = open_[level];
      if (at.container->is_array()) {
        const std::size_t gone = level + 1 == streaming_ ? elements_ : 0;  // those that were handed over
        if (gone + at.container->size() > 0) path += fmt::format("[{}]", gone + at.container->size() - 1);
      } else if (at.key != nullptr && !at.key->empty()) {
        path += (path.empty() ? "" : ".") + visible(at.key->substr(0, longest_shown));
      }
    }
    return path.empty() ? "(root)" : path;
  }

  std::string_view text_;
  std::string file_;
  const StreamedArray& streamed_;
  ReadLimits limits_;
  std::size_t streaming_ = 0;  // containers open inside the streamed array, itself included; 0: not in it
  bool in_parent_ = false;
  bool streaming_next_ = false;
  std::size_t elements_ = 0;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Open> open_;
  Json* next_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view file, const StreamedArray& streamed, const ReadLimits& limits) {
  Builder builder(text, visible(file), streamed, limits);
  if (text.size() > limits.bytes)
    builder.refuse(fmt::format("{} bytes, more than the {} that are read", text.size(), limits.bytes));
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits) {
  return parse_json(text, file, StreamedArray{}, limits);
}

}  // namespace gpubench
