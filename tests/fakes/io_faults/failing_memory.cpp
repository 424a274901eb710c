#include "tests/fakes/io_faults/io_faults.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> armed{false};
std::atomic<long> left{0};
bool all_after = false;

}  // namespace

void* operator new(std::size_t bytes) {
  if (armed.load(std::memory_order_relaxed)) {
    const long number = --left;
    if (number == 0 || (number < 0 && all_after)) throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace gpubench {

FailingMemory::FailingMemory(long k, bool and_after) {
  left = k;
  all_after = and_after;
  armed = true;
}
FailingMemory::~FailingMemory() { armed = false; }
bool FailingMemory::struck() const { return left <= 0; }

}  // namespace gpubench
