#include "harness/core/backend.h"

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {

std::string_view name(Choice choice) {
  switch (choice) {
    case Choice::only: return "only";
    case Choice::timed: return "timed";
    case Choice::untimed: return "untimed";
    case Choice::remembered: return "remembered";
    case Choice::pinned: return "pinned";
  }
  return "?";
}

Buffer Backend::allocate_in(Memory memory, std::size_t /*bytes*/) {
  throw Unsupported("the " + device().kind + " backend places no tensor in " + std::string(name(memory)));
}

Buffer Backend::allocate_on(int rank, std::size_t bytes) {
  if (rank != 0)
    throw BackendError("the " + device().kind + " backend is one rank; there is no rank " + std::to_string(rank));
  return allocate(bytes);
}

void Backend::fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) {
  if (pattern.empty() || bytes == 0) return;
  constexpr std::size_t about = std::size_t{64} << 10U;
  const std::size_t repeats = std::max<std::size_t>(1, std::min(about, bytes) / pattern.size());
  std::vector<std::byte> block(repeats * pattern.size());
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = pattern[i % pattern.size()];
  for (std::size_t done = 0; done < bytes; done += block.size()) {
    write(device + done, std::span(block).first(std::min(block.size(), bytes - done)));
  }
}

Launch Backend::launch_of(std::function<void(void* stream)>) {
  throw Unsupported("the " + device().kind + " backend runs no work but its own");
}

}  // namespace gpubench
