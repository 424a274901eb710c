// Keeps account of what flows into each value during differentiate(), and turns it into gradients: sums where a value
// has several readers, one packed gradient where readers take parts of a packed value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reference/ops/transform/value_families.h"

namespace gpubench {

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
  std::map<ValueId, std::optional<ValueId>> gradients_;  // by canonical value, once asked for
};

}  // namespace gpubench
