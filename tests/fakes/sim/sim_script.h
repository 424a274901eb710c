// What a sim backend is told to do wrong, as one string, so that a test can pass it to another process.
//
//   script  = item { ";" item }
//   item    = "opaque"                        device memory that the host must not read directly
//           | "examines"                      copies and examines its memory itself: little crosses to the host
//           | "clock=" nanoseconds            what one run of any op takes, 0: it stands still; else by cost
//           | "uneven=" percent               every other round takes that much longer
//           | "wanders"                       the clock is off by 1 to 97 permille, by the process
//           | "memory=" bytes | "cache=" bytes
//           | "name=" text                     the device's
//           | "plan_ms=" ms                   each plan takes so long, by the real clock
//           | "copy_bytes_per_s=" n           so does what crosses between host and device
//           | "lacks=" type                   plans nothing with a tensor of that type
//           | "fuse=" kind                    claims that fused op, its gain measured
//           | "fuse_unmeasured=" kind         claims it, its gain not measured
//           | "fastest=" name                 offers each op as sim:a, sim:b and sim:c, and finds that one when it
//           tunes | fault [ "/sequence" | "/graph" ] "@" label [ ":" extents ] [ "#" n ]
//
// A fault hits the op with that label; `extents` ("8x16") only where its first output has that shape, `n` only the n-th
// time this backend plans such an op. With "/sequence" it happens inside sequences only, never when the op runs alone;
// with "/graph" inside those that are graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/op_kind.h"
#include "harness/core/tensor.h"

namespace gpubench::sim {

enum class FaultKind {
  wrong_element,  ///< one element of the first output is far off
  wrong_last,     ///< one element of the last output is
  unwritten,      ///< the last quarter of the first output is not written
  transposed,     ///< the first output, a matrix, is written as one of as many rows as it has columns
  last_bit,       ///< the lowest bit of one element of the first output is flipped
  nan,            ///< one element of the first output is NaN
  inf,            ///< one element of the first output is infinite
  guard,          ///< three bytes after the end of the first output are written
  changes_input,  ///< the first element of the first input is changed
  out_of_memory,  ///< throws BackendError
  bad_alloc,      ///< throws std::bad_alloc
  unsupported,    ///< plan() throws Unsupported
  unplanned,      ///< plan() throws BackendError
  kill_in_plan,   ///< plan() ends the process by SIGKILL
  kill,           ///< the process ends by SIGKILL
  segv,           ///< the process ends by SIGSEGV
  abort,          ///< the process ends by SIGABRT
  exit,           ///< the process exits with status 0
  lost,           ///< throws DeviceLost, and so does everything after it in this process
  hang,           ///< does not return
  stubborn,       ///< does not return, and ignores SIGTERM
  drop,           ///< in a sequence: the op does not run
  early,          ///< in a sequence: the op runs before those that it depends on
  stale           ///< in a sequence: the op reads its second input as it was when the sequence was made
};

struct Fault {
  FaultKind kind = FaultKind::wrong_element;
  bool in_sequence_only = false;
  bool in_graph_only = false;
  std::string label;
  std::string extents;  ///< empty: any
  int nth = 0;          ///< 0: every
};

struct Script {
  std::string name = "simulated device";
  bool opaque = false;
  bool examines = false;
  std::string fastest;
  std::optional<double> clock_ns;
  double uneven = 0.0;  ///< a share of the time
  bool wanders = false;
  std::int64_t memory_bytes = std::int64_t{4} << 30U;
  std::int64_t cache_bytes = std::int64_t{64} << 10U;
  std::int64_t plan_ms = 0;
  std::int64_t copy_bytes_per_s = 0;  ///< 0: at once
  std::string lacks;                  ///< name of a type
  std::vector<FusionClaim> claims;
  std::vector<Fault> faults;
};

/// Throws UsageError naming the item that makes no sense.
[[nodiscard]] Script parse_script(std::string_view text);

/// Throws Unsupported where one of the tensors is of the type that the script's device lacks.
void expect_types_of_device(const Script& script, std::span<const TensorSpec> tensors);

}  // namespace gpubench::sim
