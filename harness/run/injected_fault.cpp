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

constexpr std::int64_t elements_per_flip = 64;  // dense enough for the sample of a large output
constexpr std::int64_t lanes_elements = 1024;
constexpr std::int64_t lane_stride = 32;
constexpr std::size_t overrun_bytes = 16;
constexpr std::int64_t late_rounds = 4;
constexpr std::int64_t rare_launches = 100;

struct WrongPlan : ForwardingPlan {
  WrongPlan(Plan right, std::size_t input_count) : ForwardingPlan(std::move(right)), inputs(input_count) {}
  std::size_t inputs;
};

// A launch of the inner backend, null if dropped, and the tensors to corrupt afterwards.
struct WrongLaunch : LaunchImpl {
  Launch right;
  bool dropped = false;  // for an op alone: not run, but timed for its share of a step
  std::vector<Tensor> corrupted;
};

const WrongLaunch* wrong(const Launch& launch) { return dynamic_cast<const WrongLaunch*>(launch.get()); }

void corrupt(ErrorKind kind, const TensorSpec& spec, std::byte* bytes) {
  const std::int64_t count = spec.shape.elements();
  const auto place = [&](std::int64_t linear) { return spec.layout.offset(spec.shape, linear); };
  const auto each = [&](std::int64_t step, const auto& change) {
    for (std::int64_t i = 0; i < count; i += step) change(place(i));
  };
  const auto scaled_by = [&](double factor) {
    each(1, [&](std::int64_t at) {
      const double value = load(spec.dtype, bytes, at);
      if (!std::isnan(value))
        store(spec.dtype, bytes, at, factor * value);  // keeps the poison of a copy that has not run
    });
  };
  const std::uint64_t high_bit = std::uint64_t{1} << (bits_of(spec.dtype) - 2);
  switch (kind) {
    case ErrorKind::bit:
      return each(elements_per_flip, [&](std::int64_t at) { flip_bits(spec.dtype, bytes, at, high_bit); });
    case ErrorKind::nan:
      if (spec.dtype == DType::f4_e2m1) return;  // has none
      if (!is_float(spec.dtype)) return flip_bits(spec.dtype, bytes, place(count / 2), high_bit);
      return store(spec.dtype, bytes, place(count / 2), std::numeric_limits<double>::quiet_NaN());
    case ErrorKind::zero: return each(1, [&](std::int64_t at) { store(spec.dtype, bytes, at, 0.0); });
    case ErrorKind::sign: return scaled_by(-1.0);
    case ErrorKind::scale:
    case ErrorKind::late: return scaled_by(2.0);
    case ErrorKind::lanes: {
      const std::int64_t first = std::max<std::int64_t>(0, count / 2 - lanes_elements / 2);
      for (std::int64_t i = first; i < std::min(count, first + lanes_elements); i += lane_stride)
        flip_bits(spec.dtype, bytes, place(i), std::uint64_t{7} << (bits_of(spec.dtype) - 4));
      return;
    }
    case ErrorKind::rare: return flip_bits(spec.dtype, bytes, place(count / 2), high_bit);
    case ErrorKind::input: return flip_bits(spec.dtype, bytes, place(0), high_bit);
    case ErrorKind::drop:
    case ErrorKind::overrun: return;  // not in the tensor
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
    launch->corrupted = {tensors[error_.kind == ErrorKind::input ? 0 : wrong_plan->inputs]};
    return launch;
  }

  // Dropped ops are left out; ops that depend on them get their dependencies.
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    auto all = std::make_shared<WrongLaunch>();
    std::vector<Launch> right;
    std::vector<std::vector<int>> substitutes(launches.size());  // positions in `right` to wait for instead
    Schedule remaining{{}, schedule.mode};
    for (std::size_t i = 0; i < launches.size(); ++i) {
      std::vector<int> waits_for;
      for (const int earlier : schedule.dependencies[i]) {
        const auto& positions = substitutes[static_cast<std::size_t>(earlier)];
        waits_for.insert(waits_for.end(), positions.begin(), positions.end());
      }
      const WrongLaunch* one = wrong(launches[i]);
      if (one != nullptr) all->corrupted.insert(all->corrupted.end(), one->corrupted.begin(), one->corrupted.end());
      if (one != nullptr && one->dropped) {
        substitutes[i] = std::move(waits_for);
        continue;
      }
      substitutes[i] = {static_cast<int>(right.size())};
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
    if (error_.kind == ErrorKind::late || !is_due()) return;
    if (one->dropped || corrupt_all(*one)) took_effect();
  }

  // Corrupts outside the timed intervals.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    std::vector<Launch> right;
    for (const Launch& copy : copies) {
      const WrongLaunch* one = wrong(copy);
      right.push_back(one == nullptr ? copy : one->right);
      if (right.back() == nullptr) throw BackendError("--inject-error drop leaves no op of this case to time");
    }
    RoundTimes times = inner().time(right, plan);
    if (error_.kind == ErrorKind::late && ++rounds_ % late_rounds != 0) return times;
    for (const Launch& copy : copies) {
      const WrongLaunch* one = wrong(copy);
      if (one != nullptr && is_due() && corrupt_all(*one) && error_.kind == ErrorKind::late) took_effect();
    }
    return times;
  }

 private:
  bool is_due() { return error_.kind != ErrorKind::rare || ++launches_ % rare_launches == 0; }

  bool corrupt_all(const WrongLaunch& launch) {
    bool changed = false;
    if (error_.kind == ErrorKind::drop) return changed;
    for (const Tensor& tensor : launch.corrupted) {
      if (error_.kind == ErrorKind::overrun) {
        inner().write(tensor.data + tensor.spec.bytes(), std::vector<std::byte>(overrun_bytes));
        changed = true;
        continue;
      }
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.spec.bytes()));
      inner().read(bytes, tensor.data);
      const std::vector<std::byte> before = bytes;
      corrupt(error_.kind, tensor.spec, bytes.data());
      if (bytes == before) continue;
      inner().write(tensor.data, bytes);
      changed = true;
    }
    return changed;
  }

  void took_effect() const {
    if (error_.effects) ++*error_.effects;
  }

  InjectedError error_;
  std::int64_t rounds_ = 0;
  std::int64_t launches_ = 0;
};

}  // namespace

std::string_view describe(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bit: return "a bit of every 64th element flips";
    case ErrorKind::nan: return "one element becomes NaN";
    case ErrorKind::zero: return "all of an output is 0";
    case ErrorKind::sign: return "an output changes its sign";
    case ErrorKind::scale: return "an output is doubled";
    case ErrorKind::drop: return "an op does not run";
    case ErrorKind::lanes: return "three bits of every 32nd of 1,024 flip";
    case ErrorKind::input: return "an input changes";
    case ErrorKind::overrun: return "16 bytes behind an output change";
    case ErrorKind::late: return "an output is doubled after every fourth round";
    case ErrorKind::rare: return "a bit flips in one launch of a hundred";
  }
  return "";
}

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
