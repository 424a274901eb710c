// Judging one op of a prepared case on whatever contents of its storages: the part that checking alone, after rounds
// and in the replay share.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/prepared_case.h"
#include "harness/run/run.h"

namespace gpubench {

/// fp64 work that judging a case may cost, in each of check and recheck.
[[nodiscard]] double budget_flop(Tier tier);

/// Host access to the storages of one copy, each read at most once.
class StorageReader {
 public:
  explicit StorageReader(CaseMemory& memory) : memory_(memory) {}
  const std::byte* operator[](StorageId id);

 private:
  CaseMemory& memory_;
  std::map<int, HostBytes> read_;
};

/// Views of the values, of which `storages` are the contents of the storages that they lie in.
[[nodiscard]] std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                               std::span<const std::byte* const> storages);

class OpJudge {
 public:
  /// Both must outlive it.
  OpJudge(const PreparedCase& prepared, const RunOptions& options);

  /// What the textbook says of `outputs`, given `inputs`: contents of the storages of the op's values, in their order.
  /// `suspects`: OpView::suspects.
  [[nodiscard]] OpParity judge(int op, std::span<const std::byte* const> inputs,
                               std::span<const std::byte* const> outputs, const std::string& phase,
                               std::span<const std::vector<std::int64_t>> suspects = {}) const;

 private:
  [[nodiscard]] JudgePolicy policy_for(int op, std::string_view phase) const;

  const PreparedCase& prepared_;
  const RunOptions& options_;
  double total_work_ = 0.0;  ///< fp64 work of judging everything, as far as costs tell
};

/// The same with a fault that no element shows: it fails, and says the fault first.
[[nodiscard]] OpParity with_fault(OpParity parity, const std::string& fault);

}  // namespace gpubench
