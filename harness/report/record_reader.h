// Reads a record's members from JSON, refusing with its place whatever makes no sense; see record_members.h.
#pragma once

#include <fmt/format.h>

#include <limits>

#include "harness/report/reader.h"
#include "harness/report/record_members.h"

namespace gpubench::record_members {

class Reader {
 public:
  explicit Reader(Node object) : object_(std::move(object)) {}

  void operator()(const char* key, double& value) { value = object_.number_or_note(key); }
  void operator()(const char* key, std::vector<double>& values) { values = object_.numbers_or_notes(key); }
  void operator()(const char* key, std::string& value) { value = object_.at(key).text(); }
  void operator()(const char* key, bool& value) { value = object_.at(key).boolean(); }
  void operator()(const char* key, std::uint64_t& value) { value = object_.at(key).natural(); }

  template <Whole T>
  void operator()(const char* key, T& value) {  // every count of a record is zero or more
    value = static_cast<T>(object_.at(key).integer(0, std::numeric_limits<T>::max()));
  }

  template <Word T>
  void operator()(const char* key, T& value) {
    const Node node = object_.at(key);
    const std::string text = node.text();
    std::string known;
    for (const T word : words(T{})) {
      if (name(word) == text) {
        value = word;
        return;
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name(word));
    }
    node.refuse(fmt::format("is not one of {}", known));
  }

  void operator()(const char* key, std::optional<Worst>& value) {
    const Node node = object_.at(key);
    value.reset();
    if (!node.is_null()) read(node, value.emplace());
  }

  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    value.reset();
    if (object_.has(key)) (*this)(key, value.emplace());
  }

  void operator()(const char* key, std::vector<std::string>& list) {
    each(key, list, [](const Node& node, std::string& element) { element = node.text(); });
  }
  void operator()(const char* key, std::vector<std::int64_t>& list) {
    each(key, list, [](const Node& node, std::int64_t& element) { element = node.integer(); });
  }
  template <Part T>
  void operator()(const char* key, std::vector<T>& list) {
    each(key, list, [](const Node& node, T& element) { read(node, element); });
  }

  template <Pairs T>
  void operator()(const char* key, T& pairs) {
    const Node node = object_.at(key);
    pairs.clear();
    for (const std::string& member : node.keys()) {
      if constexpr (std::is_same_v<T, Dims>) {
        pairs.emplace_back(member, node.at(member).integer());
      } else {
        pairs.emplace_back(member, node.at(member).text());
      }
    }
  }

  template <Part T>
  void operator()(const char* key, T& value) {
    read(object_.at(key), value);
  }

  template <class T>
  static void read(const Node& node, T& value) {
    Reader reader(node);
    visit(reader, value);
  }

 private:
  template <class T, class Element>
  void each(const char* key, std::vector<T>& list, Element element) {
    const Node node = object_.at(key);
    list.clear();
    for (std::size_t i = 0; i < node.size(); ++i) element(node.at(i), list.emplace_back());
  }

  Node object_;
};

}  // namespace gpubench::record_members
