// Which values are views of the same memory: a storage's first value (the root) and its parts.
//
// Gradients follow memory: what flows into q, k and v of a packed qkv is the gradient of qkv. Three kinds of members:
// the root itself; views of all of it in another shape ("covering"); and proper parts, which a program declares
// disjoint.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

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

}  // namespace gpubench
