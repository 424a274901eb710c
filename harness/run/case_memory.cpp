#include "harness/run/case_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpubench {
namespace {

constexpr std::int64_t smallest_stretch = 64;  // bytes: whole elements of every type; a cache line

constexpr std::byte guard_byte(std::size_t position) { return static_cast<std::byte>(0x5AU ^ (position * 29U)); }

}  // namespace

void write_guard(std::span<std::byte> zone) {
  for (std::size_t i = 0; i < zone.size(); ++i) zone[i] = guard_byte(i);
}

int damaged_bytes(std::span<const std::byte> zone) {
  int damaged = 0;
  for (std::size_t i = 0; i < zone.size(); ++i) damaged += zone[i] != guard_byte(i) ? 1 : 0;
  return damaged;
}

void reverse_elements(DType type, std::span<std::byte> bytes) {
  const auto at = [bytes](std::size_t byte) { return bytes.begin() + static_cast<std::ptrdiff_t>(byte); };
  const bool shares_bytes = bits_of(type) < 8;
  const std::size_t size = shares_bytes ? 1 : size_of(type);
  for (std::size_t i = 0, j = bytes.size() / size; i + 1 < j; ++i) {
    --j;
    std::swap_ranges(at(i * size), at((i + 1) * size), at(j * size));
  }
  for (std::byte& both : shares_bytes ? bytes : std::span<std::byte>()) both = (both << 4) | (both >> 4);
}

GuardedBlock::GuardedBlock(Backend& backend, Arena& arena, std::string name, std::size_t bytes, Memory memory, int rank)
    : backend_(&backend),
      host_(&arena.host()),
      name_(std::move(name)),
      data_(arena.take(bytes + 2 * guard_bytes, memory, rank) + guard_bytes),
      bytes_(bytes) {
  write_guards();
}

GuardedBlock::GuardedBlock(const GuardedBlock& slot, std::string name, std::size_t bytes)
    : backend_(slot.backend_),
      host_(slot.host_),
      name_(std::move(name)),
      data_(slot.data_),
      bytes_(bytes),
      after_bytes_(std::min(slot.bytes_ - bytes, guard_bytes)) {}

void GuardedBlock::write_guards() {
  std::array<std::byte, guard_bytes> zone{};
  write_guard(zone);
  backend_->write(data_ - guard_bytes, zone);
  backend_->write(data_ + bytes_, std::span(zone).first(after_bytes_));
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

void GuardedBlock::poison(DType type, Stretch which) {
  std::array<std::byte, sizeof(double)> pattern{};
  const std::int64_t elements = std::max(8 / bits_of(type), 1);  // fills whole bytes
  for (std::int64_t i = 0; i < elements; ++i) store_poison(type, pattern.data(), i);
  const auto all = static_cast<std::int64_t>(bytes_);
  if (all < which.parts * smallest_stretch) which = {};
  const auto begins = [&](std::int64_t part) {
    return part == which.parts ? all : all / which.parts * part / smallest_stretch * smallest_stretch;
  };
  const std::int64_t first = begins(which.part);
  backend_->fill(data_ + first, std::span(pattern).first(static_cast<std::size_t>(bytes_of(type, elements))),
                 static_cast<std::size_t>(begins(which.part + 1) - first));
}

std::string GuardedBlock::check_guards() {
  std::array<std::byte, guard_bytes> before{};
  std::array<std::byte, guard_bytes> after{};
  backend_->read(before, guard_before());
  const auto behind = std::span(after).first(after_bytes_);
  backend_->read(behind, guard_after());
  return check_guards(before, behind);
}

std::string GuardedBlock::check_guards(std::span<const std::byte> before, std::span<const std::byte> behind) {
  const int damaged_before = damaged_bytes(before);
  const int damaged_after = damaged_bytes(behind);
  if (damaged_before == 0 && damaged_after == 0) return {};
  write_guards();
  const int damaged = damaged_after > 0 ? damaged_after : damaged_before;
  return fmt::format("wrote outside '{}': {} guard byte{} {} changed", name_, damaged, damaged == 1 ? "" : "s",
                     damaged_after > 0 ? "after its end" : "before its start");
}

std::string check_guards_of(Backend& backend, std::span<GuardedBlock* const> blocks) {
  std::vector<const std::byte*> from;
  for (const GuardedBlock* one : blocks) from.insert(from.end(), {one->guard_before(), one->guard_after()});
  std::vector<std::byte> zones(from.size() * guard_bytes);
  backend.read_runs(zones, from);
  std::string first;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::span own = std::span(zones).subspan(2 * i * guard_bytes, 2 * guard_bytes);
    std::string damage = blocks[i]->check_guards(own.first(guard_bytes), own.subspan(guard_bytes));
    if (first.empty()) first = std::move(damage);
  }
  return first;
}

CaseMemory::CaseMemory(Backend& backend, Arena& arena, const Program& program, const MemoryPlan& plan)
    : backend_(backend), shared_of_(program.storages().size(), -1) {
  for (const MemorySlot& slot : plan.slots) {
    if (slot.storages.size() == 1) continue;
    for (const StorageId id : slot.storages)
      shared_of_[static_cast<std::size_t>(id.index)] = static_cast<int>(shared_.size());
    const std::string name = program.storage(slot.storages.front()).name + " or another storage in its memory";
    shared_.emplace_back(backend, arena, name, static_cast<std::size_t>(slot.bytes), slot.memory, slot.rank);
  }
  blocks_.reserve(program.storages().size());
  for (const Storage& storage : program.storages()) {
    const auto bytes = static_cast<std::size_t>(storage.bytes);
    if (const int shared = shared_of_[blocks_.size()]; shared < 0)
      blocks_.emplace_back(backend, arena, storage.name, bytes, storage.memory, storage.rank);
    else
      blocks_.emplace_back(shared_[static_cast<std::size_t>(shared)], storage.name, bytes);
  }
}

Tensor CaseMemory::tensor(const Value& value) const {
  return {value.spec, block(value.storage).data() + value.offset_bytes};
}

std::string CaseMemory::check_guards() {
  std::vector<GuardedBlock*> guarded;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (shared_of_[i] < 0) guarded.push_back(&blocks_[i]);
  }
  for (GuardedBlock& slot : shared_) guarded.push_back(&slot);
  return check_guards_of(backend_, guarded);
}

std::string CaseMemory::check_guards(StorageId id) {
  std::string damage = block(id).check_guards();
  const int shared = shared_of_[static_cast<std::size_t>(id.index)];
  if (!damage.empty() || shared < 0) return damage;
  return shared_[static_cast<std::size_t>(shared)].check_guards();
}

std::int64_t guarded_bytes(std::int64_t bytes) {
  return bytes + 3 * static_cast<std::int64_t>(guard_bytes);  // two guards and rounding
}

std::int64_t guarded_bytes(const MemoryPlan& plan) {
  return plan.bytes() + guarded_bytes(0) * static_cast<std::int64_t>(plan.slots.size());
}

}  // namespace gpubench
