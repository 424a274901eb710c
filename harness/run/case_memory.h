// Device memory of one copy of a program, with guard bytes around every storage.
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

/// Bytes before and after each storage that no op may write.
inline constexpr std::size_t guard_bytes = 256;
void write_guard(std::span<std::byte> zone);
/// Number of bytes that differ from the guard pattern.
[[nodiscard]] int damaged_bytes(std::span<const std::byte> zone);

/// Reverses the order of the elements: other data with the same distribution, signs and ranges, at the speed of memory.
void reverse_elements(DType type, std::span<std::byte> bytes);

/// One of `parts` stretches of equal length; all of a block that is too small for `parts`.
struct Stretch {
  std::int64_t part = 0;
  std::int64_t parts = 1;
};

/// Device memory itself if the host can see it, else a copy.
struct HostBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< of the copy; null for device memory
};

class GuardedBlock {
 public:
  GuardedBlock(Backend& backend, Arena& arena, std::string name, std::size_t bytes, Memory memory = Memory::device,
               int rank = 0);
  /// The beginning of `slot`, memory of at least `bytes` bytes that several storages use in turn. The rest of the slot,
  /// up to guard_bytes, becomes the guard zone. Writes nothing.
  GuardedBlock(const GuardedBlock& slot, std::string name, std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] HostBytes read() const;
  /// Always a copy.
  [[nodiscard]] HostBytes copy() const;
  /// `other` must have as many bytes.
  void copy_from(const GuardedBlock& other) { backend_->copy(data_, other.data_, bytes_); }
  [[nodiscard]] std::uint64_t fingerprint() const { return backend_->fingerprint(data_, bytes_); }
  /// Overwrites every element of the stretch with store_poison().
  void poison(DType type, Stretch which = {});
  void write_guards();
  /// Applies `edit` on the host.
  void modify(const std::function<void(std::span<std::byte>)>& edit);

  /// "wrote outside 'x': 3 guard bytes after its end changed", or "". Rewrites damaged guards, so that a fault is
  /// reported once.
  [[nodiscard]] std::string check_guards();
  /// The same for guards that have been read; `behind` has the length of the guard after the block.
  [[nodiscard]] std::string check_guards(std::span<const std::byte> before, std::span<const std::byte> behind);
  /// Start of each guard; guard_bytes long, except after storages in a slot.
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

/// GuardedBlock::check_guards() of blocks that are not in slots; reads all guards in one transfer. Returns the first
/// damage or "", and repairs all.
[[nodiscard]] std::string check_guards_of(Backend& backend, std::span<GuardedBlock* const> blocks);

class CaseMemory {
 public:
  CaseMemory(Backend& backend, Arena& arena, const Program& program, const MemoryPlan& plan);

  [[nodiscard]] GuardedBlock& block(StorageId id) { return blocks_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] const GuardedBlock& block(StorageId id) const { return blocks_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] Tensor tensor(const Value& value) const;
  /// The first damage, or "". Memory that storages share is checked only around the whole slot.
  [[nodiscard]] std::string check_guards();
  /// The same for one storage, which must be the current one of shared memory.
  [[nodiscard]] std::string check_guards(StorageId id);

 private:
  Backend& backend_;
  std::vector<GuardedBlock> shared_;  ///< slots of several storages
  std::vector<GuardedBlock> blocks_;  ///< by storage
  std::vector<int> shared_of_;        ///< by storage: index in shared_ or -1
};

/// With guards and rounding.
[[nodiscard]] std::int64_t guarded_bytes(std::int64_t bytes);
[[nodiscard]] std::int64_t guarded_bytes(const MemoryPlan& plan);

/// By storage index.
using StorageContents = std::map<int, HostBytes>;

}  // namespace gpubench
