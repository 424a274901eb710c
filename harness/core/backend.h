// A backend: a device, or a group of ranks with a device each, that plans, binds, sequences and times op calls.
//
// The harness owns memory, workspace, guards and the loop; a backend owns only its plans and bound work. Order of use:
// plan (chooses and tunes, once per op), bind (cheap, repeatable: for checks, for each cold copy), run one by one
// (check) or sequence, time (one round), run the sequence again (recheck).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/case.h"
#include "harness/core/enum_names.h"
#include "harness/core/op_kind.h"
#include "harness/core/program.h"
#include "harness/core/row_view.h"
#include "harness/core/storage_content.h"
#include "harness/core/tensor.h"

namespace gpubench {

struct DeviceInfo {
  std::string kind;                  ///< "cpu", "cuda", "sim"
  std::string name;                  ///< as the vendor prints it; untrusted text
  int units = 1;                     ///< threads, SMs
  std::int64_t memory_bytes = 0;     ///< in all
  std::int64_t available_bytes = 0;  ///< free for the harness now
  std::int64_t cache_bytes = 0;      ///< last level, as counted for cold copies (CPU: at most 32 MiB)
  std::vector<std::pair<std::string, std::string>> properties;  ///< instruction sets, clocks, ...
  std::vector<std::pair<std::string, std::string>> libraries;   ///< name -> version of the loaded library
};

/// Names of DeviceInfo::properties that code reads. All are optional.
namespace device_property {
inline constexpr std::string_view compute_capability = "compute_capability";  ///< "9.0"
inline constexpr std::string_view pci_bus_id = "pci_bus_id";                  ///< "0000:18:00.0"
inline constexpr std::string_view ordinal = "ordinal";                        ///< of several devices of its kind
inline constexpr std::string_view uuid = "uuid";                              ///< "GPU-...", as NVML writes it
inline constexpr std::string_view max_sm_mhz = "max_sm_mhz";
inline constexpr std::string_view max_memory_mhz = "max_memory_mhz";
inline constexpr std::string_view memory_bus_bits = "memory_bus_bits";
inline constexpr std::string_view power_limit_w = "power_limit_w";
inline constexpr std::string_view ecc = "ecc";        ///< "on", "off"
inline constexpr std::string_view mig = "mig";        ///< likewise
inline constexpr std::string_view driver = "driver";  ///< "580.65.06"
/// Limits on a CPU's instruction sets, "limited to avx512_core_bf16", and why; missing if there are none.
inline constexpr std::string_view cpu_isa = "cpu_isa";
inline constexpr std::string_view cpu_isa_reason = "cpu_isa_reason";
inline constexpr std::string_view excluded_kernels = "excluded_kernels";  ///< of libraries, and why
/// Hosts and GPU ordinals of ranks in several processes, by rank: "a:0,a:1,b:0"; of CPUs "a,a,b".
inline constexpr std::string_view rank_places = "rank_places";
}  // namespace device_property

/// The property's text; empty if missing.
[[nodiscard]] std::string property(const DeviceInfo& device, std::string_view name);

struct RankPlace {
  std::string host;
  std::string gpu;  ///< its ordinal; empty for a CPU
  [[nodiscard]] std::string to_string() const;
};
/// device_property::rank_places, by rank; empty if missing.
[[nodiscard]] std::vector<RankPlace> rank_places(const DeviceInfo& device);
[[nodiscard]] std::string rank_places_text(std::span<const RankPlace> places);

/// The property as a positive number; empty if missing or not one.
[[nodiscard]] std::optional<double> property_number(const DeviceInfo& device, std::string_view name);

/// "cpu isa limited to avx512_core_bf16: amx is announced, but CPUID leaf 0x1D is empty"; empty if there are no limits.
[[nodiscard]] std::string cpu_isa_text(const DeviceInfo& device);

class Buffer {
 public:
  Buffer() = default;
  Buffer(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner)
      : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
};

/// Judges a candidate's results before it may be chosen for its speed. The harness implements it with the textbook,
/// which a backend must not see.
class ResultJudge {
 public:
  virtual ~ResultJudge() = default;
  /// Empty if a sample of the op's outputs is within its bounds, else the fault: "130 of 4000 judged elements of 'y'
  /// outside their bound, by up to 2.1 times". Views are in host memory; `inputs` hold the data from before the op.
  /// Throws ProgramError if their numbers are not the op's.
  [[nodiscard]] virtual std::string objection(std::span<const TensorView> inputs,
                                              std::span<const TensorView> outputs) const = 0;
};

enum class Choice {
  only,        ///< there was no choice
  timed,       ///< the fastest of several, timed in this process
  untimed,     ///< the library's first proposal: no memory for timing them
  remembered,  ///< the fastest in an earlier run (PlanOptions::remembered)
  pinned       ///< named by the user (PlanOptions::pinned); set by the harness, not by a plan
};
template <>
inline constexpr auto enum_names<Choice> = std::to_array<std::string_view>({"only", "timed", "untimed", "remembered",
                                                                            "pinned"});

/// Options of a plan that don't change the meaning of the call.
struct PlanOptions {
  std::string pinned{};  ///< the required implementation; empty: the backend's choice
  std::string
      remembered{};  ///< the one that an earlier run found fastest: taken untimed if it is offered, else ignored
  const ResultJudge* judge = nullptr;  ///< judges results where a plan has several candidates
  bool deterministic = false;          ///< only implementations that give the same bits in every run
  /// Called before each candidate, because trying them may take minutes; may throw, which ends the planning. May be
  /// empty.
  std::function<void()> alive{};
};

struct CallToPlan {
  const OpCall* call = nullptr;
  std::vector<TensorSpec> tensors{};
  PlanOptions options{};
};

/// A chosen implementation of one op call. Immutable; shared by every Launch bound from it.
class PlanImpl {
 public:
  virtual ~PlanImpl() = default;
  /// The kernel: "onednn:brg:avx512_core_amx_bf16", "gpubench:avx512", "cublaslt:algo=21,tile=128x256".
  [[nodiscard]] virtual std::string implementation() const = 0;
  [[nodiscard]] virtual std::size_t workspace_bytes() const { return 0; }
  [[nodiscard]] virtual Choice choice() const { return Choice::only; }
  /// Candidates rejected for wrong results (PlanOptions::judge): "cublaslt:algo=21: 130 of 4000 judged elements of 'y'
  /// outside their bound, by up to 2.1 times".
  [[nodiscard]] virtual std::vector<std::string> rejected() const { return {}; }
};
using Plan = std::shared_ptr<const PlanImpl>;

/// Bound work: a run allocates, selects and logs nothing. Opaque outside its backend.
class LaunchImpl {
 public:
  virtual ~LaunchImpl() = default;
};
using Launch = std::shared_ptr<const LaunchImpl>;

/// Scratch memory for one launch, owned by the harness; may be shared by launches that never run concurrently.
struct Workspace {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// For each launch of a sequence, the earlier ones it must wait for.
struct Schedule {
  std::vector<std::vector<int>> dependencies;
  LaunchMode mode = LaunchMode::stream;
};

/// One round: `samples` timed intervals of `batch` runs each, after an untimed warm-up.
struct RoundPlan {
  int samples = 1;
  std::int64_t batch = 1;
  int warmup_calls = 0;
  double warmup_s = 0.0;  ///< the minimum duration of the warm-up
  Cadence cadence = Cadence::streaming;
};

/// Nanoseconds of one rank for each interval.
struct RankTimes {
  std::vector<double> ns;
};

/// Nanoseconds per interval (of `batch` runs) in one round.
struct RoundTimes {
  std::vector<double> device_ns;                  ///< device clock; equal to wall_ns on a CPU; the maximum over ranks
  std::vector<double> wall_ns;                    ///< host steady clock around the interval, device idle at both ends
  std::optional<std::vector<RankTimes>> ranks{};  ///< device_ns of each rank, if there are several
  /// Runs since the call began, with the warm-up: the same number from the same state gives the same state. 0: unknown.
  std::int64_t runs = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual const DeviceInfo& device() const = 0;
  /// Caveats on every number: "oversubscribed", "virtual".
  [[nodiscard]] virtual std::vector<std::string> flags() const { return {}; }
  /// After DeviceLost: work may still be running that cannot be stopped. Then neither the backend nor its memory may be
  /// freed; the process has to end.
  [[nodiscard]] virtual bool hangs() const { return false; }

