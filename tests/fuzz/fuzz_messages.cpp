// Fuzz target: any bytes of a worker's pipe, in pieces of any size, are messages or a WireError. The first byte
// selects: raw bytes of the pipe, or the body of a message, which gets a valid length and checksum.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/run/wire.h"

using namespace gpubench;

namespace {

struct Received {
  std::vector<std::string> messages;
  bool refused = false;
  friend bool operator==(const Received&, const Received&) = default;
};

Received received(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  Received result;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(bytes.substr(at, piece));
      while (const std::optional<Frame> frame = reader.next()) result.messages.push_back(encode_frame(*frame));
    }
  } catch (const WireError&) {
    result.refused = true;
  }
  return result;
}

void read_body(std::string_view body) {
  try {
    const GroupList group = decode_group(body);
    if (decode_group(encode_group(group)) != group) std::abort();
  } catch (const WireError&) {
    // An error is allowed.
  }
  for (const char separator : {' ', '\n'}) {
    try {
      if (split_index(body, separator).second.size() >= body.size()) std::abort();
    } catch (const WireError&) {
      // An error is allowed.
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const bool raw = bytes.front() % 2 == 0;
  bytes.remove_prefix(1);
  if (raw) {
    const Received whole = received(bytes, bytes.size() + 1);
    if (received(bytes, 1) != whole || received(bytes, 7) != whole) std::abort();
    std::string again;
    for (const std::string& message : whole.messages) again += message;
    if (!bytes.starts_with(again)) std::abort();
    return 0;
  }
  read_body(bytes);
  const std::string frame = encode_frame({FrameKind::record, std::string(bytes)});
  if (received(frame, 5).messages != std::vector<std::string>{frame}) std::abort();
  return 0;
}
