// The sim backend, a test double: computes by the textbook, has a fake clock, and injects the faults of its script
// deterministically.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/backend.h"
#include "tests/fakes/sim/sim_script.h"

namespace gpubench {

struct SimTraffic {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
};

struct SimEvent {
  enum class What { plan, run, time } what = What::run;
  std::vector<std::string> labels;
  bool sequence = false;
  int copies = 0;              ///< of time()
  RoundPlan plan;              ///< of time()
  double output_before = 0.0;  ///< of time(): the first element of the last op's first output, before anything ran
  SimTraffic before{};         ///< of time(): traffic until then
};

class SimBackend : public Backend {
 public:
  explicit SimBackend(sim::Script script);
  ~SimBackend() override;

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override;
  void write(std::byte* device, std::span<const std::byte> host) override;
  void read(std::span<std::byte> host, const std::byte* device) override;
  [[nodiscard]] bool host_visible() const override { return !script_.opaque; }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  [[nodiscard]] bool examines_memory() const override { return script_.examines || host_visible(); }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override;
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override;
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override;
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors, const PlanOptions& options) override;
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override;
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override;
  void run(const Launch& launch) override;
  /// Runs every copy that has a turn once; the times are from the fake clock.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override;

  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return script_.claims; }

  [[nodiscard]] std::span<const SimEvent> events() const { return events_; }
  [[nodiscard]] const SimTraffic& traffic() const { return traffic_; }
  /// Peak of allocated bytes.
  [[nodiscard]] std::int64_t peak_bytes() const { return *peak_; }

 private:
  void cross(std::size_t bytes, std::int64_t& counter);

  sim::Script script_;
  DeviceInfo device_;
  std::vector<int> hits_;  ///< by fault of the script: plans that it matched
  std::map<const void*, int> timed_;
  std::vector<SimEvent> events_;
  SimTraffic traffic_;
  std::shared_ptr<bool> lost_ = std::make_shared<bool>(false);
  std::shared_ptr<std::int64_t> allocated_ = std::make_shared<std::int64_t>(0);
  std::shared_ptr<std::int64_t> peak_ = std::make_shared<std::int64_t>(0);
};

/// A sim backend that follows `script` (sim_script.h). Throws UsageError.
[[nodiscard]] std::unique_ptr<Backend> open_sim_backend(const std::string& script);

}  // namespace gpubench

// Wraps a backend and corrupts an op's output intermittently: in some calls of time(), some runs, one element. Executes
// every run of a round, so that later runs overwrite the corruption.
namespace gpubench::sim {

/// Calls of time() before the first round of a short case with few rounds, which estimate its time.
inline constexpr std::int64_t estimates = 2;

/// Position of a run among those that run the op; all count from 1.
struct Moment {
  std::int64_t call = 0;  ///< of time(); the first `estimates` calls are not rounds
  std::int64_t turn = 0;  ///< of this call, including the warm-up
  std::int64_t run = 0;   ///< of all calls together
};

struct Flaw {
  std::string label;
  std::function<bool(const Moment&)> when;                   ///< whether a run inside time() is corrupted
  std::function<void(const TensorSpec&, std::byte*)> spoil;  ///< applied to the op's first output
  bool always = false;                                       ///< in every run, including the check
};

/// Multiplies one element, by its logical index, by -3 and subtracts 100: far outside any bound.
[[nodiscard]] std::function<void(const TensorSpec&, std::byte*)> one_wrong_element(std::int64_t linear);

/// Wraps `inner`, whose memory must be host-visible and which must outlive the result. `run_ns`: time of one run. The
/// rotation over copies restarts after the warm-up, as in the CPU backend.
[[nodiscard]] std::unique_ptr<Backend> flaky(Backend& inner, Flaw flaw, double run_ns);

}  // namespace gpubench::sim
