#include "harness/report/json_parser.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// Names and messages come from the file: what a reader sees of them must stay readable.
constexpr std::size_t longest_shown = 100;
constexpr std::size_t longest_message = 300;

// Builds a document from the parser's events. Throwing from one stops the parser at once, before anything deep or wide
// has been built.
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

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Json::exception& e) override {
    refuse(fmt::format("not JSON: {}", visible(std::string_view(e.what()).substr(0, longest_message))));
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
  Builder builder(visible(file), streamed, limits);
  if (text.size() > limits.bytes)
    builder.refuse(fmt::format("{} bytes, more than the {} that are read", text.size(), limits.bytes));
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits) {
  return parse_json(text, file, StreamedArray{}, limits);
}

}  // namespace gpubench
