// Requests of process 0 to the others, and their answers, as messages of message.h between processes of one build.
// A process serves one request at a time, sends beats meanwhile, and answers it once.
//
//   request   content                                  answer
//   hello                                              Hello
//   describe                                           device (put_device), fused ops: name, measured
//   open      set u64, ranks i32                       -
//   close     set                                      -
//   allocate  bytes u64                                buffer u64
//   release   buffers, plans, launches: lists of u64   not answered
//   write     Place, bytes                             -
//   read      Place, count u64                         bytes
//   runs      bytes of a run u64, Places               bytes
//   fill      Place, pattern, count u64                -
//   copy      to Place, from Place, count u64          -
//   gather    Place, bytes of a run u64, offsets i64   bytes
//   scan      Place, type, rows, columns, stride i64   ChunkScan of each chunk
//   print     Place, count u64                         fingerprint u64
//   keeps     call, specs                              bool
//   plan      call, specs, options                     plan u64, implementation, workspace u64, choice, rejected
//   bind      plan u64, tensors, workspace: Place, u64 launch u64
//   offers    set, call, specs of all members          implementation of the collective
//   join      set, call, tensors of all members        launch u64: the rank's part of the collective
//   run       set, launch u64                          -
//   interval  set, forget bool, new programs, order    nanoseconds f64
//   end       exit code i32                            not answered
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

/// First field of the answer to `hello`; the rest is read only if it is equal.
inline constexpr std::uint32_t protocol_version = 1;

/// Limit of the tensor bytes in one message.
inline constexpr std::size_t max_piece_bytes = std::size_t{8} << 20U;

/// Limit of the bytes of the chunks of one scan.
inline constexpr std::size_t max_message_bytes = std::size_t{64} << 20U;

/// Interval of the beats of a busy rank.
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
  done,    ///< followed by the answer in the table
  failed,  ///< followed by a Failure and its text
  beat     ///< followed by a Beat; the answer is still to come
};
template <>
inline constexpr auto enum_names<Answer> = std::to_array<std::string_view>({"done", "failed", "beat"});

enum class Failure { error, unsupported, program, memory, lost };
template <>
inline constexpr auto enum_names<Failure> = std::to_array<std::string_view>({"error", "unsupported", "program",
                                                                             "memory", "lost"});

/// A byte offset in a buffer of the serving process; buffer 0: no buffer.
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

struct Heartbeat {
  std::uint64_t steps = 0;  ///< grows at the begin and the end of every op
  bool waits = false;       ///< in a collective, and not computing
  std::string label;        ///< current op, or the last one
};

struct Hello {
  std::string build;  ///< id of the sources and headers it was built from
  std::string host;
  int pid = 0;
  double clock_s = 0.0;  ///< seconds since the epoch
  /// Flags that must be equal in all processes, with their values: --seed, 42.
  std::map<std::string, std::string> settings = {};
};

void put_spec(MessageWriter& to, const TensorSpec& spec);
/// Throws MessageError; ProgramError for an invalid shape.
[[nodiscard]] TensorSpec get_spec(MessageReader& from);
void put_specs(MessageWriter& to, std::span<const TensorSpec> specs);
[[nodiscard]] std::vector<TensorSpec> get_specs(MessageReader& from);

void put_call(MessageWriter& to, const OpCall& call);
/// Finds the op by name. Throws MessageError for an unknown op, UsageError for attributes that it does not have.
[[nodiscard]] OpCall get_call(MessageReader& from);

void put_device(MessageWriter& to, const DeviceInfo& device);
[[nodiscard]] DeviceInfo get_device(MessageReader& from);

}  // namespace gpubench
