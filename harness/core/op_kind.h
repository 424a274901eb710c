// An op, the names of its operands, and its documentation. Every op is declared once, as a constant next to its
// attributes:
//
//   inline constexpr OpKind copy_kind{"copy", "x", "y"};
//   inline constexpr OpKind rotary_kind{"rotary", "x cos sin", "y", defaults_of<Rotary>};
//   inline constexpr OpKind gemm_kind{"gemm", "a b c_in? bias? pre? scale_a? scale_b?", "c z?", defaults_of<Gemm>};
//   inline constexpr OpKind adamw_kind{"adamw", "lr step w* g* m* v* copy*?", "w'* m'* v'* copy'*?",
//                                      defaults_of<AdamW>};
//
// Operands are in call order. "bias?" exists if the attributes require it (Attributes::has); "g*" is a list. Lists come
// last, and alternate: w g m v of the first parameter, then of the second.
//
// The documentation is the contract of every implementation, printed by `gpubench explain`: a line on the op, a line
// per operand or for several alike ("x, y: f32 [rows, n]"; without a type, any of the recipe), an empty line, formula
// and notes, and after another empty line optionally "Source: ". the op does, a line for each operand or several alike
// ("x, y: f32 [rows, n]"; without a type, any that the recipe gives it), an empty line, formula and notes, and at the
// end, behind another, "Source: " where it has one.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/attributes.h"

namespace gpubench {

/// Compares by name. The texts must outlive the program (literals).
struct OpKind {
  std::string_view name;
  std::string_view inputs{};
  std::string_view outputs{};
  Attributes (*attributes)() = nullptr;  ///< null if it has none
  std::string_view doc{};
  friend bool operator==(const OpKind& a, const OpKind& b) { return a.name == b.name; }
};

/// All texts are views into the documentation.
struct OpDoc {
  struct Operand {
    std::string_view name, text;
  };
  std::string_view meaning;
  std::vector<Operand> operands;  ///< in the order of the text
  std::string_view body;          ///< formula and notes, several lines
  std::string_view source;        ///< several lines; may be empty
};
[[nodiscard]] OpDoc doc_of(const OpKind& kind);

struct DeclaredOperand {
  std::string_view name;
  bool optional = false, list = false;
};
[[nodiscard]] std::vector<DeclaredOperand> declared_operands(std::string_view operands);

struct NamedValue {
  std::string_view name;
  AttributeValue value;
};
/// These attributes, and the others at their defaults. Throws UsageError for an unknown attribute, with the known ones,
/// and for an invalid value.
[[nodiscard]] Attributes make_attributes(const OpKind& kind, std::span<const NamedValue> values = {});

/// The position of an operand among the inputs, or outputs, that `operands` declares; item `i` of a list. None if the
/// attributes don't require it or the op has no such operand.
[[nodiscard]] std::optional<std::size_t> position_of(std::string_view operands, const Attributes& attributes,
                                                     std::string_view name, std::size_t i = 0);

/// Whether `operands` has one of this name, for any attributes.
[[nodiscard]] bool declares(std::string_view operands, std::string_view name);

/// The name at each position of a call's inputs or outputs, with the item in a list.
struct OperandName {
  std::string name;
  std::size_t item = 0;
  friend bool operator==(const OperandName&, const OperandName&) = default;
};
/// Of the `count` operands of a call with these attributes.
[[nodiscard]] std::vector<OperandName> operand_names(std::string_view operands, const Attributes& attributes,
                                                     std::size_t count);

/// Throws ProgramError, "gemm: 2 inputs for op 'qkv'; expected a, b, bias", unless `given` is the declared number.
/// `what`: "inputs" or "outputs".
void expect_operands(const OpKind& kind, std::string_view operands, const Attributes& attributes, std::size_t given,
                     std::string_view what, std::string_view label);

/// Access by operand name to one thing for each of a call's inputs, then outputs. Does not own.
template <class T>
class Named {
 public:
  /// `call`: an OpCall. It and the data of `all` must outlive this.
  template <class Call>
  Named(const Call& call, std::span<const T> all)
      : kind_(call.kind), attributes_(call.attributes), inputs_(call.inputs.size()), all_(all) {}

  /// None if this call lacks it.
  [[nodiscard]] std::optional<std::size_t> position(std::string_view name, std::size_t i = 0) const {
    if (const auto at = position_of(kind_.inputs, attributes_, name, i); at && *at < inputs_) return at;
    const auto at = position_of(kind_.outputs, attributes_, name, i);
    return at ? std::optional(inputs_ + *at) : std::nullopt;
  }
  [[nodiscard]] const T* find(std::string_view name, std::size_t i = 0) const {
    const auto at = position(name, i);
    return at && *at < all_.size() ? &all_[*at] : nullptr;
  }
  [[nodiscard]] const T& at(std::string_view name, std::size_t i = 0) const {
    const T* found = find(name, i);
    if (found == nullptr) {
      throw ProgramError(std::string(kind_.name) + " has no operand '" + std::string(name) + "' here");
    }
    return *found;
  }
  [[nodiscard]] const T& operator[](std::string_view name) const { return at(name); }
  template <class Visit>
  void each(std::initializer_list<std::string_view> names, const Visit& visit) const {
    for (const std::string_view name : names) {
      if (const T* found = find(name)) visit(*found);
    }
  }

 private:
  OpKind kind_;
  const Attributes& attributes_;
  std::size_t inputs_;
  std::span<const T> all_;
};

/// A backend's claim that a fused op is faster than the ops it replaces; fuse() uses the claimed ones
/// (reference/ops/transform/fuse.h).
struct FusionClaim {
  OpKind kind;
  bool measured = false;  ///< on such a device; if not, records with the op have a note
};

}  // namespace gpubench
