// The constants of an op call (transposes, strides, epsilon), without core knowing which ops exist.
//
// Each op defines a plain struct of its own with a free function `std::string describe(const T&)`, found by
// argument-dependent lookup, and equality. Attributes holds any such struct by value and gives it back by type.
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <utility>

#include "harness/core/error.h"

namespace gpubench {

/// The name of an op, "gemm", "layer_norm_forward". Compares by text; the text must outlive the program (a literal).
struct OpKind {
  std::string_view name;
  friend bool operator==(const OpKind&, const OpKind&) = default;
};

class Attributes {
 public:
  Attributes() = default;

  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Attributes>)
      Attributes(T value)  // NOLINT(google-explicit-constructor): an attribute struct is its own Attributes
      : value_(std::move(value)),
        describe_([](const std::any& held) { return describe(std::any_cast<const T&>(held)); }),
        equal_([](const std::any& a, const std::any& b) {
          const T* other = std::any_cast<T>(&b);
          return other != nullptr && std::any_cast<const T&>(a) == *other;
        }) {}

  /// The struct that was stored. Throws ProgramError when it is of another type.
  template <class T>
  [[nodiscard]] const T& as() const {
    const T* held = std::any_cast<T>(&value_);
    if (held == nullptr) throw ProgramError("op attributes are not of the type that this op expects");
    return *held;
  }

  /// "transpose_b, bias"; empty where nothing differs from the defaults.
  [[nodiscard]] std::string to_string() const { return describe_ == nullptr ? std::string() : describe_(value_); }

  /// The same struct with equal content: calls that differ in nothing else may share a plan.
  friend bool operator==(const Attributes& a, const Attributes& b) {
    return a.equal_ == nullptr || b.equal_ == nullptr ? a.equal_ == b.equal_ : a.equal_(a.value_, b.value_);
  }

 private:
  std::any value_;
  std::string (*describe_)(const std::any&) = nullptr;
  bool (*equal_)(const std::any&, const std::any&) = nullptr;
};

}  // namespace gpubench
