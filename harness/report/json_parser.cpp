#include "harness/report/json_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "harness/report/json_scanner.h"

namespace gpubench {
namespace {

constexpr std::size_t longest_shown = 100;  // keeps messages with names from the file readable

// A vector of objects with constant keys would copy whole values when it grows.
void make_room(Json::object_t& members) {
  if (members.size() < members.capacity()) return;
  Json::object_t larger;
  larger.reserve(2 * members.size() + 1);
  for (auto& [key, value] : members) larger.emplace_back(key, std::move(value));
  members.swap(larger);
}

// Builds the held parts of a document. Checks limits before building anything deep or wide.
class Parser {
 public:
  Parser(std::string_view text, std::string file, const HeldParts& held, const ReadLimits& limits)
      : scanner_(text, held.digest, held.content), file_(std::move(file)), held_(held), limits_(limits) {
    if (text.size() > limits.bytes)
      refuse(fmt::format("{} bytes, more than the limit of {}", text.size(), limits.bytes));
  }

  Json document() {
    try {
      value();
      if (scanner_.next() != '\0' || !scanner_.at_end()) scanner_.misplaced();
    } catch (const NotJson& e) {
      refuse(fmt::format("not JSON: {}", e.what()));
    }
    return std::move(root_);
  }

 private:
  // An open object or array. The pointer stays valid because the container is the last element of its parent until it
  // is complete.
  struct Open {
    Json* container;
    const std::string* key = nullptr;
  };

  [[noreturn]] void refuse(std::string_view why) const {
    throw ReadError(fmt::format("{}:{}: {}", file_, place(), why));
  }

  void value() {
    const char c = scanner_.next();
    if (c == '"') {
      const std::string_view read = scanner_.string();
      if (holds()) place_value(std::string(read));
    } else if (c == '-' || is_digit(c)) {
      Json read = scanner_.value_of(scanner_.number());
      if (holds()) place_value(std::move(read));
    } else if (c == '{') {
      object();
    } else if (c == '[') {
      array();
    } else if (c == 't' || c == 'f' || c == 'n') {
      scanner_.literal();
      if (holds()) place_value(c == 'n' ? Json(nullptr) : Json(c == 't'));
    } else {
      scanner_.misplaced();
    }
  }

  void array() {
    constexpr std::size_t some = 8;
    Json list = Json::array();
    if (holds()) list.get_ref<Json::array_t&>().reserve(some);
    open(std::move(list));
    if (scanner_.next() == ']') return close();
    for (;;) {
      value();
      if (scanner_.next() == ']') return close();
      scanner_.expect(',');
    }
  }

  void object() {
    open(Json::object());
    if (scanner_.next() == '}') return close();
    for (;;) {
      if (scanner_.next() != '"') scanner_.misplaced();
      const int dropped = is_held_as(scanner_.string()) ? 0 : 1;
      scanner_.expect(':');
      left_out_ += dropped;
      value();
      left_out_ -= dropped;
      if (scanner_.next() == '}') return close();
      scanner_.expect(',');
    }
  }

  [[nodiscard]] bool holds() const { return left_out_ == 0; }

  // Adds a member; returns whether its value is held.
  bool is_held_as(std::string_view name) {
    if (!holds()) return true;
    Open& object = open_.back();
    auto& members = object.container->get_ref<Json::object_t&>();
    if (std::any_of(members.begin(), members.end(), [name](const auto& member) { return member.first == name; }))
      refuse(fmt::format("key \"{}\" appears twice in one object", visible(name.substr(0, longest_shown))));
    if (members.size() >= limits_.members) refuse(fmt::format("more than {} members", limits_.members));
    const StreamedArray& streamed = held_.streamed;
    if (open_.size() == 1) in_parent_ = streamed.element && name == streamed.parent;
    if (open_.size() == 2) streaming_next_ = in_parent_ && name == streamed.member;
    const bool held = std::find(held_.left_out.begin(), held_.left_out.end(), name) == held_.left_out.end();
    make_room(members);
    auto& member = members.emplace_back(std::string(name), nullptr);
    object.key = &member.first;
    next_ = &member.second;
    return held;
  }

  Json* place_value(Json&& v) {
    Json* const placed = open_.empty() ? &(root_ = std::move(v))
                         : open_.back().container->is_array()
                             ? &open_.back().container->get_ref<Json::array_t&>().emplace_back(std::move(v))
                             : &(*next_ = std::move(v));
    if (++values_ > limits_.values) refuse(fmt::format("more than {} values", limits_.values));
    if (streaming_ != 0 && open_.size() == streaming_ && !placed->is_object()) refuse("is not an object");
    return placed;
  }

  void open(Json&& container) {
    Json* const placed = holds() ? place_value(std::move(container)) : nullptr;
    if (depth_ >= limits_.depth) refuse(fmt::format("nested deeper than {} levels", limits_.depth));
    ++depth_;
    scanner_.pass();
    if (!holds()) return;
    open_.push_back({placed});
    if (std::exchange(streaming_next_, false) && placed->is_array()) streaming_ = open_.size();
  }

  void close() {
    --depth_;
    scanner_.pass();
    if (!holds()) return;
    const Json& closed = *open_.back().container;
    open_.pop_back();
    if (streaming_ != 0 && open_.size() == streaming_) {
      held_.streamed.element(closed, elements_++);
      open_.back().container->get_ref<Json::array_t&>().clear();
    } else if (open_.size() + 1 == streaming_) {
      streaming_ = 0;
    }
  }

  [[nodiscard]] std::string place() const {
    std::string path;
    for (std::size_t level = 0; level < open_.size(); ++level) {
      const Open& at = open_[level];
      if (at.container->is_array()) {
        const std::size_t gone = level + 1 == streaming_ ? elements_ : 0;  // elements already handed over
        if (gone + at.container->size() > 0) path += fmt::format("[{}]", gone + at.container->size() - 1);
      } else if (at.key != nullptr && !at.key->empty()) {
        path += (path.empty() ? "" : ".") + visible(at.key->substr(0, longest_shown));
      }
    }
    return path.empty() ? "(root)" : path;
  }

  JsonScanner scanner_;
  std::string file_;
  const HeldParts& held_;
  ReadLimits limits_;
  int depth_ = 0;
  int left_out_ = 0;           // enclosing members that are not held
  std::size_t streaming_ = 0;  // open containers inside the streamed array, itself included; 0: outside
  bool in_parent_ = false;
  bool streaming_next_ = false;
  std::size_t elements_ = 0;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Open> open_;
  Json* next_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view file, const HeldParts& held, const ReadLimits& limits) {
  return Parser(text, visible(file), held, limits).document();
}

Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits) {
  return parse_json(text, file, HeldParts{}, limits);
}

}  // namespace gpubench
