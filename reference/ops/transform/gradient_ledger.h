// Collects the gradients that flow into each value during differentiate() and combines them: a sum where a value has
// several readers, one packed gradient where readers take parts of a packed value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

// Which values are views of the same memory: a storage's first value (the root) and its parts.
//
// Gradients follow memory: what flows into q, k and v of a packed qkv is the gradient of qkv. Three kinds of members:
// the root itself; views of all of it in another shape ("covering"); and proper parts, which a program declares
// disjoint.
class ValueFamilies {
 public:
  /// Of the values that are in the program now.
  explicit ValueFamilies(const Program& program);

  /// The value that `id` is, directly or by steps, a part of; itself where it is none. A newer version (update) starts
  /// a family of its own: its gradient differs from that of the version before.
  [[nodiscard]] ValueId root(ValueId id) const { return at(id).root; }
  /// The first value with the same view of the same root; contributions to either are contributions to this one.
  [[nodiscard]] ValueId canonical(ValueId id) const { return at(id).canonical; }
  /// True for the root and for views of all its elements.
  [[nodiscard]] bool covers(ValueId id) const { return at(id).covers; }
  /// Offset from the root's first element, in elements.
  [[nodiscard]] std::int64_t first_element(ValueId id) const { return at(id).first_element; }
  /// Every canonical member, the root first.
  [[nodiscard]] const std::vector<ValueId>& members(ValueId root) const { return at(root).members; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ValueId root, canonical;
    std::int64_t first_element = 0;
    bool covers = true;
    std::vector<ValueId> members;  // of a root
  };
  [[nodiscard]] const Entry& at(ValueId id) const { return entries_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] Entry& at(ValueId id) { return entries_.at(static_cast<std::size_t>(id.index)); }

  std::vector<Entry> entries_;
};

/// What differentiate() found out before any gradient is computed.
struct GradientNeeds {
  /// Roots whose gradient is needed as a whole (wanted, or produced on the way): their parts' gradients are collected.
  std::set<ValueId> wholes;
  /// How many gradients at most will be contributed to a (canonical) value.
  std::map<ValueId, int> readers;
};

class GradientLedger {
 public:
  GradientLedger(Program& program, const ValueFamilies& families, const GradientNeeds& needs)
      : program_(program), families_(families), needs_(needs) {}

  /// GradientTape::destination().
  [[nodiscard]] ValueId destination(ValueId value);
  /// GradientTape::contribute(); `math` is that of the op which read the value. Throws ProgramError where shape or type
  /// differ from the value's, or nothing has produced the gradient.
  void contribute(ValueId value, ValueId gradient, const Math& math);
  /// The sum of all that was contributed, empty where nothing was. Appends the ops that add up; call it only when no
  /// reader of the value is left. Throws ProgramError where parts of a packed value were left out.
  [[nodiscard]] std::optional<ValueId> gradient(ValueId value);

 private:
  struct Summand {
    ValueId gradient;
    Math math;
  };

  [[nodiscard]] ValueId reserve_like(ValueId value);
  [[nodiscard]] ValueId reserve_rows(ValueId value);
  [[nodiscard]] std::string gradient_name(ValueId value) const;
  [[nodiscard]] ValueId slot(ValueId canonical);
  [[nodiscard]] bool packed(ValueId canonical) const;
  [[nodiscard]] ValueId view(ValueId whole_gradient, ValueId canonical);
  [[nodiscard]] ValueId as_root(ValueId covering, const Summand& sum);
  [[nodiscard]] Summand of_member(ValueId canonical, Summand whole);
  Summand move_into(ValueId target, const Summand& from, ValueId value);
  [[nodiscard]] std::optional<Summand> add_up(const std::vector<Summand>& summands, ValueId value,
                                              std::optional<ValueId> target);
  [[nodiscard]] std::optional<Summand> whole(ValueId root);
  [[nodiscard]] std::optional<Summand> collected_parts(ValueId root);

  Program& program_;
  const ValueFamilies& families_;
  const GradientNeeds& needs_;
  std::map<ValueId, std::vector<Summand>> summands_;     // by canonical value
  std::map<ValueId, ValueId> packed_;                    // root, or covering view -> its packed gradient
  std::map<ValueId, ValueId> slots_;                     // canonical part -> its place in the packed gradient
  std::map<ValueId, std::optional<Summand>> wholes_;     // by root, once added up
  std::map<ValueId, std::optional<ValueId>> gradients_;  // by canonical value, once requested
};

}  // namespace gpubench
