#include "harness/run/case_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/run/content.h"

namespace gpubench {

GuardedBlock::GuardedBlock(Backend& backend, Arena& arena, std::string name, std::size_t bytes, Memory memory, int rank)
    : backend_(&backend),
      host_(&arena.host()),
      name_(std::move(name)),
      data_(arena.take(bytes + 2 * guard_bytes, memory, rank) + guard_bytes),
      bytes_(bytes) {
  write_guards();
}

void GuardedBlock::write_guards() {
  std::array<std::byte, guard_bytes> zone{};
  write_guard(zone);
  backend_->write(data_ - guard_bytes, zone);
  backend_->write(data_ + bytes_, zone);
}

HostBytes GuardedBlock::read() const {
  if (backend_->host_visible()) return {{data_, bytes_}, nullptr};
  return copy();
}

HostBytes GuardedBlock::copy() const {
  const HostBlock copy = host_->take(bytes_);
  backend_->read(copy.bytes, data_);
  return {copy.bytes, copy.owner};
}

void GuardedBlock::modify(const std::function<void(std::span<std::byte>)>& edit) {
  if (backend_->host_visible()) {
    edit({data_, bytes_});
    return;
  }
  const HostBlock content = host_->take(bytes_);
  backend_->read(content.bytes, data_);
  edit(content.bytes);
  backend_->write(data_, content.bytes);
}

void GuardedBlock::poison(DType type) {
  std::array<std::byte, sizeof(double)> pattern{};
  const std::int64_t elements = std::max(8 / bits_of(type), 1);  // that fill whole bytes
  for (std::int64_t i = 0; i < elements; ++i) store_poison(type, pattern.data(), i);
  backend_->fill(data_, std::span(pattern).first(static_cast<std::size_t>(bytes_of(type, elements))), bytes_);
}

std::string GuardedBlock::check_guards() {
  std::array<std::byte, guard_bytes> before{};
  std::array<std::byte, guard_bytes> after{};
  backend_->read(before, data_ - guard_bytes);
  backend_->read(after, data_ + bytes_);
  const int damaged_before = damaged_bytes(before);
  const int damaged_after = damaged_bytes(after);
  if (damaged_before == 0 && damaged_after == 0) return {};
  write_guards();
  const int damaged = damaged_after > 0 ? damaged_after : damaged_before;
  return fmt::format("wrote outside '{}': {} guard byte{} {} changed", name_, damaged, damaged == 1 ? "" : "s",
                     damaged_after > 0 ? "after its end" : "before its start");
}

CaseMemory::CaseMemory(Backend& backend, Arena& arena, const Program& program) {
  blocks_.reserve(program.storages().size());
  for (const Storage& storage : program.storages()) {
    blocks_.emplace_back(backend, arena, storage.name, static_cast<std::size_t>(storage.bytes), storage.memory,
                         storage.rank);
  }
}

Tensor CaseMemory::tensor(const Value& value) const {
  return {value.spec, block(value.storage).data() + value.offset_bytes};
}

std::string CaseMemory::check_guards() {
  std::string first;
  for (GuardedBlock& block : blocks_) {
    std::string damage = block.check_guards();  // all of them, so that every guard is mended
    if (first.empty()) first = std::move(damage);
  }
  return first;
}

std::int64_t guarded_bytes(std::int64_t bytes) {
  return bytes + 3 * static_cast<std::int64_t>(guard_bytes);  // two guards and rounding up
}

std::int64_t guarded_bytes(const Program& program) {
  return program.bytes() + guarded_bytes(0) * static_cast<std::int64_t>(program.storages().size());
}

}  // namespace gpubench
