// The constants of an op call (transposes, strides, epsilon). Core doesn't know which ops exist.
//
// Each op has a plain struct that names its members once:
//
//   struct Rotary {
//     Pairing pairing = Pairing::half;
//     bool inverse = false;
//     static void visit(auto&& attribute) {
//       attribute("pairing", &Rotary::pairing, AsWord{"half", "interleaved"});
//       attribute("inverse", &Rotary::inverse);
//     }
//   };
//
// A call's text (part of its case's definition hash), equality, names and values, and assignment by name follow from
// it. A member is a bool, an int, an int64_t, a double, a list of integers, an enum with enum_names, or an enum or bool
// with AsWord or AsValue. The text omits defaults:
//   attribute(name, member)                   "inverse", "alpha=0.5", "permutation=1 0"
//   attribute(name, member, AsWord{...})      the value's word: "interleaved"
//   attribute(name, member, AsValue{...})     "epilogue=gelu"
//   attribute.always(name, member, ...)       written even if it is the default
//   attribute.when(shown, name, member, ...)  written if shown(struct) holds
//   attribute.part(member)                    all attributes of a struct within the struct
// Attributes holds any such struct by value and returns it by type.
#pragma once

#include <any>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/core/error.h"

namespace gpubench {

/// Names of an enum's values, or of false and true, in order; the text is the word alone.
struct AsWord {
  std::array<std::string_view, 4> of;
};
/// The same; the text is "name=word".
struct AsValue {
  std::array<std::string_view, 4> of;
};

/// A switch, a whole or a real number, a word, or a list of whole numbers.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string_view, std::vector<std::int64_t>>;

struct Attribute {
  std::string_view name;
  AttributeValue value;
  bool word = false;  ///< the text is the value alone
  bool shown = false;
  std::vector<std::string_view> words = {};  ///< all possible words
};

/// "transpose_b, alpha=0.5": the shown attributes. Numbers are the shortest text that reads back the same.
[[nodiscard]] std::string attribute_text(const std::vector<Attribute>& attributes);
/// "half", "0.5", "1 0"; of a switch "false" or "".
[[nodiscard]] std::string value_text(const AttributeValue& value);

[[nodiscard]] std::string with_commas(std::span<const std::string_view> words);

/// The names without trailing empty ones.
template <class Names>
[[nodiscard]] std::vector<std::string_view> attribute_value_names(const Names& names) {
  std::vector<std::string_view> words;
  for (const std::string_view name : names) {
    if (!name.empty()) words.push_back(name);
  }
  return words;
}

template <class T>
class AttributeList {
 public:
  AttributeList(const T& held, std::vector<Attribute>& list) : held_(held), list_(list) {}

  template <class M, class... Names>
  void operator()(std::string_view name, M T::*member, const Names&... names) {
    add(!(held_.*member == standard_.*member), name, member, names...);
  }
  template <class M, class... Names>
  void always(std::string_view name, M T::*member, const Names&... names) {
    add(true, name, member, names...);
  }
  template <class M, class... Names>
  void when(bool (*shown)(const T&), std::string_view name, M T::*member, const Names&... names) {
    add(shown(held_), name, member, names...);
  }
  template <class M>
  void part(M T::*member) {
    M::visit(AttributeList<M>(held_.*member, list_));
  }

 private:
  template <class M>
  void add(bool shown, std::string_view attribute, M T::*member) {
    const M& value = held_.*member;
    if constexpr (NamedEnum<M>) {
      list_.push_back({attribute, name(value), false, shown, attribute_value_names(enum_names<M>)});
    } else if constexpr (std::integral<M> && !std::same_as<M, bool>) {
      list_.push_back({attribute, static_cast<std::int64_t>(value), false, shown});
    } else if constexpr (std::same_as<M, bool> || std::same_as<M, double>) {
      list_.push_back({attribute, value, false, shown});
    } else {
      list_.push_back({attribute, std::vector<std::int64_t>(value.begin(), value.end()), false, shown});
    }
  }
  template <class M, class Names>
  void add(bool shown, std::string_view attribute, M T::*member, const Names& names) {
    const auto index = static_cast<std::size_t>(held_.*member);
    list_.push_back(
        {attribute, names.of.at(index), std::same_as<Names, AsWord>, shown, attribute_value_names(names.of)});
  }

  const T& held_;
  const T standard_{};
  std::vector<Attribute>& list_;
};

// Conversions to a member's type. All throw UsageError with the attribute, the value and the expected values.
[[nodiscard]] bool as_switch(std::string_view attribute, const AttributeValue& value);
[[nodiscard]] std::int64_t as_whole(std::string_view attribute, const AttributeValue& value, std::int64_t least,
                                    std::int64_t most);
[[nodiscard]] double as_real(std::string_view attribute, const AttributeValue& value);
/// The index among the words. Of two words, true is the second.
[[nodiscard]] std::size_t as_word(std::string_view attribute, const AttributeValue& value,
                                  std::span<const std::string_view> words);
[[nodiscard]] const std::vector<std::int64_t>& as_list(std::string_view attribute, const AttributeValue& value);

template <class T>
class AttributeAssignment {
 public:
  /// `found` becomes true if the struct has an attribute of that name.
  AttributeAssignment(T& held, std::string_view name, const AttributeValue& value, bool& found)
      : held_(held), name_(name), value_(value), found_(found) {}

  template <class M, class... Names>
  void operator()(std::string_view name, M T::*member, const Names&... names) {
    if (name != name_) return;
    found_ = true;
    assign(held_.*member, names...);
  }
  template <class M, class... Names>
  void always(std::string_view name, M T::*member, const Names&... names) {
    operator()(name, member, names...);
  }
  template <class M, class... Names>
  void when(bool (*)(const T&), std::string_view name, M T::*member, const Names&... names) {
    operator()(name, member, names...);
  }
  template <class M>
  void part(M T::*member) {
    M::visit(AttributeAssignment<M>(held_.*member, name_, value_, found_));
  }

