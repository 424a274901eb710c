// gpubench-slow: the program on the CPU backend, slowed by GPUBENCH_SLOW where a GPU is slow: planning, and copies
// between host and device ("plan_ms=500;copy_bytes_per_s=100000000", items of tests/fakes/sim/sim_script.h). It can
// also lack a type ("lacks=f16") or be killed when it plans an op for the n-th time ("kill_in_plan@ln1#2"). Used by
// rehearsals of scripts/validate-gpu.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "harness/cli/run_cli.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"
#include "tests/fakes/sim/sim_script.h"

namespace gpubench {
namespace {

class SlowBackend final : public Backend {
 public:
  SlowBackend(std::unique_ptr<Backend> inner, sim::Script script)
      : inner_(std::move(inner)), script_(std::move(script)) {}

  [[nodiscard]] const DeviceInfo& device() const override { return inner_->device(); }
  [[nodiscard]] std::vector<std::string> flags() const override { return inner_->flags(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  [[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes) override {
    return inner_->allocate_in(memory, bytes);
  }
  void write(std::byte* device, std::span<const std::byte> host) override {
    cross(host.size());
    inner_->write(device, host);
  }
  void read(std::span<std::byte> host, const std::byte* device) override {
    cross(host.size());
    inner_->read(host, device);
  }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    inner_->fill(device, pattern, bytes);
  }
  [[nodiscard]] bool host_visible() const override { return false; }
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    sim::expect_types_of_device(script_, tensors);
    for (sim::Fault& fault : script_.faults) {
      if (fault.label == call.label && --fault.nth == 0) std::raise(SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(script_.plan_ms));
    return inner_->plan(call, tensors, options);
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    return inner_->bind(plan, tensors, workspace);
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    return inner_->sequence(launches, schedule);
  }
  void run(const Launch& launch) override { inner_->run(launch); }
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    return inner_->time(copies, plan);
  }
  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return inner_->fused_ops(); }

 private:
  void cross(std::size_t bytes) const {
    if (script_.copy_bytes_per_s == 0) return;
    const double seconds = static_cast<double>(bytes) / static_cast<double>(script_.copy_bytes_per_s);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  std::unique_ptr<Backend> inner_;
  sim::Script script_;
};

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using namespace gpubench;
  BackendEntry cpu;
  cpu.name = "cpu";
  cpu.open = [](const OpenRequest&) {
    const char* slow = std::getenv("GPUBENCH_SLOW");
    return std::make_unique<SlowBackend>(open_cpu_backend(), sim::parse_script(slow == nullptr ? "" : slow));
  };
  cpu.precisions = [](int /*no GPU*/) { return std::vector<std::string>{"f32", "bf16"}; };
  cpu.open_ranks = [](const RankRequest& what) { return open_cpu_ranks(what.ranks); };
  return run_program(argc, argv, all_suites(), {std::move(cpu)}, "");
}