  /// Throws BackendError with the byte count when memory runs out.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;
  /// Memory of one rank's device; a backend of one device has rank 0 only. Throws as `allocate`.
  [[nodiscard]] virtual Buffer allocate_on(int rank, std::size_t bytes);
  /// Memory outside the device, for tensors with another Placement::memory; works with `write`, `read` and `fill`. The
  /// default throws Unsupported.
  [[nodiscard]] virtual Buffer allocate_in(Memory memory, std::size_t bytes);
  /// Host to device and back; complete on return.
  virtual void write(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void read(std::span<std::byte> host, const std::byte* device) = 0;
  /// Reads runs of `host.size() / from.size()` bytes each, packed, from any memory of the backend. The default reads
  /// them one by one.
  virtual void read_runs(std::span<std::byte> host, std::span<const std::byte* const> from);
  /// Repeats `pattern` over `bytes` bytes; complete on return. Avoids transfers to the device where possible.
  virtual void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes);
  /// True if the host can read device pointers directly, so that judging needs no copy.
  [[nodiscard]] virtual bool host_visible() const = 0;

  /// Copies between disjoint memory of this backend; complete on return. The default copies through the host.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  /// Whether gather(), scan() and fingerprint() run where the memory is, to avoid transfers. The default versions use
  /// `read` and are the trusted ones: overrides must give equal results.
  [[nodiscard]] virtual bool examines_memory() const { return host_visible(); }
  /// Packed runs of `host.size() / offsets.size()` bytes each: run i begins offsets[i] bytes from `device`.
  virtual void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets);
  /// Scans the elements at `device` in rows of `rows.columns`, whose starts are `rows.stride` elements apart, in chunks
  /// of scan_chunk_elements (the last may be shorter) that ignore row ends; `chunks` has one entry for each.
  virtual void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows);
  [[nodiscard]] virtual std::uint64_t fingerprint(const std::byte* device, std::size_t bytes);

