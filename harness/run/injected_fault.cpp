#include "harness/run/injected_fault.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/run/forwarding_backend.h"

namespace gpubench {
namespace {

constexpr std::int64_t elements_per_flip = 64;  // the check of a large output is a sample, which must hit some

struct WrongPlan : ForwardingPlan {
  WrongPlan(Plan right, std::size_t input_count) : ForwardingPlan(std::move(right)), inputs(input_count) {}
  std::size_t inputs;
};

// Work of the inner backend, and the tensors to corrupt once it has run. No work: all of it was dropped.
struct WrongLaunch : LaunchImpl {
  Launch right;
  bool dropped = false;  // of an op alone: it is not run; only its share of a step is still timed
  std::vector<Tensor> corrupted;
};

const WrongLaunch* wrong(const Launch& launch) { return dynamic_cast<const WrongLaunch*>(launch.get()); }

// The highest bit of the exponent; in an integer one that makes it large.
void flip_bit(DType type, std::byte* base, std::int64_t index) {
  store_bits(type, base, index, load_bits(type, base, index) ^ (std::uint64_t{1} << (bits_of(type) - 2)));
}

void corrupt(ErrorKind kind, const TensorSpec& spec, std::byte* bytes) {
  const std::int64_t count = spec.shape.elements();
  const auto place = [&](std::int64_t linear) { return spec.layout.offset(spec.shape, linear); };
  const auto each = [&](std::int64_t step, const auto& change) {
    for (std::int64_t i = 0; i < count; i += step) change(place(i));
  };
  const auto scaled_by = [&](double factor) {
    each(1, [&](std::int64_t at) { store(spec.dtype, bytes, at, factor * load(spec.dtype, bytes, at)); });
  };
  switch (kind) {
    case ErrorKind::bit: return each(elements_per_flip, [&](std::int64_t at) { flip_bit(spec.dtype, bytes, at); });
    case ErrorKind::nan: return store(spec.dtype, bytes, place(count / 2), std::numeric_limits<double>::quiet_NaN());
    case ErrorKind::zero: return each(1, [&](std::int64_t at) { store(spec.dtype, bytes, at, 0.0); });
    case ErrorKind::sign: return scaled_by(-1.0);
    case ErrorKind::scale: return scaled_by(2.0);
    case ErrorKind::drop: return;  // there is nothing to corrupt
  }
}

class WrongBackend final : public ForwardingBackend {
 public:
  WrongBackend(Backend& inner, InjectedError error, std::unique_ptr<Backend> owner)
      : ForwardingBackend(inner, std::move(owner)), error_(std::move(error)) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    Plan right = inner().plan(call, tensors, options);
    if (!is_timed(call, error_.op)) return right;
    return std::make_shared<WrongPlan>(std::move(right), call.inputs.size());
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto* wrong_plan = dynamic_cast<const WrongPlan*>(plan.get());
    if (wrong_plan == nullptr) return inner().bind(plan, tensors, workspace);
    auto launch = std::make_shared<WrongLaunch>();
    launch->right = inner().bind(wrong_plan->inner, tensors, workspace);
    launch->dropped = error_.kind == ErrorKind::drop;
    launch->corrupted = {tensors[wrong_plan->inputs]};
    return launch;
  }

  // The dropped ops are left out: what waited for them waits for what they would have waited for.
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    auto all = std::make_shared<WrongLaunch>();
    std::vector<Launch> right;
    std::vector<std::vector<int>> stands_for(launches.size());  // positions in `right` to wait for instead
    Schedule remaining{{}, schedule.mode};
    for (std::size_t i = 0; i < launches.size(); ++i) {
      std::vector<int> waits_for;
      for (const int earlier : schedule.dependencies[i]) {
        const auto& positions = stands_for[static_cast<std::size_t>(earlier)];
        waits_for.insert(waits_for.end(), positions.begin(), positions.end());
      }
      const WrongLaunch* one = wrong(launches[i]);
      if (one != nullptr) all->corrupted.insert(all->corrupted.end(), one->corrupted.begin(), one->corrupted.end());
      if (one != nullptr && one->dropped) {
        stands_for[i] = std::move(waits_for);
        continue;
      }
      stands_for[i] = {static_cast<int>(right.size())};
      right.push_back(one == nullptr ? launches[i] : one->right);
      remaining.dependencies.push_back(std::move(waits_for));
    }
    if (all->corrupted.empty()) return inner().sequence(right, remaining);
    if (!right.empty()) all->right = inner().sequence(right, remaining);
    return all;
  }

  void run(const Launch& launch) override {
    const WrongLaunch* one = wrong(launch);
    if (one == nullptr) return inner().run(launch);
    if (one->right != nullptr && !one->dropped) inner().run(one->right);
    corrupt_all(*one);
  }

  // The corruption is no part of the time.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    std::vector<Launch> right;
    for (const Launch& copy : copies) {
      const WrongLaunch* one = wrong(copy);
      right.push_back(one == nullptr ? copy : one->right);
      if (right.back() == nullptr) throw BackendError("--inject-error drop leaves nothing of this case to be timed");
    }
    RoundTimes times = inner().time(right, plan);
    for (const Launch& copy : copies) {
      if (const WrongLaunch* one = wrong(copy); one != nullptr) corrupt_all(*one);
    }
    return times;
  }

 private:
  void corrupt_all(const WrongLaunch& launch) {
    if (error_.kind == ErrorKind::drop) return;
    for (const Tensor& tensor : launch.corrupted) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec.bytes()));
      inner().read(bytes, tensor.data);
      corrupt(error_.kind, tensor.spec, bytes.data());
      inner().write(tensor.data, bytes);
    }
  }

  InjectedError error_;
};

}  // namespace

bool is_timed(const OpCall& call, std::string_view op) {
  return call.phase == Phase::timed && (call.kind.name == op || call.label == op);
}

bool runs_timed(const Program& program, std::string_view op) {
  return std::any_of(program.ops().begin(), program.ops().end(),
                     [op](const OpCall& call) { return is_timed(call, op); });
}

void slow_down(const Slowdown& slowdown, RoundRecord& round) {
  const double factor = 1.0 + slowdown.share;
  for (double& ns : round.times.device_ns) ns *= factor;
  for (double& ns : round.times.wall_ns) ns *= factor;
  if (!round.times.ranks) return;
  for (RankTimes& rank : *round.times.ranks) {
    for (double& ns : rank.ns) ns *= factor;
  }
}

std::unique_ptr<Backend> with_error(Backend& inner, const InjectedError& error, std::unique_ptr<Backend> owner) {
  return std::make_unique<WrongBackend>(inner, error, std::move(owner));
}

}  // namespace gpubench
