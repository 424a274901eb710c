// What a backend is: a device, or a group of ranks with a device each, that plans, binds, sequences and times op calls.
//
// The harness owns all memory, the workspace, the guards and the loop; a backend owns only its plans and bound work.
// Order of use: plan (chooses, tunes, once per op) -> bind (cheap, repeatable: for checking, for each cold copy) ->
// run one by one (check) or sequence -> time (one round) -> run the sequence again (recheck).
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
  std::vector<std::pair<std::string, std::string>> libraries;   ///< name -> version that really runs
};

/// Names of those DeviceInfo::properties that are not only printed. A backend fills in what it knows; readers must do
/// without the rest.
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
/// How the use of a CPU's instruction sets is limited, "limited to avx512_core_bf16", and why; missing where it is not.
inline constexpr std::string_view cpu_isa = "cpu_isa";
inline constexpr std::string_view cpu_isa_reason = "cpu_isa_reason";
inline constexpr std::string_view excluded_kernels = "excluded_kernels";  ///< of libraries, and why
/// Where ranks in several processes are, by rank: hosts, and which of a host's GPUs, "a:0,a:1,b:0"; of CPUs "a,a,b".
inline constexpr std::string_view rank_places = "rank_places";
}  // namespace device_property

/// The property's text; empty where the device has none of that name.
[[nodiscard]] std::string property(const DeviceInfo& device, std::string_view name);

/// Where a rank is.
struct RankPlace {
  std::string host;
  std::string gpu;  ///< its ordinal; empty for a CPU
  /// "b, GPU 1"
  [[nodiscard]] std::string to_string() const;
};
/// device_property::rank_places, by rank; empty where the device has none.
[[nodiscard]] std::vector<RankPlace> rank_places(const DeviceInfo& device);
/// The text of that property.
[[nodiscard]] std::string rank_places_text(std::span<const RankPlace> places);

/// The property as a positive number; empty where it is missing or is not one.
[[nodiscard]] std::optional<double> property_number(const DeviceInfo& device, std::string_view name);

/// "cpu isa limited to avx512_core_bf16: amx is announced, but CPUID leaf 0x1D is empty"; empty where nothing is
/// limited.
[[nodiscard]] std::string cpu_isa_text(const DeviceInfo& device);

/// Device memory, freed when destroyed. Aligned to at least 256 bytes.
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

/// Judges what a candidate computes, before it may be chosen for its speed. The harness implements it with the
/// textbook, which a backend must not see.
class ResultJudge {
 public:
  virtual ~ResultJudge() = default;
  /// Empty where a sample of the op's outputs is within its bounds on these inputs, else by how much it is not: "130 of
  /// 4000 judged elements of 'y' outside their bound, by up to 2.1 times". In host memory; `inputs` as they were before
  /// the op ran. Throws ProgramError where there are more or fewer of them than the op has.
  [[nodiscard]] virtual std::string objection(std::span<const TensorView> inputs,
                                              std::span<const TensorView> outputs) const = 0;
};

/// How an implementation came to be chosen.
enum class Choice {
  only,        ///< there was nothing to choose
  timed,       ///< the fastest of several, which were timed in this process
  untimed,     ///< the library's first proposal: there was no memory to time them in
  remembered,  ///< the fastest when an earlier run timed them (PlanOptions::remembered)
  pinned       ///< asked for by name (PlanOptions::pinned); the harness says so, not a plan
};
template <>
inline constexpr auto enum_names<Choice> = std::to_array<std::string_view>({"only", "timed", "untimed", "remembered",
                                                                            "pinned"});

/// What a plan depends on besides the call; it does not change what the call means.
struct PlanOptions {
  std::string pinned{};  ///< the implementation that a plan must take; empty: the backend's choice
  std::string
      remembered{};  ///< the one that an earlier run found fastest: taken untimed if it is offered, else ignored
  const ResultJudge* judge = nullptr;  ///< judges the results where a plan chooses among several
  bool deterministic = false;          ///< only implementations that give the same bits in every run
  /// Called before each candidate that a plan is chosen from, since trying them may take minutes; may throw, which ends
  /// the planning. May be empty.
  std::function<void()> alive{};
};

/// A call that is to be planned, with what plan() will be given.
struct CallToPlan {
  const OpCall* call = nullptr;
  std::vector<TensorSpec> tensors{};
  PlanOptions options{};
};

/// A chosen implementation of one op call. Immutable; shared by every Launch bound from it.
class PlanImpl {
 public:
  virtual ~PlanImpl() = default;
  /// Who computes: "onednn:brg:avx512_core_amx_bf16", "gpubench:avx512", "cublaslt:algo=21,tile=128x256".
  [[nodiscard]] virtual std::string implementation() const = 0;
  [[nodiscard]] virtual std::size_t workspace_bytes() const { return 0; }
  [[nodiscard]] virtual Choice choice() const { return Choice::only; }
  /// Candidates rejected for their results (PlanOptions::judge): "cublaslt:algo=21: 130 of 4000 judged
  /// elements of 'y' outside their bound, by up to 2.1 times".
  [[nodiscard]] virtual std::vector<std::string> rejected() const { return {}; }
};
using Plan = std::shared_ptr<const PlanImpl>;

/// Bound work: running it allocates nothing, selects nothing, logs nothing. Only its backend knows its content.
class LaunchImpl {
 public:
  virtual ~LaunchImpl() = default;
};
using Launch = std::shared_ptr<const LaunchImpl>;

