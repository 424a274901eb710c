// Device memory of one copy of a program: every storage between guard bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/dtype.h"
#include "harness/core/program.h"
#include "harness/plan/memory_plan.h"
#include "harness/run/memory_pool.h"

namespace gpubench {

/// Bytes before and after each storage that nobody may write.
inline constexpr std::size_t guard_bytes = 256;
/// Fills a guard zone with its pattern.
void write_guard(std::span<std::byte> zone);
/// How many bytes of a guard zone differ from the pattern.
[[nodiscard]] int damaged_bytes(std::span<const std::byte> zone);

/// Reverses the order of the elements of that type: other data with the same distribution, signs and ranges, at the
/// speed of memory.
void reverse_elements(DType type, std::span<std::byte> bytes);

/// One of several stretches of equal length that a block is cut into; all of it where it is too small for that.
struct Stretch {
  std::int64_t part = 0;
  std::int64_t parts = 1;
};

/// Device bytes as the host reads them: device memory itself if the host can see it, else a copy.
struct HostBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< of the copy; null where `bytes` is device memory
};

/// One block of device memory between two guard zones.
class GuardedBlock {
 public:
  GuardedBlock(Backend& backend, Arena& arena, std::string name, std::size_t bytes, Memory memory = Memory::device,
               int rank = 0);
  /// The beginning of `slot`, memory of at least as many bytes that several storages use in turn. The rest of the slot,
  /// up to guard_bytes, becomes the guard zone. Writes nothing yet.
  GuardedBlock(const GuardedBlock& slot, std::string name, std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] HostBytes read() const;
  /// The same as a copy that later writes do not change.
  [[nodiscard]] HostBytes copy() const;
  /// `other` must have as many bytes.
  void copy_from(const GuardedBlock& other) { backend_->copy(data_, other.data_, bytes_); }
  [[nodiscard]] std::uint64_t fingerprint() const { return backend_->fingerprint(data_, bytes_); }
  /// Overwrites every element with store_poison(), or those of one of `parts` stretches.
  void poison(DType type, Stretch which = {});
  void write_guards();
  /// Applies `edit` to the content on the host.
  void modify(const std::function<void(std::span<std::byte>)>& edit);

  /// "wrote outside 'x': 3 guard bytes after its end changed", or nothing. Rewrites damaged guards, so that a fault is
  /// reported once.
  [[nodiscard]] std::string check_guards();
  /// The same of guards that have been read; `behind` has as many bytes as the one after it.
  [[nodiscard]] std::string check_guards(std::span<const std::byte> before, std::span<const std::byte> behind);
  /// Where the guards begin; each has guard_bytes, but for that after storages in a slot.
  [[nodiscard]] const std::byte* guard_before() const { return data_ - guard_bytes; }
  [[nodiscard]] const std::byte* guard_after() const { return data_ + bytes_; }

 private:
  Backend* backend_;
  HostMemory* host_;
  std::string name_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t after_bytes_ = guard_bytes;  ///< of the guard zone after it
};

/// GuardedBlock::check_guards() of blocks with guards of their own (in no slot), which are read together: a step has
/// hundreds, each a trip to the device if it is read alone. The first damage found, or nothing; all damage is repaired.
[[nodiscard]] std::string check_guards_of(Backend& backend, std::span<GuardedBlock* const> blocks);

/// The storages of one copy of a program.
class CaseMemory {
 public:
  CaseMemory(Backend& backend, Arena& arena, const Program& program, const MemoryPlan& plan);

  [[nodiscard]] GuardedBlock& block(StorageId id) { return blocks_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] const GuardedBlock& block(StorageId id) const { return blocks_.at(static_cast<std::size_t>(id.index)); }
  /// The value in the form that a backend binds.
  [[nodiscard]] Tensor tensor(const Value& value) const;
  /// First damage found, or nothing. Memory that storages share is checked around the whole slot only.
  [[nodiscard]] std::string check_guards();
  /// The guards of one storage, whose turn it must be where memory is shared.
  [[nodiscard]] std::string check_guards(StorageId id);

 private:
  Backend& backend_;
  std::vector<GuardedBlock> shared_;  ///< slots of several storages
  std::vector<GuardedBlock> blocks_;  ///< by storage
  std::vector<int> shared_of_;        ///< by storage: index in shared_, or -1
};

/// Bytes of a block, and of a copy of a program, with guards and rounding.
[[nodiscard]] std::int64_t guarded_bytes(std::int64_t bytes);
[[nodiscard]] std::int64_t guarded_bytes(const MemoryPlan& plan);

/// Contents of storages on the host, by storage index.
using StorageContents = std::map<int, HostBytes>;

}  // namespace gpubench
