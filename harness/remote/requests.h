// What process 0 asks of the others, and what they answer: one request at a time to each, which it answers once, and
// beats in between that say how far it is. Everything is a message of message.h; both sides are of one build.
//
//   request   its content                              its answer
//   hello                                              Hello
//   describe                                           the device (put_device), fused ops: name, measured
//   open      set u64, ranks i32                       -
//   close     set                                      -
//   allocate  bytes u64                                buffer u64
//   release   buffers, plans, launches: lists of u64   none is sent
//   write     Place, bytes                             -
//   read      Place, count u64                         bytes
//   runs      bytes of a run u64, Places                bytes
//   fill      Place, pattern, count u64                -
//   copy      to Place, from Place, count u64          -
//   gather    Place, bytes of a run u64, offsets i64   bytes
//   scan      Place, type, rows, columns, stride i64   ChunkScan of each chunk
//   print     Place, count u64                         u64: the fingerprint
//   keeps     call, specs                              bool
//   plan      call, specs, options                     plan u64, implementation, workspace u64, choice, rejected
//   bind      plan u64, tensors, workspace: Place, u64  launch u64
//   offers    set, call, specs of all members          implementation of a collective
//   join      set, call, tensors of all members        launch u64: its part of a collective
//   run       launch u64                               -
//   interval  set, new programs, their order           f64: nanoseconds
//   end       exit code i32                            none is sent
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/enum_names.h"
#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "harness/remote/message.h"

namespace gpubench {

/// First in every Hello: a process of another number is not understood any further.
inline constexpr std::uint32_t protocol_version = 1;

/// Bytes of tensors, at most, in one message.
inline constexpr std::size_t max_piece_bytes = std::size_t{8} << 20U;

/// Of one message in all: eight thousand million elements can be scanned at a time.
inline constexpr std::size_t max_message_bytes = std::size_t{64} << 20U;

/// A rank that is at work says so this often.
inline constexpr double beat_every_s = 0.5;

enum class Request {
  hello,
  describe,
  open,
  close,
  allocate,
  release,
  write,
  read,
  runs,
  fill,
  copy,
  gather,
  scan,
  print,
  keeps,
  plan,
  bind,
  offers,
  join,
  run,
  interval,
  end
};
template <>
inline constexpr auto enum_names<Request> = std::to_array<std::string_view>(
    {"hello",  "describe", "open",  "close", "allocate", "release", "write",  "read", "runs", "fill",     "copy",
     "gather", "scan",     "print", "keeps", "plan",     "bind",    "offers", "join", "run",  "interval", "end"});

enum class Answer {
  done,    ///< what the table says
  failed,  ///< a Failure and its text
  beat     ///< a Beat: the answer is still to come
};
template <>
inline constexpr auto enum_names<Answer> = std::to_array<std::string_view>({"done", "failed", "beat"});

/// Which exception it was.
enum class Failure { error, unsupported, program, memory, lost };
template <>
inline constexpr auto enum_names<Failure> = std::to_array<std::string_view>({"error", "unsupported", "program",
                                                                             "memory", "lost"});

/// A place in a buffer of the process that is asked; buffer 0: none.
struct Place {
  std::uint64_t buffer = 0;
  std::uint64_t offset = 0;
};
inline void put_place(MessageWriter& to, const Place& place) {
  to.put(place.buffer);
  to.put(place.offset);
}
[[nodiscard]] inline Place get_place(MessageReader& from) {
  const auto buffer = from.get<std::uint64_t>();
  return {buffer, from.get<std::uint64_t>()};
}

/// How far a process is.
struct Heartbeat {
  std::uint64_t steps = 0;  ///< grows with every op that it begins or ends
  bool waits = false;       ///< it is in a collective, and computes nothing beside it
  std::string label;        ///< of the op that it is in, or was in last
};

/// Who a process is.
struct Hello {
  std::string build;  ///< sources and headers that it was built of
  std::string host;
  int pid = 0;
  double clock_s = 0.0;  ///< time of day
  /// Flags that all processes must share, with their values: --seed, 42.
  std::map<std::string, std::string> settings = {};
};

// Ops and their tensors as messages: what another process plans and binds.

void put_spec(MessageWriter& to, const TensorSpec& spec);
/// Throws MessageError; ProgramError for a shape that cannot be.
[[nodiscard]] TensorSpec get_spec(MessageReader& from);
void put_specs(MessageWriter& to, std::span<const TensorSpec> specs);
[[nodiscard]] std::vector<TensorSpec> get_specs(MessageReader& from);

void put_call(MessageWriter& to, const OpCall& call);
/// The op is found by its name. Throws MessageError for one that there is not, and UsageError for attributes that it
/// does not have.
[[nodiscard]] OpCall get_call(MessageReader& from);

void put_device(MessageWriter& to, const DeviceInfo& device);
[[nodiscard]] DeviceInfo get_device(MessageReader& from);

}  // namespace gpubench
