// Messages between processes of the same build: numbers, texts and lists, in the sender's byte order, without padding.
// Input is untrusted: every length is compared with the bytes that are left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/core/error.h"

namespace gpubench {

/// The other process sent an invalid message: another build, or a request out of order.
class MessageError : public BackendError {
 public:
  explicit MessageError(const std::string& what) : BackendError(what) {}
};

class MessageWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  template <NamedEnum E>
  void put(E value) {
    put(static_cast<std::uint8_t>(value));
  }
  void put(std::string_view text) { put(std::as_bytes(std::span(text))); }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(std::span<const std::byte> bytes) {
    put(static_cast<std::uint64_t>(bytes.size()));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// The number of elements as u64, then each by put_one(element).
  template <class List, class PutOne>
  void put_list(const List& list, const PutOne& put_one) {
    put(static_cast<std::uint64_t>(std::size(list)));
    for (const auto& one : list) put_one(one);
  }
  template <class List>
  void put_list(const List& list) {
    put_list(list, [this](const auto& one) { this->put(one); });
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads a MessageWriter's bytes. All functions throw MessageError if the message ends too early or has an invalid
/// value.
class MessageReader {
 public:
  /// The bytes must outlive this and the spans that bytes() returns.
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] bool get_bool() { return get<std::uint8_t>() != 0; }
  template <NamedEnum E>
  [[nodiscard]] E get() {
    const auto value = get<std::uint8_t>();
    if (value >= enum_names<E>.size()) throw MessageError("message has an invalid enum value");
    return static_cast<E>(value);
  }
  [[nodiscard]] std::span<const std::byte> bytes() { return take(get<std::uint64_t>()); }
  [[nodiscard]] std::string text() {
    const std::span<const std::byte> read = bytes();
    return {reinterpret_cast<const char*>(read.data()), read.size()};
  }
  template <class GetOne>
  [[nodiscard]] auto list(const GetOne& get_one) {
    std::vector<decltype(get_one())> all;
    const auto count = get<std::uint64_t>();
    if (count > rest_.size()) throw MessageError("message ends within a list");  // an element takes at least a byte
    all.reserve(std::min<std::uint64_t>(count, 4096));                           // an untrusted count
    for (std::uint64_t i = 0; i < count; ++i) all.push_back(get_one());
    return all;
  }
  template <class T>
  [[nodiscard]] std::vector<T> numbers() {
    return list([this] { return get<T>(); });
  }
  /// Throws MessageError if bytes are left.
  void expect_end() const {
    if (!rest_.empty()) throw MessageError("message is longer than expected");
  }

 private:
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) throw MessageError("message ends too early");
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::byte> rest_;
};

}  // namespace gpubench
