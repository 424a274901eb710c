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

/// The bytes of a storage: the host's, or still on the device.
struct StorageBytes {
  StorageBytes(const std::byte* host) : data(host) {}  // NOLINT(google-explicit-constructor)
  StorageBytes(const std::byte* device_data, Backend* owner) : data(device_data), device(owner) {}
  const std::byte* data;
  Backend* device = nullptr;  ///< whose memory it is; null: the host may read it
};

/// Access to the storages of one copy, each read by the host at most once.
class StorageReader {
 public:
  explicit StorageReader(PreparedCase& prepared, int copy = 0) : prepared_(prepared), memory_(prepared.memory(copy)) {}
  const std::byte* operator[](StorageId id);
  /// Of an output that is to be judged: left on the device where that examines its memory itself and views of it can be
  /// had, unless the textbook reads what the op wrote or the host has it already.
  [[nodiscard]] StorageBytes output(const OpCall& call, ValueId id);

 private:
  PreparedCase& prepared_;
  CaseMemory& memory_;
  std::map<int, HostBytes> read_;
};

/// Views of the values, of which `storages` are the contents of the storages that they lie in.
[[nodiscard]] std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                               std::span<const StorageBytes> storages);

class OpJudge {
 public:
  /// Both must outlive it.
  OpJudge(const PreparedCase& prepared, const RunOptions& options);

  /// What the textbook says of `outputs`, given `inputs`: contents of the storages of the op's values, in their order.
  /// `suspects`: OpView::suspects.
  [[nodiscard]] OpParity judge(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                               const std::string& phase,
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
