// Which op, the names of its operands, and its documentation. Every op is declared once, as a constant beside its
// attributes:
//
//   inline constexpr OpKind copy_kind{"copy", "x", "y"};
//   inline constexpr OpKind rotary_kind{"rotary", "x cos sin", "y", defaults_of<Rotary>};
//   inline constexpr OpKind gemm_kind{"gemm", "a b c_in? bias? pre? scale_a? scale_b?", "c z?", defaults_of<Gemm>};
//   inline constexpr OpKind adamw_kind{"adamw", "lr step w* g* m* v* copy*?", "w'* m'* v'* copy'*?",
//                                      defaults_of<AdamW>};
//
// In the order in which a call has them; "bias?" is there where the attributes ask for it (Attributes::has), "g*" is a
// list. Lists come last, and those of one op alternate: w g m v of the first parameter, then of the second.
//
// Then its documentation, the contract of every implementation, which `gpubench explain` prints: a line that says what
// the op does, a line for each operand or several alike ("x, y: f32 [rows, n]"; without a type, any that the recipe
// gives it), an empty line, formula and notes, and at the end, behind another, "Source: " where it has one.
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
  Attributes (*attributes)() = nullptr;  ///< null where it has none
  std::string_view doc{};
  friend bool operator==(const OpKind& a, const OpKind& b) { return a.name == b.name; }
};

/// The documentation of an op, taken apart; all texts are pieces of it.
struct OpDoc {
  struct Operand {
    std::string_view name, text;
  };
  std::string_view meaning;       ///< a sentence
  std::vector<Operand> operands;  ///< in the order of the text
  std::string_view body;          ///< formula and notes, of several lines
  std::string_view source;        ///< of several lines; may be empty
};
[[nodiscard]] OpDoc doc_of(const OpKind& kind);

/// An operand as it is declared.
struct DeclaredOperand {
  std::string_view name;
  bool optional = false, list = false;
};
[[nodiscard]] std::vector<DeclaredOperand> declared_operands(std::string_view operands);

/// An attribute, and what to set it to.
struct NamedValue {
  std::string_view name;
  AttributeValue value;
};
/// The attributes of a call: these, and all others at their defaults. Throws UsageError for an attribute that the op
/// does not have, with those that it has, and for a value that it cannot be.
[[nodiscard]] Attributes make_attributes(const OpKind& kind, std::span<const NamedValue> values = {});

/// The position of an operand among the inputs, or outputs, that `operands` declares; item `i` of a list. None where
/// the attributes don't ask for it, or the op has no such operand.
[[nodiscard]] std::optional<std::size_t> position_of(std::string_view operands, const Attributes& attributes,
                                                     std::string_view name, std::size_t i = 0);

/// Whether `operands` has one of this name, whatever the attributes.
[[nodiscard]] bool declares(std::string_view operands, std::string_view name);

/// The name at each position of a call's inputs, or outputs: an operand, and which item of it where it is a list.
struct OperandName {
  std::string name;
  std::size_t item = 0;
  friend bool operator==(const OperandName&, const OperandName&) = default;
};
/// Of the `count` that a call with these attributes has.
[[nodiscard]] std::vector<OperandName> operand_names(std::string_view operands, const Attributes& attributes,
                                                     std::size_t count);

/// Throws ProgramError: "gemm: 2 inputs for op 'qkv'; expected a, b, bias" unless there are as many tensors as
/// `operands` declares. `what` names them for the message.
void expect_operands(const OpKind& kind, std::string_view operands, const Attributes& attributes, std::size_t given,
                     std::string_view what, std::string_view label);

/// Access by operand name to things that a call has for each of its inputs, then outputs. Does not own.
template <class T>
class Named {
 public:
  /// `call`: an OpCall. It and what `all` points to must outlive this.
  template <class Call>
  Named(const Call& call, std::span<const T> all)
      : kind_(call.kind), attributes_(call.attributes), inputs_(call.inputs.size()), all_(all) {}

  /// Its position; none where this call lacks it.
  [[nodiscard]] std::optional<std::size_t> position(std::string_view name, std::size_t i = 0) const {
    if (const auto at = position_of(kind_.inputs, attributes_, name, i); at && *at < inputs_) return at;
    const auto at = position_of(kind_.outputs, attributes_, name, i);
    return at ? std::optional(inputs_ + *at) : std::nullopt;
  }
  /// Null where this call lacks it.
  [[nodiscard]] const T* find(std::string_view name, std::size_t i = 0) const {
    const auto at = position(name, i);
    return at && *at < all_.size() ? &all_[*at] : nullptr;
  }
  /// Throws ProgramError where this call lacks it.
  [[nodiscard]] const T& at(std::string_view name, std::size_t i = 0) const {
    const T* found = find(name, i);
    if (found == nullptr) {
      throw ProgramError(std::string(kind_.name) + " has no operand '" + std::string(name) + "' here");
    }
    return *found;
  }
  [[nodiscard]] const T& operator[](std::string_view name) const { return at(name); }
  /// Calls visit(thing) for those of the names that this call has.
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

/// A backend's claim that a fused op runs faster than the ops it stands for; fuse() puts in those that are claimed
/// (reference/ops/transform/fuse.h).
struct FusionClaim {
  OpKind kind;
  bool measured = false;  ///< on such a device; where not, every record that has the op says so
};

}  // namespace gpubench
