// The script of a sim backend as one string, so that a test can pass it to another process.
//
//   script  = item { ";" item }
//   item    = "opaque"                        device memory that the host must not read directly
//           | "examines"                      copies and examines its memory itself: little crosses to the host
//           | "clock=" nanoseconds            time of one run of any op; 0: the clock stands still; default: by cost
//           | "uneven=" percent               every other round takes that much longer
//           | "wanders"                       the clock is off by 1 to 97 permille, depending on the process
//           | "memory=" bytes | "cache=" bytes
//           | "name=" text                    name of the device
//           | "plan_ms=" ms                   real time of each plan
//           | "copy_bytes_per_s=" n           real bandwidth between host and device
//           | "lacks=" type                   no plan for tensors of that type
//           | "fuse=" kind                    claims that fused op, gain measured
//           | "fuse_unmeasured=" kind         claims that fused op, gain not measured
//           | "fastest=" name                 offers each op as sim:a, sim:b and sim:c; tuning chooses that one
//           | fault [ "/sequence" | "/graph" ] "@" label [ ":" extents ] [ "#" n ]
//
// A fault hits the op with that label: with `extents` ("8x16") only if its first output has that shape, with `n` only
// the n-th such op that this backend plans, with "/sequence" only inside sequences, with "/graph" only inside graphs.
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
  wrong_last,     ///< one element of the last output is far off
  unwritten,      ///< the last quarter of the first output is not written
  transposed,     ///< the first output, a matrix, is written transposed
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
  lost,           ///< throws DeviceLost, as do all later calls of this backend
  hang,           ///< does not return
  stubborn,       ///< does not return, and ignores SIGTERM
  drop,           ///< in a sequence: the op does not run
  early,          ///< in a sequence: the op runs before its dependencies
  stale           ///< in a sequence: the op reads its second input as it was when the sequence was created
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
  double uneven = 0.0;  ///< fraction of the time
  bool wanders = false;
  std::int64_t memory_bytes = std::int64_t{4} << 30U;
  std::int64_t cache_bytes = std::int64_t{64} << 10U;
  std::int64_t plan_ms = 0;
  std::int64_t copy_bytes_per_s = 0;  ///< 0: no delay
  std::string lacks;                  ///< name of a type
  std::vector<FusionClaim> claims;
  std::vector<Fault> faults;
};

/// Throws UsageError naming the invalid item.
[[nodiscard]] Script parse_script(std::string_view text);

/// Throws Unsupported for a tensor of the type that the device lacks.
void expect_types_of_device(const Script& script, std::span<const TensorSpec> tensors);

}  // namespace gpubench::sim
