// Messages between supervisor and worker. Length and checksum detect a worker that crashed within a message or printed
// into the pipe.
//
//   magic u32 | bytes u32 | crc32 u32 | kind u8, body           (little endian; crc and bytes are those of kind + body)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpubench {

/// The other side has ended, or sent something that is not a frame.
class WireError : public std::runtime_error {
 public:
  explicit WireError(const std::string& what) : std::runtime_error(what) {}
};

enum class FrameKind : char {
  group = 'G',    ///< to the worker: "index id" per line, the cases to run
  phase = 'P',    ///< from it: "index phase"
  round = 'O',    ///< from it: "index", newline, the encoded case with the round that just ended
  record = 'R',   ///< from it: "index", newline, the encoded record
  beat = 'B',     ///< from it: still working on the last announced phase
  clock = 'C',    ///< from it: the seconds of its monotonic clock, before a phase or a round
  note = 'N',     ///< from it: a message for the user that belongs to no case
  done = 'D',     ///< from it: the group is finished
  leaving = 'L',  ///< from it: it lost its device and ends; the case that lost it has its record
  refusal = 'E'   ///< from it: the reason why it can run no case
};

struct Frame {
  FrameKind kind = FrameKind::done;
  std::string body;
};

inline constexpr std::size_t largest_frame_bytes = std::size_t{64} << 20U;

[[nodiscard]] std::string encode_frame(const Frame& frame);

class FrameReader {
 public:
  void feed(std::string_view piece) { pending_ += piece; }
  /// The next complete frame, if any. Throws WireError for bytes that are not a frame.
  [[nodiscard]] std::optional<Frame> next();

 private:
  std::string pending_;
};

/// Writes the whole frame, without SIGPIPE on a socket. Throws WireError.
void write_frame(int fd, const Frame& frame);
/// Reads once into `reader`; false at the end of the stream. Throws WireError, not for an interruption by a signal.
[[nodiscard]] bool read_some(int fd, FrameReader& reader);

/// Positions in the plan, with case ids; equal on both sides.
using GroupList = std::vector<std::pair<std::size_t, std::string>>;
[[nodiscard]] std::string encode_group(const GroupList& group);
/// Throws WireError.
[[nodiscard]] GroupList decode_group(std::string_view body);

/// "17 check" -> 17 and "check"; the separator is one character. Throws WireError.
[[nodiscard]] std::pair<std::size_t, std::string_view> split_index(std::string_view body, char separator);

}  // namespace gpubench
