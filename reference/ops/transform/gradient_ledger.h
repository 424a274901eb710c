// Combines gradients during differentiate(): sums over a value's readers, packed gradients of packed values.
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

// Families of values: a storage's first value (the root) and its views. Gradients follow memory: q, k and v of a packed
// qkv contribute to the gradient of qkv. Members are the root, views of all of it in another shape ("covering"), and
// proper parts, which a program declares disjoint.
class ValueFamilies {
 public:
  explicit ValueFamilies(const Program& program);

  /// The root of `id`, possibly itself. A newer version (update) is the root of a separate family: its gradient differs
  /// from the older version's.
  [[nodiscard]] ValueId root(ValueId id) const { return at(id).root; }
  /// The first value with the same view of the same root, which stands for all of them.
  [[nodiscard]] ValueId canonical(ValueId id) const { return at(id).canonical; }
  [[nodiscard]] bool covers(ValueId id) const { return at(id).covers; }
  [[nodiscard]] std::int64_t first_element(ValueId id) const { return at(id).first_element; }
  /// All canonical members, the root first.
  [[nodiscard]] const std::vector<ValueId>& members(ValueId root) const { return at(root).members; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ValueId root, canonical;
    std::int64_t first_element = 0;
    bool covers = true;
    std::vector<ValueId> members;
  };
  [[nodiscard]] const Entry& at(ValueId id) const { return entries_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] Entry& at(ValueId id) { return entries_.at(static_cast<std::size_t>(id.index)); }

  std::vector<Entry> entries_;
};

struct GradientNeeds {
  /// Roots whose whole gradient is needed (wanted, or produced on the way), so that gradients of parts are collected.
  std::set<ValueId> wholes;
  /// By canonical value: the most gradients that will be contributed.
  std::map<ValueId, int> readers;
};

class GradientLedger {
 public:
  GradientLedger(Program& program, const ValueFamilies& families, const GradientNeeds& needs)
      : program_(program), families_(families), needs_(needs) {}

  [[nodiscard]] ValueId destination(ValueId value);
  /// GradientTape::contribute(); `math`: that of the reading op. Throws ProgramError if shape or type differ from the
  /// value's, or if the gradient has no producer.
  void contribute(ValueId value, ValueId gradient, const Math& math);
  /// The sum of all contributions; empty if there are none. Appends the additions, so call it after all readers of the
  /// value. Throws ProgramError if parts of a packed value lack a gradient.
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
  std::map<ValueId, ValueId> packed_;                    // root or covering view -> its packed gradient
  std::map<ValueId, ValueId> slots_;                     // canonical part -> its place in the packed gradient
  std::map<ValueId, std::optional<Summand>> wholes_;     // by root, once added up
  std::map<ValueId, std::optional<ValueId>> gradients_;  // by canonical value, once requested
};

}  // namespace gpubench
