#include "harness/compare/lean_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// What follows the string that begins at `at`; the end of the text where it does not end.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (std::size_t quote = text.find('"', at + 1); quote != text.npos; quote = text.find('"', quote + 1)) {
    std::size_t backslashes = 0;
    while (text[quote - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote + 1;
  }
  return text.size();
}

std::size_t after_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// What begins or ends something inside an object or array: everything else there is passed over.
constexpr std::array<bool, 256> brackets = [] {
  std::array<bool, 256> all{};
  for (const unsigned char c : {'"', '{', '}', '[', ']'}) all[c] = true;
  return all;
}();

std::size_t after_value(std::string_view text, std::size_t at) {
  at = after_blanks(text, at);
  int open = 0;
  while (at < text.size()) {
    while (open > 0 && at < text.size() && !brackets[static_cast<unsigned char>(text[at])]) ++at;
    if (at == text.size()) return at;
    const char c = text[at];
    if (c == '"') {
      at = after_string(text, at);
    } else {
      if (open == 0 && (c == ',' || c == '}' || c == ']')) return at;
      open += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      ++at;
      if (open > 0 || (c != '}' && c != ']')) continue;
    }
    if (open == 0) return at;
  }
  return at;
}

// The document with null for the values of the dropped members, and without the blanks that only indent. Everything
// else stands as it was, so that the parser sees every mistake outside what is dropped.
std::string thinned(std::string_view text, const Dropped& dropped) {
  std::string_view dropped_by_value = dropped.otherwise;
  std::string thin;
  thin.reserve(text.size() / 2);
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      const std::size_t end = after_string(text, at);
      const std::string_view string = text.substr(at, end - at);
      thin += string;
      at = end;
      const std::size_t colon = after_blanks(text, at);
      const bool is_key = colon < text.size() && text[colon] == ':';
      const auto is_named = [&](std::string_view name) {
        return string.size() == name.size() + 2 && string.substr(1, name.size()) == name;
      };
      const std::size_t value = after_blanks(text, colon + 1);
      const bool has_value = is_key && value < text.size() && std::string_view(",}]").find(text[value]) == text.npos;
      if (!has_value) continue;
      if (!dropped.selector.empty()) {
        if (is_named(dropped.selector) && text[value] == '"') {
          const bool so = text.substr(value + 1, after_string(text, value) - value - 2) == dropped.value;
          dropped_by_value = so ? dropped.if_so : dropped.otherwise;
        } else if (is_named(dropped_by_value)) {
          thin += ":null";
          at = after_value(text, value);
          continue;
        }
      }
      if (std::none_of(dropped.always.begin(), dropped.always.end(), is_named)) continue;
      thin += ":null";
      at = after_value(text, value);
    } else if (is_blank(text[at])) {
      at = after_blanks(text, at);
      // Two tokens must not become one: a blank stays unless a punctuation mark stands before it.
      if (!thin.empty() && std::string_view(",:{[").find(thin.back()) == std::string_view::npos) thin += ' ';
    } else {
      const std::size_t start = at;
      while (at < text.size() && text[at] != '"' && !is_blank(text[at])) ++at;
      thin += text.substr(start, at - start);
    }
  }
  return thin;
}

// Builds a document from the parser's events: one walk instead of the two that nlohmann's own callbacks need.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string file, const StreamedArray& streamed, const ReadLimits& limits)
      : file_(std::move(file)), streamed_(streamed), limits_(limits) {}

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
    auto& members = open_.back()->get_ref<Json::object_t&>();
    if (members.find(name) != members.end())
      throw ReadError(fmt::format("{}: key \"{}\" appears twice in one object", file_, visible(name)));
    if (open_.size() == 1) in_parent_ = name == streamed_.parent;
    if (open_.size() == 2) streaming_next_ = in_parent_ && name == streamed_.member;
    next_ = &members.emplace(std::move(name), nullptr).first->second;
    if (members.size() > limits_.members)
      throw ReadError(fmt::format("{}: more than {} members", file_, limits_.members));
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Json::exception& e) override {
    throw ReadError(fmt::format("{}: not JSON: {}", file_, visible(e.what())));
  }

  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  // Where the value now stands; its address holds until its container grows, which is after the value is complete.
  Json* place(Json&& v) {
    if (++values_ > limits_.values) throw ReadError(fmt::format("{}: more than {} values", file_, limits_.values));
    if (open_.empty()) return &(root_ = std::move(v));
    if (open_.back()->is_array()) return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(v));
    return &(*next_ = std::move(v));
  }

  template <class T>
  bool value(T&& v) {
    if (streaming_ != 0 && open_.size() == streaming_)
      throw ReadError(fmt::format("{}: {}[{}] is no object", file_, streamed_.member, elements_));
    place(Json(std::forward<T>(v)));
    return true;
  }

  bool open(Json&& container) {
    if (static_cast<int>(open_.size()) >= limits_.depth)
      throw ReadError(fmt::format("{}: nested deeper than {} levels", file_, limits_.depth));
    open_.push_back(place(std::move(container)));
    if (std::exchange(streaming_next_, false) && open_.back()->is_array()) streaming_ = open_.size();
    return true;
  }

  bool close() {
    const Json* closed = open_.back();
    open_.pop_back();
    if (streaming_ != 0 && open_.size() == streaming_) {
      streamed_.element(*closed, elements_++);
      open_.back()->get_ref<Json::array_t&>().clear();
    } else if (open_.size() + 1 == streaming_) {
      streaming_ = 0;
    }
    return true;
  }

  std::string file_;
  const StreamedArray& streamed_;
  ReadLimits limits_;
  std::size_t streaming_ = 0;  // containers open inside the streamed array, itself included; 0: not in it
  bool in_parent_ = false;
  bool streaming_next_ = false;
  std::size_t elements_ = 0;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;
  Json* next_ = nullptr;
};

}  // namespace

Json parse_lean_json(std::string_view text, std::string_view file, const Dropped& dropped,
                     const StreamedArray& streamed, const ReadLimits& limits) {
  const std::string source = visible(file);
  if (text.size() > limits.bytes)
    throw ReadError(fmt::format("{}: {} bytes, more than the {} that are read", source, text.size(), limits.bytes));
  const std::string thin = thinned(text, dropped);
  Builder builder(source, streamed, limits);
  try {
    Json::sax_parse(thin, &builder);
  } catch (const Json::exception& e) {
    throw ReadError(fmt::format("{}: not JSON: {}", source, visible(e.what())));
  }
  return builder.take();
}

}  // namespace gpubench
