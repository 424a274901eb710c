// Writes the members of reports as JSON, and reads and checks them, with the place in errors; see record_members.h.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/record_members.h"

namespace gpubench::record_members {

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) { object_ = Json::object(); }

  /// Optional members are left out if empty or 0.
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule) {
    if constexpr (Whole<T> || AnyOf<T, double, std::string, std::vector<std::string>>) {
      if (rule.optional && value == T{}) return;
    }
    (*this)(key, value);
  }
  void time(const char* key, std::time_t value) { put(key, iso_time(value)); }

  void operator()(const char* key, double value) { put(key, number(key, value)); }
  void operator()(const char* key, const std::string& value) { put(key, value); }
  void operator()(const char* key, bool value) { put(key, value); }
  void operator()(const char* key, const std::vector<std::string>& list) { put(key, list); }

  template <Whole T>
  void operator()(const char* key, T& value) {
    put(key, value);
  }

  template <Whole T>
  void operator()(const char* key, std::vector<T>& list) {
    put(key, list);
  }

  template <NamedEnum T>
  void operator()(const char* key, T& value) {
    put(key, std::string(name(value)));
  }

  void operator()(const char* key, const std::vector<double>& values) {
    Json list = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) list.push_back(number(fmt::format("{}[{}]", key, i), values[i]));
    put(key, std::move(list));
  }

  void operator()(const char* key, std::optional<Worst>& value) { put(key, value ? written(*value) : Json(nullptr)); }

  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    if (value) (*this)(key, *value);
  }

  template <Part T>
  void operator()(const char* key, std::vector<T>& list) {
    Json array = Json::array();
    for (T& element : list) array.push_back(written(element));
    put(key, std::move(array));
  }

  template <Pairs T>
  void operator()(const char* key, T& pairs) {
    Json members = Json::object();
    for (const auto& [member, held] : pairs) members[member] = held;
    put(key, std::move(members));
  }

  template <Part T>
  void operator()(const char* key, T& value) {
    put(key, written(value));
  }

  template <class T>
  static Json written(T& value) {
    Json object;
    Writer writer(object);
    visit(writer, value);
    return object;
  }
  /// For constants, which a visit takes by mutable reference.
  template <class T>
  static Json written(const T& value) {
    T copy = value;
    return written(copy);
  }

 private:
  void put(const char* key, Json value) { object_[key] = std::move(value); }

  Json number(const std::string& note, double value) {
    if (std::isfinite(value)) return value;
    object_["nonfinite"][note] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return nullptr;
  }

  Json& object_;
};

/// The index in `known`. Throws ReadError that lists them.
[[nodiscard]] inline std::size_t index_of_word(const Node& node, std::span<const std::string_view> known) {
  const auto found = std::find(known.begin(), known.end(), node.text());
  if (found == known.end()) node.refuse(fmt::format("is not one of {}", fmt::join(known, ", ")));
  return static_cast<std::size_t>(found - known.begin());
}

template <NamedEnum T>
[[nodiscard]] T word_of(const Node& node) {
  constexpr std::span<const T> known = words<T>;
  return known[index_of_word(node, std::span(enum_names<T>).last(known.size()))];
}

/// Throws ReadError unless the text has the form.
[[nodiscard]] inline std::string text_of(const Node& node, const Form& form) {
  std::string text = node.text();
  if (!form.holds(text)) node.refuse(form.refusal);
  return text;
}

class Reader {
 public:
  /// `problems`: collects all errors; null: throws the first. Unreadable members and those in `left_out` keep their
  /// defaults.
  explicit Reader(Node object, Problems* problems = nullptr, LeftOut left_out = {})
      : object_(std::move(object)), problems_(problems), left_out_(left_out) {}

  template <class T>
  void operator()(const char* key, T& value, const Rule& rule = {}) {
    if (std::find(left_out_.begin(), left_out_.end(), key) != left_out_.end()) return;
    if (rule.optional && !object_.has(key)) return;
    attempt([&] { take(key, value, rule); });
  }
  void time(const char* key, std::time_t& value) {
    attempt([&] { value = object_.at(key).time(); });
  }

  template <class T>
  [[nodiscard]] static T read(const Node& node, Problems* problems = nullptr, LeftOut left_out = {}) {
    T value;
    Reader reader(node, problems, left_out);
    visit(reader, value);
    return value;
  }

