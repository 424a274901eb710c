// The buffers of a process that lends its device, by the numbers that process 0 uses. Every place in a request is
// checked against the size of its buffer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "harness/core/backend.h"
#include "harness/remote/message.h"
#include "harness/remote/requests.h"

namespace gpubench {

/// Objects known to the other side by number. Numbers are never reused.
template <class Thing>
class Numbered {
 public:
  explicit Numbered(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] std::uint64_t add(Thing thing) {
    objects_.emplace(++last_, std::move(thing));
    return last_;
  }
  [[nodiscard]] Thing& at(std::uint64_t number) {
    const auto found = objects_.find(number);
    if (found == objects_.end()) throw MessageError("no " + what_ + " " + std::to_string(number) + " exists");
    return found->second;
  }
  void drop(std::uint64_t number) { objects_.erase(number); }

 private:
  std::string what_;
  std::map<std::uint64_t, Thing> objects_;
  std::uint64_t last_ = 0;
};

class ServedMemory {
 public:
  [[nodiscard]] std::uint64_t add(Buffer buffer) { return buffers_.add(std::move(buffer)); }
  void drop(std::uint64_t number) { buffers_.drop(number); }

  /// The address of `bytes` bytes at a place; null for buffer 0. Throws MessageError for bytes outside a buffer.
  [[nodiscard]] std::byte* at(const Place& place, std::uint64_t bytes);
  /// Serves write, read, runs, fill, copy, gather, scan and print. Throws MessageError.
  void act(Request request, Backend& device, MessageReader& message, MessageWriter& answer);

 private:
  /// at(), but throws MessageError for buffer 0.
  [[nodiscard]] std::byte* mapped_address(const Place& place, std::uint64_t bytes);
  void runs(Backend& device, MessageReader& message, MessageWriter& answer);
  void gather(Backend& device, const Place& place, MessageReader& message, MessageWriter& answer);
  void scan(Backend& device, const Place& place, MessageReader& message, MessageWriter& answer);

  Numbered<Buffer> buffers_{"buffer"};
};

}  // namespace gpubench