/// Scratch memory for one launch, owned by the harness; may be shared by launches that never run at the same time.
struct Workspace {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// How a sequence may be run: for each launch the earlier ones it must wait for.
struct Schedule {
  std::vector<std::vector<int>> dependencies;
  LaunchMode mode = LaunchMode::stream;
};

/// One round: `samples` timed intervals of `batch` runs each, after an untimed warm-up.
struct RoundPlan {
  int samples = 1;
  std::int64_t batch = 1;
  int warmup_calls = 0;
  double warmup_s = 0.0;  ///< at least this long as well
  Cadence cadence = Cadence::streaming;
};

/// What one rank took for each interval, in nanoseconds.
struct RankTimes {
  std::vector<double> ns;
};

/// What one round measured; all in nanoseconds per interval (of `batch` runs).
struct RoundTimes {
  std::vector<double> device_ns;  ///< by the device's own clock; equal to wall_ns on a CPU. The largest over the ranks
  std::vector<double> wall_ns;    ///< host steady clock around the interval, device idle at both ends
  std::optional<std::vector<RankTimes>> ranks{};  ///< device_ns of each rank, where there are several
  /// Runs since the call began, those of the warm-up included: as many from the same state lead to the same state. 0:
  /// unknown.
  std::int64_t runs = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual const DeviceInfo& device() const = 0;
  /// Caveats on every number: "oversubscribed", "virtual".
  [[nodiscard]] virtual std::vector<std::string> flags() const { return {}; }
  /// After DeviceLost: work may still be running that cannot be stopped. Neither the backend nor memory that it gave
  /// out may then be freed; the process has to end.
  [[nodiscard]] virtual bool hangs() const { return false; }

  /// Throws BackendError when memory runs out, with the byte count in the text.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;
  /// Memory of one rank's device; a backend of one device has rank 0 only. Throws as `allocate`.
  [[nodiscard]] virtual Buffer allocate_on(int rank, std::size_t bytes);
  /// Memory that is not the device's own, for tensors that are placed there (Placement::memory); `write`, `read` and
  /// `fill` take it like any other. Throws Unsupported where the backend has none, as it does unless overridden.
  [[nodiscard]] virtual Buffer allocate_in(Memory memory, std::size_t bytes);
  /// Host to device and back; complete on return.
  virtual void write(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void read(std::span<std::byte> host, const std::byte* device) = 0;
  /// Runs of `host.size() / from.size()` bytes each, packed, from anywhere in memory that the backend gave out. As many
  /// reads unless overridden.
  virtual void read_runs(std::span<std::byte> host, std::span<const std::byte* const> from);
  /// `bytes` bytes of `pattern` repeated; complete on return. Where a device can do it itself, nothing crosses the bus.
  virtual void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes);
  /// True when device pointers may be read by the host directly, so that judging needs no copy.
  [[nodiscard]] virtual bool host_visible() const = 0;

  /// Between two places of this backend's memory, which do not overlap; complete on return. Crosses the host unless
  /// overridden.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  /// Whether gather(), scan() and fingerprint() run where the memory is, so that little has to cross to the host. Those
  /// of this class use `read`: they are the trusted ones, which a backend's own must equal.
  [[nodiscard]] virtual bool examines_memory() const { return host_visible(); }
  /// Runs of `host.size() / offsets.size()` bytes each, packed: run i begins offsets[i] bytes from `device`.
  virtual void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets);
  /// The elements at `device` in rows of `rows.columns`, whose starts are `rows.stride` elements apart, in chunks of
  /// scan_chunk_elements (the last may have fewer) without regard to where rows end; `chunks` has one entry for each.
  virtual void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows);
  /// gpubench::fingerprint() of the bytes there.
  [[nodiscard]] virtual std::uint64_t fingerprint(const std::byte* device, std::size_t bytes);

  /// Announces the calls that plan() will be asked for, so that a library that compiles code for each can use all
  /// cores. Only a hint: plan() reports what goes wrong. Calls `alive` after each call; when that throws, stops.
  virtual void announce_plans(std::span<const CallToPlan> /*calls*/, const std::function<void()>& /*alive*/) {}
  /// Chooses and tunes an implementation for the call; `tensors` are the specs of its inputs, then its outputs.
  /// Throws Unsupported with the library's own words where the backend lacks the op, the type or the layout.
  /// Nothing keeps the options longer than the call.
  [[nodiscard]] virtual Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                                  const PlanOptions& options = {}) = 0;
  /// `tensors`: inputs, then outputs, as planned. An updated input and its output have the same address.
  [[nodiscard]] virtual Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) = 0;
  /// One launch that runs all of them, respecting the schedule.
  [[nodiscard]] virtual Launch sequence(std::span<const Launch> launches, const Schedule& schedule) = 0;
  /// Foreign work as a launch of this backend: `work` is called with the stream to enqueue on, null where there is
  /// none. Throws Unsupported where the backend takes none, as it does unless overridden.
  [[nodiscard]] virtual Launch launch_of(std::function<void(void* stream)> work);
  /// Runs once and waits. Throws BackendError.
  virtual void run(const Launch& launch) = 0;
  /// One round; sample i, run j uses copies[(i * batch + j) mod copies.size()]. Allocates nothing that is timed.
  [[nodiscard]] virtual RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) = 0;

  /// Calls `work`, which must not throw, on every thread of this process that runs ops, at the same time: to look at
  /// what belongs to a thread. Of this class: on the calling thread.
  virtual void on_each_thread(const std::function<void()>& work) { work(); }

  /// Whether the op must not be replaced by a fused one, since the backend has a reason to run just this op.
  [[nodiscard]] virtual bool keeps(const OpCall& /*call*/, std::span<const TensorSpec> /*tensors*/) { return false; }
  /// The fused ops that fuse() may use.
  [[nodiscard]] virtual std::span<const FusionClaim> fused_ops() const { return {}; }
};

}  // namespace gpubench