 private:
  template <class Step>
  void attempt(const Step& step) {
    if (problems_ == nullptr) {
      step();
    } else {
      problems_->attempt(step);
    }
  }

  void take(const char* key, double& value, const Rule& rule) {
    const double number = object_.number_or_note(key);
    if ((rule.sign == Sign::not_negative && number < 0.0) || (rule.sign == Sign::positive && number <= 0.0))
      object_.at(key).refuse(
          fmt::format("is {}, expected a number {} 0", number, rule.sign == Sign::positive ? "above" : "from"));
    if (number > rule.most) object_.at(key).refuse(fmt::format("is {}, expected at most {}", number, rule.most));
    value = number;
  }
  // Samples of invalid rounds are not checked; others are with their round (case_consistency.cpp).
  void take(const char* key, std::vector<double>& values, const Rule&) { values = object_.numbers_or_notes(key); }

  void take(const char* key, std::string& value, const Rule& rule) {
    const Node node = object_.at(key);
    value = rule.form == nullptr ? node.text() : text_of(node, *rule.form);
    if (!rule.words.empty()) (void)index_of_word(node, rule.words);
    require_length(node, value.size(), rule);
  }

  void take(const char* key, bool& value, const Rule&) { value = object_.at(key).boolean(); }
  void take(const char* key, std::uint64_t& value, const Rule&) { value = object_.at(key).natural(); }

  template <Whole T>
  void take(const char* key, T& value, const Rule& rule) {
    const std::int64_t least = rule.sign == Sign::any ? std::numeric_limits<T>::min() : rule.least;
    value = static_cast<T>(object_.at(key).integer(least, std::numeric_limits<T>::max()));
  }

  template <NamedEnum T>
  void take(const char* key, T& value, const Rule&) {
    value = word_of<T>(object_.at(key));
  }

  void take(const char* key, std::optional<Worst>& value, const Rule&) {
    const Node node = object_.at(key);
    value.reset();
    if (!node.is_null()) value = read<Worst>(node, problems_, left_out_);
  }

  template <class T>
  void take(const char* key, std::optional<T>& value, const Rule& rule) {
    value.reset();
    if (object_.has(key)) take(key, value.emplace(), rule);
  }

  void take(const char* key, std::vector<std::string>& list, const Rule& rule) {
    each(key, list, rule, [&rule](const Node& node, std::string& element) {
      element = node.text();
      if (element.empty() && !rule.empty_texts) node.refuse("is empty");
    });
  }
  void take(const char* key, std::vector<std::uint64_t>& list, const Rule& rule) {
    each(key, list, rule, [](const Node& node, std::uint64_t& element) { element = node.natural(); });
  }
  template <Whole T>
  void take(const char* key, std::vector<T>& list, const Rule& rule) {
    each(key, list, rule, [](const Node& node, T& element) {
      element = static_cast<T>(node.integer(0, std::numeric_limits<T>::max()));
    });
  }
  template <Part T>
  void take(const char* key, std::vector<T>& list, const Rule& rule) {
    each(key, list, rule, [this](const Node& node, T& element) { element = read<T>(node, problems_, left_out_); });
  }

  template <Pairs T>
  void take(const char* key, T& pairs, const Rule& rule) {
    const Node node = object_.at(key);
    pairs.clear();
    for (const auto& [member, held] : node.members()) {
      if constexpr (std::is_same_v<T, Dims>) {
        pairs.emplace_back(member, held.integer());
      } else {
        pairs.emplace_back(member, held.text());
      }
    }
    require_length(node, pairs.size(), rule);
  }

  template <Part T>
  void take(const char* key, T& value, const Rule&) {
    value = read<T>(object_.at(key), problems_, left_out_);
  }

  template <class T, class Element>
  void each(const char* key, std::vector<T>& list, const Rule& rule, Element element) {
    const Node node = object_.at(key);
    list.clear();
    const std::size_t length = node.length();
    require_length(node, length, rule);
    list.reserve(length);
    for (std::size_t i = 0; i < length; ++i) {
      attempt([&] { element(node.at(i), list.emplace_back()); });
    }
  }

  static void require_length(const Node& node, std::size_t length, const Rule& rule) {
    if (static_cast<std::int64_t>(length) >= rule.least) return;
    node.refuse(length == 0 ? "is empty" : fmt::format("has {} elements, expected {} or more", length, rule.least));
  }

  Node object_;
  Problems* problems_;
  LeftOut left_out_;
};

}  // namespace gpubench::record_members
