// Addresses in this process that stand for memory of another one: nobody can read or write there, and no two buffers of
// any processes have the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "harness/remote/requests.h"

namespace gpubench {

class ReservedMemory {
 public:
  /// `bytes` addresses for the buffer of this number. `done` is called when they are given back: with the last copy of
  /// what is returned. Throws BackendError where no addresses are left.
  [[nodiscard]] static std::shared_ptr<void> reserve(const std::shared_ptr<ReservedMemory>& in, std::uint64_t buffer,
                                                     std::size_t bytes, std::function<void()> done);

  /// Where an address is; none: in no buffer. The end of a buffer is a place in it.
  [[nodiscard]] std::optional<Place> find(const std::byte* address) const;
  /// The same for what must be somewhere. Throws BackendError.
  [[nodiscard]] Place at(const std::byte* address) const;

 private:
  struct Reserved {
    std::uint64_t buffer = 0;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Reserved> reserved_;
};

}  // namespace gpubench
