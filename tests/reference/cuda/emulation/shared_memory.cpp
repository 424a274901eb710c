// Shared memory: created per block; each cell logs its accesses.
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/reference/cuda/emulation/machine.h"

namespace gpubench::cuda::emulation {
namespace {

constexpr int bank_lanes = 32;

struct SharedObject {
  std::vector<std::byte> memory;
  std::uint32_t block_run = 0;
};

bool happened_before(const CellLog::Visit& visit, const Position& now) {
  if (visit.block_run != now.block_run) return true;
  if (visit.thread == now.thread || visit.epoch < now.epoch) return true;
  return visit.thread / bank_lanes == now.thread / bank_lanes && visit.warp_epoch < now.warp_epoch;
}

CellLog::Visit visit_of(const Position& now) { return {now.block_run, now.thread, now.epoch, now.warp_epoch}; }

}  // namespace

void* shared_object(const void* key, std::size_t bytes, void (*construct)(void*)) {
  static std::map<const void*, SharedObject> objects;
  SharedObject& object = objects[key];
  const std::uint32_t block_run = position().block_run;
  object.memory.resize(bytes);
  if (object.block_run != block_run) {
    object.block_run = block_run;
    construct(object.memory.data());
  }
  return object.memory.data();
}

void read_cell(CellLog& log) {
  memory_point();
  const Position now = position();
  if (log.writer.block_run != now.block_run) fail("reads shared memory that no thread of its block has written");
  if (!happened_before(log.writer, now)) {
    fail("reads shared memory that thread " + std::to_string(log.writer.thread) + " wrote with no barrier since");
  }
  log.reader = visit_of(now);
}

void write_cell(CellLog& log) {
  memory_point();
  const Position now = position();
  if (!happened_before(log.writer, now)) {
    fail("writes shared memory that thread " + std::to_string(log.writer.thread) + " wrote with no barrier since");
  }
  if (!happened_before(log.reader, now)) {
    fail("writes shared memory that thread " + std::to_string(log.reader.thread) + " read with no barrier since");
  }
  log.writer = visit_of(now);
}

}  // namespace gpubench::cuda::emulation