 private:
  template <std::integral M>
  [[nodiscard]] M whole(const AttributeValue& value) const {
    return static_cast<M>(as_whole(name_, value, std::numeric_limits<M>::min(), std::numeric_limits<M>::max()));
  }
  template <class M>
  void assign(M& member) {
    if constexpr (NamedEnum<M>) {
      member = static_cast<M>(as_word(name_, value_, enum_names<M>));
    } else if constexpr (std::same_as<M, bool>) {
      member = as_switch(name_, value_);
    } else if constexpr (std::integral<M>) {
      member = whole<M>(value_);
    } else if constexpr (std::same_as<M, double>) {
      member = as_real(name_, value_);
    } else {
      M list;
      for (const std::int64_t number : as_list(name_, value_)) list.push_back(whole<typename M::value_type>(number));
      member = std::move(list);
    }
  }
  template <class M, class Names>
  void assign(M& member, const Names& names) {
    member = static_cast<M>(as_word(name_, value_, attribute_value_names(names.of)));
  }

  T& held_;
  std::string_view name_;
  const AttributeValue& value_;
  bool& found_;
};

template <class T>
concept AttributeStruct = std::is_class_v<T> && requires(AttributeList<T> list) {
  T::visit(list);
};

template <AttributeStruct T>
[[nodiscard]] bool operator==(const T& a, const T& b);

template <class T>
class AttributeComparison {
 public:
  AttributeComparison(const T& a, const T& b, bool& equal) : a_(a), b_(b), equal_(equal) {}

  template <class M, class... Names>
  void operator()(std::string_view, M T::*member, const Names&...) {
    part(member);
  }
  template <class M, class... Names>
  void always(std::string_view, M T::*member, const Names&...) {
    part(member);
  }
  template <class M, class... Names>
  void when(bool (*)(const T&), std::string_view, M T::*member, const Names&...) {
    part(member);
  }
  template <class M>
  void part(M T::*member) {
    equal_ = equal_ && a_.*member == b_.*member;
  }

 private:
  const T& a_;
  const T& b_;
  bool& equal_;
};

template <AttributeStruct T>
bool operator==(const T& a, const T& b) {
  bool equal = true;
  T::visit(AttributeComparison<T>(a, b, equal));
  return equal;
}

template <AttributeStruct T>
[[nodiscard]] std::vector<Attribute> attributes_of(const T& held) {
  std::vector<Attribute> list;
  T::visit(AttributeList<T>(held, list));
  return list;
}

/// Attributes that differ from the default: "interleaved, inverse".
template <AttributeStruct T>
[[nodiscard]] std::string describe(const T& held) {
  return attribute_text(attributes_of(held));
}

class Attributes {
 public:
  Attributes() = default;

  template <AttributeStruct T>
  Attributes(T value)  // NOLINT(google-explicit-constructor): an attribute struct is its own Attributes
      : value_(std::move(value)), type_(&type_of<T>) {}

  /// The stored struct. Throws ProgramError if it is of another type.
  template <class T>
  [[nodiscard]] const T& as() const {
    const T* held = std::any_cast<T>(&value_);
    if (held == nullptr) throw ProgramError("op attributes are not of the type that this op expects");
    return *held;
  }

  [[nodiscard]] std::vector<Attribute> list() const {
    return type_ == nullptr ? std::vector<Attribute>{} : type_->list(value_);
  }
  /// Sets an attribute; false if there is none of that name. Throws UsageError for an invalid value.
  bool set(std::string_view name, const AttributeValue& value) {
    return type_ != nullptr && type_->set(value_, name, value);
  }
  /// "transpose_b, bias"; empty if all are defaults.
  [[nodiscard]] std::string to_string() const { return attribute_text(list()); }
  /// Whether they require this optional operand ("bias"): `T::has(std::string_view) const`.
  [[nodiscard]] bool has(std::string_view operand) const { return type_ != nullptr && type_->has(value_, operand); }

  /// Same type and equal content: calls that differ in nothing else may share a plan.
  friend bool operator==(const Attributes& a, const Attributes& b) {
    return a.type_ == nullptr || b.type_ == nullptr ? a.type_ == b.type_ : a.type_->equal(a.value_, b.value_);
  }

 private:
  struct Type {
    std::vector<Attribute> (*list)(const std::any&);
    bool (*set)(std::any&, std::string_view, const AttributeValue&);
    bool (*equal)(const std::any&, const std::any&);
    bool (*has)(const std::any&, std::string_view);
  };
  template <class T>
  static constexpr Type type_of{[](const std::any& held) { return attributes_of(std::any_cast<const T&>(held)); },
                                [](std::any& held, std::string_view name, const AttributeValue& value) {
                                  bool found = false;
                                  T::visit(AttributeAssignment<T>(std::any_cast<T&>(held), name, value, found));
                                  return found;
                                },
                                [](const std::any& a, const std::any& b) {
                                  const T* other = std::any_cast<T>(&b);
                                  return other != nullptr && std::any_cast<const T&>(a) == *other;
                                },
                                [](const std::any& held, std::string_view operand) {
                                  if constexpr (requires(const T& t) { t.has(operand); })
                                    return std::any_cast<const T&>(held).has(operand);
                                  return false;
                                }};

  std::any value_;
  const Type* type_ = nullptr;
};

template <class T>
[[nodiscard]] Attributes defaults_of() {
  return T{};
}

}  // namespace gpubench
