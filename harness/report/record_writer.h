// Writes the members of reports into a JSON object; see record_members.h.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "harness/report/json.h"
#include "harness/report/record_members.h"

namespace gpubench::record_members {

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) { object_ = Json::object(); }

  /// By the rule an optional member is left out where it is empty or 0.
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule) {
    if constexpr (Whole<T> || std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
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

  template <Word T>
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
  /// Of what may not be changed, not even by a visit that only looks.
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

}  // namespace gpubench::record_members
