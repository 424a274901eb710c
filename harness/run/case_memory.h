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
#include "harness/core/program.h"
#include "harness/plan/memory_plan.h"
#include "harness/run/arena.h"
#include "harness/run/content.h"

namespace gpubench {

/// Device bytes as the host reads them: themselves where the host can see them, else a copy.
struct HostBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< of the copy; null where `bytes` is device memory
};

/// One block of device memory between two guard zones.
class GuardedBlock {
 public:
  GuardedBlock(Backend& backend, Arena& arena, std::string name, std::size_t bytes, Memory memory = Memory::device,
               int rank = 0);
  /// The beginning of `slot`, which has at least as many bytes: memory that several take turns in. What is left of the
  /// slot is its guard zone, as far as it goes. Writes nothing yet.
  GuardedBlock(const GuardedBlock& slot, std::string name, std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] HostBytes read() const;
  /// The same, and it stays as it is when the device's memory changes.
  [[nodiscard]] HostBytes copy() const;
  /// What `other`, which has as many bytes, holds now.
  void copy_from(const GuardedBlock& other) { backend_->copy(data_, other.data_, bytes_); }
  [[nodiscard]] std::uint64_t fingerprint() const { return backend_->fingerprint(data_, bytes_); }
  /// Every element as if nothing had ever been written; see store_poison().
  void poison(DType type);
  void write_guards();
  /// Lets `edit` work on the content on the host.
  void modify(const std::function<void(std::span<std::byte>)>& edit);

  /// "wrote outside 'x': 3 guard bytes after its end changed", or nothing. Mends the guards, so that a fault is told
  /// once.
  [[nodiscard]] std::string check_guards();

 private:
  Backend* backend_;
  HostMemory* host_;
  std::string name_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t after_bytes_ = guard_bytes;  ///< of the guard zone behind it
};

/// The storages of one copy of a program.
class CaseMemory {
 public:
  CaseMemory(Backend& backend, Arena& arena, const Program& program, const MemoryPlan& plan);

  [[nodiscard]] GuardedBlock& block(StorageId id) { return blocks_.at(static_cast<std::size_t>(id.index)); }
  [[nodiscard]] const GuardedBlock& block(StorageId id) const { return blocks_.at(static_cast<std::size_t>(id.index)); }
  /// The value as a backend binds it.
  [[nodiscard]] Tensor tensor(const Value& value) const;
  /// First damage found, or nothing: where memory is shared only around all of it, whoever has it now.
  [[nodiscard]] std::string check_guards();
  /// Around a storage that has its memory now.
  [[nodiscard]] std::string check_guards(StorageId id);

 private:
  std::vector<GuardedBlock> shared_;  ///< slots of several storages
  std::vector<GuardedBlock> blocks_;  ///< by storage
  std::vector<int> shared_of_;        ///< by storage: of shared_; -1: it has its memory alone
};

/// What a block takes, and a copy of a program, guards and rounding included.
[[nodiscard]] std::int64_t guarded_bytes(std::int64_t bytes);
[[nodiscard]] std::int64_t guarded_bytes(const MemoryPlan& plan);

/// Content of storages on the host, kept under their index.
using StorageContents = std::map<int, HostBytes>;

}  // namespace gpubench
