// Which values must have the same bits because they are the same computation on the same data: replicas on several
// ranks, and what a rank computes before it meets others, which one rank alone computes as well.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Numbers of values, as compilers number them: two with the same number come from the same data by the same ops, on
/// whichever ranks. Results of all_reduce, all_gather and broadcast have one number on all members. Values in one
/// storage with others count as made from all that was written there before.
class ValueNumbers {
 public:
  /// `sources`: numbers for the sources of these global names; others have source_number().
  explicit ValueNumbers(const Program& program, const std::map<std::string, std::uint64_t>& sources = {});
  /// None for a value that no op produces and that is no source.
  [[nodiscard]] std::optional<std::uint64_t> operator[](ValueId id) const {
    return numbers_.at(static_cast<std::size_t>(id.index));
  }

 private:
  [[nodiscard]] std::uint64_t read(ValueId id) const;
  [[nodiscard]] std::uint64_t of_op(const OpCall& call) const;

  const Program& program_;
  std::vector<std::optional<std::uint64_t>> numbers_;
};

/// Of a source: by its name, and which part of it a rank has.
[[nodiscard]] std::uint64_t source_number(const TensorSpec& spec);

}  // namespace gpubench
