#include "harness/run/wire.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

constexpr std::uint32_t magic = 0x57425047;  // "GPBW"
constexpr std::size_t header_bytes = 12;

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFFU);
}

std::uint32_t get_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

bool known(char kind) {
  switch (static_cast<FrameKind>(kind)) {
    case FrameKind::group:
    case FrameKind::phase:
    case FrameKind::round:
    case FrameKind::record:
    case FrameKind::beat:
    case FrameKind::clock:
    case FrameKind::note:
    case FrameKind::done:
    case FrameKind::leaving:
    case FrameKind::refusal: return true;
  }
  return false;
}

// send() on sockets, for an error instead of SIGPIPE if the reader is closed.
ssize_t write_once(int fd, const char* data, std::size_t bytes) {
  const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(fd, data, bytes) : sent;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  std::string payload(1, static_cast<char>(frame.kind));
  payload += frame.body;
  if (payload.size() > largest_frame_bytes) {
    throw WireError(
        fmt::format("a message of {} bytes is longer than the limit of {} bytes", payload.size(), largest_frame_bytes));
  }
  std::string bytes;
  put_u32(bytes, magic);
  put_u32(bytes, static_cast<std::uint32_t>(payload.size()));
  put_u32(bytes, crc32(payload));
  return bytes + payload;
}

std::optional<Frame> FrameReader::next() {
  if (pending_.size() < header_bytes) {
    // Detects garbage that is shorter than a header; next() would wait for the rest.
    std::string expected;
    put_u32(expected, magic);
    const std::size_t seen = std::min(pending_.size(), expected.size());
    if (pending_.compare(0, seen, expected, 0, seen) != 0) throw WireError("bytes that do not start a message");
    return std::nullopt;
  }
  if (get_u32(pending_, 0) != magic) throw WireError("bytes that do not start a message");
  const std::size_t bytes = get_u32(pending_, 4);
  if (bytes == 0 || bytes > largest_frame_bytes)
    throw WireError(fmt::format("a message of {} bytes; expected 1 to {}", bytes, largest_frame_bytes));
  if (pending_.size() < header_bytes + bytes) return std::nullopt;
  const std::string_view payload = std::string_view(pending_).substr(header_bytes, bytes);
  if (crc32(payload) != get_u32(pending_, 8)) throw WireError("a message with a wrong checksum");
  if (!known(payload.front())) throw WireError("a message of an unknown kind");
  Frame frame{static_cast<FrameKind>(payload.front()), std::string(payload.substr(1))};
  pending_.erase(0, header_bytes + bytes);
  return frame;
}

void write_frame(int fd, const Frame& frame) {
  const std::string bytes = encode_frame(frame);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write_once(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw WireError(fmt::format("could not write to the other process: {}", std::strerror(errno)));
    done += static_cast<std::size_t>(written);
  }
}

bool read_some(int fd, FrameReader& reader) {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(fd, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got < 0 && errno == ECONNRESET) return false;
  if (got < 0) throw WireError(fmt::format("could not read from the other process: {}", std::strerror(errno)));
  reader.feed(std::string_view(piece.data(), static_cast<std::size_t>(got)));
  return got > 0;
}

std::string encode_group(const GroupList& group) {
  std::string body;
  for (const auto& [index, id] : group) body += fmt::format("{} {}\n", index, id);
  return body;
}

GroupList decode_group(std::string_view body) {
  GroupList group;
  while (!body.empty()) {
    const std::size_t end = body.find('\n');
    if (end == std::string_view::npos) throw WireError("a list of cases that ends in the middle of a line");
    const auto [index, id] = split_index(body.substr(0, end), ' ');
    group.emplace_back(index, id);
    body.remove_prefix(end + 1);
  }
  return group;
}

std::pair<std::size_t, std::string_view> split_index(std::string_view body, char separator) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), index);
  if (error != std::errc() || end == body.data() + body.size() || *end != separator)
    throw WireError("a message without the number of its case");
  return {index, body.substr(static_cast<std::size_t>(end - body.data()) + 1)};
}

}  // namespace gpubench
