#include "tests/harness/run/faulty_ranks.h"

#include <map>

#include "harness/core/communicator.h"

namespace gpubench::testing {
namespace {

class DamagedCommunicator final : public Communicator {
 public:
  DamagedCommunicator(std::unique_ptr<Communicator> inner, int ranks, Damage damage)
      : inner_(std::move(inner)), damage_(std::move(damage)), barrier_(ranks, 0) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    Plan plan = inner_->plan(call, tensors);
    inputs_[plan.get()] = call.inputs.size();
    return plan;
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    Launch launch = inner_->bind(plan, tensors);
    bound_[launch.get()] = {{tensors.begin(), tensors.end()}, inputs_.at(plan.get())};
    return launch;
  }
  void run(const Launch& launch, int rank) override {
    inner_->run(launch, rank);
    barrier_.arrive(rank);
    const Bound& bound = bound_.at(launch.get());
    damage_(rank, bound.tensors, bound.inputs);
    barrier_.arrive(rank);
  }
  void stop() override {
    inner_->stop();
    barrier_.stop();
  }
  [[nodiscard]] bool restart() override {
    barrier_.reset();
    return inner_->restart();
  }
  [[nodiscard]] std::vector<int> waiting() const override {
    std::vector<int> ranks = inner_->waiting();
    for (const int rank : barrier_.waiting()) ranks.push_back(rank);
    return ranks;
  }

 private:
  struct Bound {
    std::vector<Tensor> tensors;
    std::size_t inputs = 0;
  };
  std::unique_ptr<Communicator> inner_;
  Damage damage_;
  RankBarrier barrier_;
  std::map<const PlanImpl*, std::size_t> inputs_;
  std::map<const LaunchImpl*, Bound> bound_;
};

class InterruptedBackend final : public Backend {
 public:
  InterruptedBackend(std::unique_ptr<Backend> inner, std::function<void(const std::string&)> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  [[nodiscard]] const DeviceInfo& device() const override { return inner_->device(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void write(std::byte* device, std::span<const std::byte> host) override { inner_->write(device, host); }
  void read(std::span<std::byte> host, const std::byte* device) override { inner_->read(host, device); }
  [[nodiscard]] bool host_visible() const override { return true; }
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    Plan plan = inner_->plan(call, tensors, options);
    labels_[plan.get()] = call.label;
    return plan;
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    Launch launch = inner_->bind(plan, tensors, workspace);
    labels_of_launches_[launch.get()] = labels_.at(plan.get());
    return launch;
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    return inner_->sequence(launches, schedule);
  }
  void run(const Launch& launch) override {
    before_(labels_of_launches_.at(launch.get()));
    inner_->run(launch);
  }
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    return inner_->time(copies, plan);
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::function<void(const std::string&)> before_;
  std::map<const PlanImpl*, std::string> labels_;
  std::map<const LaunchImpl*, std::string> labels_of_launches_;
};

}  // namespace

std::unique_ptr<Communicator> damaged(std::unique_ptr<Communicator> inner, int ranks, Damage damage) {
  return std::make_unique<DamagedCommunicator>(std::move(inner), ranks, std::move(damage));
}

std::unique_ptr<Backend> interrupted(std::unique_ptr<Backend> inner,
                                     std::function<void(const std::string& label)> before) {
  return std::make_unique<InterruptedBackend>(std::move(inner), std::move(before));
}

}  // namespace gpubench::testing
