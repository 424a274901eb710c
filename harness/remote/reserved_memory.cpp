#include "harness/remote/reserved_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "harness/core/error.h"

namespace gpubench {

std::shared_ptr<void> ReservedMemory::reserve(const std::shared_ptr<ReservedMemory>& in, std::uint64_t buffer,
                                              std::size_t bytes, std::function<void()> done) {
  // One more, so that the end of a buffer is not the beginning of the next.
  const std::size_t length = bytes + 1;
  void* const data = ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw BackendError(fmt::format("no addresses for {} bytes of another process: {}", bytes, std::strerror(errno)));
  {
    const std::lock_guard lock(in->mutex_);
    in->reserved_[static_cast<const std::byte*>(data)] = {buffer, bytes};
  }
  return {data, [in, length, done = std::move(done)](void* reserved) {
            {
              const std::lock_guard lock(in->mutex_);
              in->reserved_.erase(static_cast<const std::byte*>(reserved));
            }
            ::munmap(reserved, length);
            done();
          }};
}

std::optional<Place> ReservedMemory::find(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  const auto after = reserved_.upper_bound(address);
  if (after == reserved_.begin()) return std::nullopt;
  const auto& [first, reserved] = *std::prev(after);
  const auto offset = static_cast<std::uint64_t>(address - first);
  return offset > reserved.bytes ? std::nullopt : std::optional(Place{reserved.buffer, offset});
}

Place ReservedMemory::at(const std::byte* address) const {
  const std::optional<Place> place = find(address);
  if (!place) throw BackendError("an address is in no memory of the rank's process");
  return *place;
}

}  // namespace gpubench
