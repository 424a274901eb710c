// Reads a record's members from JSON, refusing with its place whatever makes no sense; see record_members.h.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/report/problems.h"
#include "harness/report/reader.h"
#include "harness/report/record_members.h"

namespace gpubench::record_members {

/// Which of its words a value is told by. Throws ReadError with all of them for another.
template <Word T>
[[nodiscard]] T word_of(const Node& node) {
  const std::string text = node.text();
  std::string known;
  for (const T word : words(T{})) {
    if (name(word) == text) return word;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(word));
  }
  node.refuse(fmt::format("is not one of {}", known));
}

class Reader {
 public:
  /// Without `problems` the first one is thrown; with them all are collected, and what cannot be read keeps its
  /// default, as do members of the names in `left_out`.
  explicit Reader(Node object, Problems* problems = nullptr, LeftOut left_out = {})
      : object_(std::move(object)), problems_(problems), left_out_(left_out) {}

  template <class T>
  void operator()(const char* key, T& value) {
    if (std::find(left_out_.begin(), left_out_.end(), key) == left_out_.end()) attempt([&] { take(key, value); });
  }
  template <class T>
  void signed_number(const char* key, T& value) {
    attempt([&] { take_signed(key, value); });
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

  void take_signed(const char* key, double& value) { value = object_.number_or_note(key); }
  template <Whole T>
  void take_signed(const char* key, T& value) {
    value = static_cast<T>(object_.at(key).integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  template <class T>
  void take_signed(const char* key, std::optional<T>& value) {
    value.reset();
    if (object_.has(key)) take_signed(key, value.emplace());
  }

  void take(const char* key, double& value) {
    const double number = object_.number_or_note(key);
    if (number < 0.0) object_.at(key).refuse(fmt::format("is {}, expected a number from 0", number));
    value = number;
  }
  // Of a round that did not count, samples may be anything; the others are looked at with the round (meaning.cpp).
  void take(const char* key, std::vector<double>& values) { values = object_.numbers_or_notes(key); }
  void take(const char* key, std::string& value) { value = object_.at(key).text(); }
  void take(const char* key, bool& value) { value = object_.at(key).boolean(); }
  void take(const char* key, std::uint64_t& value) { value = object_.at(key).natural(); }

  template <Whole T>
  void take(const char* key, T& value) {  // every count of a record is zero or more
    value = static_cast<T>(object_.at(key).integer(0, std::numeric_limits<T>::max()));
  }

  template <Word T>
  void take(const char* key, T& value) {
    value = word_of<T>(object_.at(key));
  }

  void take(const char* key, std::optional<Worst>& value) {
    const Node node = object_.at(key);
    value.reset();
    if (!node.is_null()) value = read<Worst>(node, problems_, left_out_);
  }

  template <class T>
  void take(const char* key, std::optional<T>& value) {
    value.reset();
    if (object_.has(key)) take(key, value.emplace());
  }

  void take(const char* key, std::vector<std::string>& list) {
    each(key, list, [](const Node& node, std::string& element) { element = node.text(); });
  }
  template <Whole T>
  void take(const char* key, std::vector<T>& list) {
    each(key, list, [](const Node& node, T& element) {
      element = static_cast<T>(node.integer(0, std::numeric_limits<T>::max()));
    });
  }
  template <Part T>
  void take(const char* key, std::vector<T>& list) {
    each(key, list, [this](const Node& node, T& element) { element = read<T>(node, problems_, left_out_); });
  }

  template <Pairs T>
  void take(const char* key, T& pairs) {
    pairs.clear();
    for (const auto& [member, node] : object_.at(key).members()) {
      if constexpr (std::is_same_v<T, Dims>) {
        pairs.emplace_back(member, node.integer());
      } else {
        pairs.emplace_back(member, node.text());
      }
    }
  }

  template <Part T>
  void take(const char* key, T& value) {
    value = read<T>(object_.at(key), problems_, left_out_);
  }

  template <class T, class Element>
  void each(const char* key, std::vector<T>& list, Element element) {
    const Node node = object_.at(key);
    list.clear();
    const std::size_t length = node.length();
    list.reserve(length);
    for (std::size_t i = 0; i < length; ++i) {
      attempt([&] { element(node.at(i), list.emplace_back()); });
    }
  }

  Node object_;
  Problems* problems_;
  LeftOut left_out_;
};

}  // namespace gpubench::record_members
