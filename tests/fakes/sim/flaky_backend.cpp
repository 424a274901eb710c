#include "tests/fakes/sim/sim_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpubench::sim {
namespace {

struct FlakyPlan : PlanImpl {
  Plan inner;
  OpCall call;
  [[nodiscard]] std::string implementation() const override { return inner->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return inner->workspace_bytes(); }
};

struct FlakyLaunch : LaunchImpl {
  struct One {
    Launch inner;
    std::string label;
    Tensor output;
  };
  std::vector<One> ops;
};

const FlakyLaunch& flaky_launch(const Launch& launch) { return dynamic_cast<const FlakyLaunch&>(*launch); }

class FlakyBackend final : public Backend {
 public:
  FlakyBackend(Backend& inner, Flaw flaw, double run_ns) : inner_(inner), flaw_(std::move(flaw)), run_ns_(run_ns) {}

  [[nodiscard]] const DeviceInfo& device() const override { return inner_.device(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void write(std::byte* device, std::span<const std::byte> host) override { inner_.write(device, host); }
  void read(std::span<std::byte> host, const std::byte* device) override { inner_.read(host, device); }
  [[nodiscard]] bool host_visible() const override { return inner_.host_visible(); }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    auto plan = std::make_shared<FlakyPlan>();
    plan->inner = inner_.plan(call, tensors, options);
    plan->call = call;
    return plan;
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto& own = dynamic_cast<const FlakyPlan&>(*plan);
    auto launch = std::make_shared<FlakyLaunch>();
    launch->ops.push_back(
        {inner_.bind(own.inner, tensors, workspace), own.call.label, tensors[own.call.inputs.size()]});
    return launch;
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule&) override {
    auto all = std::make_shared<FlakyLaunch>();
    for (const Launch& launch : launches) all->ops.push_back(flaky_launch(launch).ops.front());
    return all;
  }
  void run(const Launch& launch) override { run_ops(flaky_launch(launch), false); }
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    const std::int64_t samples = plan.samples * plan.batch;
    const bool has_flaw = std::any_of(flaky_launch(copies.front()).ops.begin(), flaky_launch(copies.front()).ops.end(),
                                      [&](const FlakyLaunch::One& op) { return op.label == flaw_.label; });
    now_.call += has_flaw ? 1 : 0;
    now_.turn = 0;
    for (const std::int64_t turns : {std::int64_t{plan.warmup_calls}, samples}) {
      for (std::int64_t i = 0; i < turns; ++i) {
        ++now_.turn;
        now_.run += has_flaw ? 1 : 0;
        run_ops(flaky_launch(copies[static_cast<std::size_t>(i) % copies.size()]), has_flaw && flaw_.when(now_));
      }
    }
    RoundTimes times;
    times.device_ns.assign(static_cast<std::size_t>(plan.samples), run_ns_ * static_cast<double>(plan.batch));
    times.wall_ns = times.device_ns;
    times.runs = plan.warmup_calls + samples;
    return times;
  }

 private:
  void run_ops(const FlakyLaunch& launch, bool spoiled) {
    for (const FlakyLaunch::One& op : launch.ops) {
      inner_.run(op.inner);
      if ((spoiled || flaw_.always) && op.label == flaw_.label) flaw_.spoil(op.output.spec, op.output.data);
    }
  }

  Backend& inner_;
  Flaw flaw_;
  double run_ns_;
  Moment now_;
};

}  // namespace

std::function<void(const TensorSpec&, std::byte*)> one_wrong_element(std::int64_t linear) {
  return [linear](const TensorSpec& spec, std::byte* data) {
    std::byte* const at =
        data + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype));
    store(spec.dtype, at, -3.0 * load(spec.dtype, at) - 100.0);
  };
}

std::unique_ptr<Backend> flaky(Backend& inner, Flaw flaw, double run_ns) {
  return std::make_unique<FlakyBackend>(inner, std::move(flaw), run_ns);
}

}  // namespace gpubench::sim