  /// Announces later plan() calls, so that a library that compiles code can use all cores. Only a hint: plan() reports
  /// errors. Calls `alive` after each call, and stops when that throws.
  virtual void announce_plans(std::span<const CallToPlan> /*calls*/, const std::function<void()>& /*alive*/) {}
  /// Chooses and tunes an implementation for the call; `tensors` are the specs of its inputs, then its outputs. Throws
  /// Unsupported with the library's message if the backend lacks the op, the type or the layout. The options need not
  /// outlive the call.
  [[nodiscard]] virtual Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                                  const PlanOptions& options = {}) = 0;
  /// `tensors`: inputs, then outputs, as planned. An updated input and its output have the same address.
  [[nodiscard]] virtual Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) = 0;
  [[nodiscard]] virtual Launch sequence(std::span<const Launch> launches, const Schedule& schedule) = 0;
  /// External work as a launch: `work` is called with the stream to enqueue on, or null if there is none. The default
  /// throws Unsupported.
  [[nodiscard]] virtual Launch launch_of(std::function<void(void* stream)> work);
  /// Runs once and waits. Throws BackendError.
  virtual void run(const Launch& launch) = 0;
  /// One round; sample i, run j uses copies[(i * batch + j) mod copies.size()]. Allocates nothing in timed intervals.
  [[nodiscard]] virtual RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) = 0;

  /// Calls `work`, which must not throw, concurrently on every thread of this process that runs ops, to inspect thread
  /// state. The default calls it on the calling thread.
  virtual void on_each_thread(const std::function<void()>& work) { work(); }

  /// Whether the op must not be replaced by a fused one.
  [[nodiscard]] virtual bool keeps(const OpCall& /*call*/, std::span<const TensorSpec> /*tensors*/) { return false; }
  [[nodiscard]] virtual std::span<const FusionClaim> fused_ops() const { return {}; }
};

}  // namespace gpubench
