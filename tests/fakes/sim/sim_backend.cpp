#include "tests/fakes/sim/sim_backend.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "harness/core/error.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

using sim::Fault;
using sim::FaultKind;

constexpr std::size_t alignment = 256;
constexpr double empty_ns = 50.0;  // minimum time of a launch

struct SimPlan : PlanImpl {
  OpCall call;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  double ns = 0.0;
  std::vector<Fault> faults;
  std::shared_ptr<bool> lost;
  std::string name;
  Choice how = Choice::only;
  [[nodiscard]] std::string implementation() const override { return name; }
  [[nodiscard]] Choice choice() const override { return how; }
  [[nodiscard]] std::size_t workspace_bytes() const override { return 256; }
  [[nodiscard]] bool has(FaultKind kind) const {
    return std::any_of(faults.begin(), faults.end(), [&](const Fault& f) { return f.kind == kind; });
  }
};

enum class Within { nothing, stream, graph };

bool is_active(const Fault& fault, Within within) {
  return within == Within::graph || (within == Within::stream && !fault.in_graph_only) || !fault.in_sequence_only;
}

struct SimLaunch : LaunchImpl {
  virtual void run(Within within) const = 0;
  [[nodiscard]] virtual double ns() const = 0;
  [[nodiscard]] virtual std::vector<std::string> labels() const = 0;
  [[nodiscard]] virtual double first_output() const = 0;
};

// The order of a tuner: pinned, then remembered, then fastest.
void choose(const PlanOptions& options, const std::string& fastest, SimPlan& plan) {
  const auto offered = [](const std::string& name) { return name == "sim:a" || name == "sim:b" || name == "sim:c"; };
  plan.how = offered(options.remembered) ? Choice::remembered : Choice::timed;
  plan.name = offered(options.pinned)          ? options.pinned
              : plan.how == Choice::remembered ? options.remembered
                                               : "sim:" + fastest;
}

// SIG_DFL, since sanitizers install handlers.
void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

std::string joined(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape.extents()) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

class OpLaunch : public SimLaunch {
 public:
  OpLaunch(std::shared_ptr<const SimPlan> plan, std::span<const Tensor> tensors)
      : plan_(std::move(plan)), tensors_(tensors.begin(), tensors.end()) {}

  [[nodiscard]] const SimPlan& plan() const { return *plan_; }
  [[nodiscard]] double ns() const override { return plan_->ns; }
  [[nodiscard]] std::vector<std::string> labels() const override { return {plan_->call.label}; }

  [[nodiscard]] double first_output() const override { return load(output().spec.dtype, output().data); }

  /// This op, with its second input read from a copy made now.
  [[nodiscard]] std::shared_ptr<const OpLaunch> with_stale_input() const {
    auto stale = std::make_shared<OpLaunch>(*this);
    const std::byte* const now = tensors_.at(1).data;
    stale->stale_.assign(now, now + tensors_.at(1).spec.bytes());
    return stale;
  }

  void run(Within within) const override {
    if (*plan_->lost) throw DeviceLost("sim: the device is lost");
    for (const Fault& fault : plan_->faults) {
      if (is_active(fault, within)) before(fault.kind);
    }
    compute(within);
    for (const Fault& fault : plan_->faults) {
      if (is_active(fault, within)) after(fault.kind);
    }
  }

 private:
  [[nodiscard]] const Tensor& output() const { return tensors_.at(plan_->inputs.size()); }

  void compute(Within within) const {
    std::vector<TensorView> inputs;
    for (std::size_t i = 0; i < plan_->inputs.size(); ++i)
      inputs.emplace_back(plan_->inputs[i], i == 1 && !stale_.empty() ? stale_.data() : tensors_[i].data);
    const OpDefinition& meaning = definition(plan_->call.kind);
    std::vector<std::vector<Expected>> results;  // compute all before storing any: outputs may overwrite inputs
    for (int o = 0; o < static_cast<int>(plan_->outputs.size()); ++o) {
      const CheckUnits units = meaning.units({plan_->call, plan_->inputs, plan_->outputs}, o);
      std::vector<std::int64_t> all(static_cast<std::size_t>(units.count));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
      results.emplace_back(static_cast<std::size_t>(units.count * units.elements));
      meaning.evaluate({plan_->call, inputs, plan_->outputs}, o, all, results.back());
    }
    for (std::size_t o = 0; o < results.size(); ++o) store_all(o, results[o], within);
  }

  void store_all(std::size_t o, const std::vector<Expected>& values, Within within) const {
    const Tensor& tensor = tensors_[plan_->inputs.size() + o];
    std::size_t count = values.size();
    for (const Fault& fault : plan_->faults) {
      if (fault.kind == FaultKind::unwritten && is_active(fault, within) && o == 0) count -= (count + 3) / 4;
    }
    for (std::size_t i = 0; i < count; ++i)
      store(tensor.spec.dtype, place(tensor, static_cast<std::int64_t>(i)), values[i].value);
  }

  static std::byte* place(const Tensor& tensor, std::int64_t linear) {
    return tensor.data +
           tensor.spec.layout.offset(tensor.spec.shape, linear) * static_cast<std::int64_t>(size_of(tensor.spec.dtype));
  }

  void before(FaultKind kind) const {
    switch (kind) {
      case FaultKind::lost: *plan_->lost = true; throw DeviceLost("sim: illegal address");
      case FaultKind::kill: ::raise(SIGKILL); break;
      case FaultKind::segv: end_by(SIGSEGV); break;
      case FaultKind::abort: end_by(SIGABRT); break;
      case FaultKind::exit: std::_Exit(0);
      case FaultKind::stubborn:
        std::signal(SIGTERM, [](int) { (void)!::write(STDERR_FILENO, "sim: goes on\n", 13); });
        [[fallthrough]];
      case FaultKind::hang:
        std::fputs("sim: hangs\n", stderr);
        while (true) ::pause();
      case FaultKind::out_of_memory:
        throw BackendError("out of memory: could not allocate 123456789 bytes for op '" + plan_->call.label + "'");
      case FaultKind::bad_alloc: throw std::bad_alloc();
      default: break;
    }
  }

  static void write_transposed(const Tensor& c) {
    const std::int64_t rows = c.spec.shape[0], columns = c.spec.shape[1];
    std::vector<double> elements(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = load(c.spec.dtype, place(c, static_cast<std::int64_t>(i)));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        store(c.spec.dtype, place(c, j * rows + i), elements[static_cast<std::size_t>(i * columns + j)]);
    }
  }

  void after(FaultKind kind) const {
    const Tensor& c = kind == FaultKind::wrong_last ? tensors_.back() : output();
    const std::int64_t middle = c.spec.shape.elements() / 2;
    switch (kind) {
      case FaultKind::wrong_element:
      case FaultKind::wrong_last:
        store(c.spec.dtype, place(c, middle), 3.0 * load(c.spec.dtype, place(c, middle)) + 100.0);
        break;
      case FaultKind::last_bit: flip_bits(c.spec.dtype, place(c, middle), 0, 1U); break;
      case FaultKind::transposed: write_transposed(c); break;
      case FaultKind::nan: store(c.spec.dtype, place(c, middle), std::numeric_limits<double>::quiet_NaN()); break;
      case FaultKind::inf: store(c.spec.dtype, place(c, middle), std::numeric_limits<double>::infinity()); break;
      case FaultKind::guard: std::memset(c.data + c.spec.bytes(), 0, 3); break;
      case FaultKind::changes_input:
        store(tensors_[0].spec.dtype, tensors_[0].data, load(tensors_[0].spec.dtype, tensors_[0].data) + 1.0);
        break;
      default: break;
    }
  }

  std::shared_ptr<const SimPlan> plan_;
  std::vector<Tensor> tensors_;
  std::vector<std::byte> stale_;
};

class SequenceLaunch : public SimLaunch {
 public:
  SequenceLaunch(std::vector<std::shared_ptr<const OpLaunch>> ops, LaunchMode mode)
      : ops_(std::move(ops)), within_(mode == LaunchMode::graph ? Within::graph : Within::stream) {}
  void run(Within) const override {
    for (const auto& op : ops_) op->run(within_);
  }
  [[nodiscard]] double ns() const override {
    double total = 0.0;
    for (const auto& op : ops_) total += op->ns();
    return std::max(total, empty_ns);
  }
  [[nodiscard]] std::vector<std::string> labels() const override {
    std::vector<std::string> all;
    for (const auto& op : ops_) all.push_back(op->plan().call.label);
    return all;
  }
  [[nodiscard]] double first_output() const override { return ops_.empty() ? 0.0 : ops_.back()->first_output(); }

 private:
  std::vector<std::shared_ptr<const OpLaunch>> ops_;
  Within within_;
};

const SimLaunch& of(const Launch& launch) { return dynamic_cast<const SimLaunch&>(*launch); }

}  // namespace

SimBackend::SimBackend(sim::Script script) : script_(std::move(script)), hits_(script_.faults.size()) {
  device_.kind = "sim";
  device_.name = script_.name;
  device_.memory_bytes = script_.memory_bytes;
  device_.available_bytes = script_.memory_bytes;
  device_.cache_bytes = script_.cache_bytes;
}

SimBackend::~SimBackend() = default;

Buffer SimBackend::allocate(std::size_t bytes) {
  if (*allocated_ + static_cast<std::int64_t>(bytes) > script_.memory_bytes + (std::int64_t{32} << 20U)) {
    throw BackendError("out of memory: could not allocate " + std::to_string(bytes) + " bytes");
  }
  *allocated_ += static_cast<std::int64_t>(bytes);
  *peak_ = std::max(*peak_, *allocated_);
  auto* const data = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}));
  const std::shared_ptr<void> owner(data, [bytes, allocated = allocated_](void* p) {
    *allocated -= static_cast<std::int64_t>(bytes);
    ::operator delete (p, std::align_val_t{alignment});
  });
  return {data, bytes, owner};
}

void SimBackend::cross(std::size_t bytes, std::int64_t& counter) {
  counter += static_cast<std::int64_t>(bytes);
  if (script_.copy_bytes_per_s > 0)
    std::this_thread::sleep_for(
        std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(script_.copy_bytes_per_s)));
}

void SimBackend::write(std::byte* device, std::span<const std::byte> host) {
  cross(host.size(), traffic_.written_bytes);
  if (!host.empty()) std::memmove(device, host.data(), host.size());
}

void SimBackend::read(std::span<std::byte> host, const std::byte* device) {
  cross(host.size(), traffic_.read_bytes);
  if (!host.empty()) std::memmove(host.data(), device, host.size());
}

void SimBackend::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (!script_.examines) return Backend::copy(to, from, bytes);
  std::memcpy(to, from, bytes);
}

// Traffic of a device: the runs, and their offsets.
void SimBackend::gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) {
  if (!script_.examines || offsets.empty()) return Backend::gather(host, device, offsets);
  cross(offsets.size_bytes(), traffic_.written_bytes);
  cross(host.size(), traffic_.read_bytes);
  const std::size_t run = host.size() / offsets.size();
  for (std::size_t i = 0; i < offsets.size(); ++i) std::memcpy(host.data() + i * run, device + offsets[i], run);
}

void SimBackend::scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) {
  if (!script_.examines) return Backend::scan(chunks, device, type, rows);
  const SimTraffic before = traffic_;
  Backend::scan(chunks, device, type, rows);
  traffic_ = before;  // the work was on the device
  cross(chunks.size_bytes(), traffic_.read_bytes);
}

std::uint64_t SimBackend::fingerprint(const std::byte* device, std::size_t bytes) {
  if (!script_.examines) return Backend::fingerprint(device, bytes);
  cross(sizeof(std::uint64_t), traffic_.read_bytes);
  return gpubench::fingerprint({device, bytes});
}

Plan SimBackend::plan(const OpCall& call, std::span<const TensorSpec> tensors, const PlanOptions& options) {
  auto plan = std::make_shared<SimPlan>();
  std::this_thread::sleep_for(std::chrono::milliseconds(script_.plan_ms));
  expect_types_of_device(script_, tensors);
  plan->lost = lost_;
  plan->call = call;
  plan->name = options.deterministic ? "sim:textbook,deterministic" : "sim:textbook";
  if (!script_.fastest.empty()) choose(options, script_.fastest, *plan);
  const auto split = tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs.size());
  plan->inputs.assign(tensors.begin(), split);
  plan->outputs.assign(split, tensors.end());
  for (std::size_t i = 0; i < script_.faults.size(); ++i) {
    const Fault& fault = script_.faults[i];
    if (fault.label != call.label || (!fault.extents.empty() && fault.extents != joined(plan->outputs.front().shape)))
      continue;
    if (fault.nth == 0 || ++hits_[i] == fault.nth) plan->faults.push_back(fault);
  }
  if (plan->has(FaultKind::unsupported))
    throw Unsupported("sim: no implementation of " + std::string(call.kind.name) + " '" + call.label + "'");
  if (plan->has(FaultKind::unplanned)) throw BackendError("sim: cannot plan anything");
  if (plan->has(FaultKind::kill_in_plan)) ::raise(SIGKILL);
  const Cost cost = definition(call.kind).cost({call, plan->inputs, plan->outputs});
  plan->ns = script_.clock_ns.value_or(100.0 + cost.flop / 100.0 + cost.bytes / 10.0);
  events_.push_back({SimEvent::What::plan, {call.label}, false, 0, {}, 0.0});
  return plan;
}

Launch SimBackend::bind(const Plan& plan, std::span<const Tensor> tensors, Workspace) {
  return std::make_shared<OpLaunch>(std::dynamic_pointer_cast<const SimPlan>(plan), tensors);
}

Launch SimBackend::sequence(std::span<const Launch> launches, const Schedule& schedule) {
  std::vector<std::shared_ptr<const OpLaunch>> ops;
  for (const Launch& launch : launches) {
    auto op = std::dynamic_pointer_cast<const OpLaunch>(launch);
    if (op->plan().has(FaultKind::drop)) continue;
    if (op->plan().has(FaultKind::stale)) op = op->with_stale_input();
    ops.insert(op->plan().has(FaultKind::early) ? ops.begin() : ops.end(), op);
  }
  return std::make_shared<SequenceLaunch>(std::move(ops), schedule.mode);
}

void SimBackend::run(const Launch& launch) {
  const SimLaunch& work = of(launch);
  events_.push_back(
      {SimEvent::What::run, work.labels(), dynamic_cast<const SequenceLaunch*>(&work) != nullptr, 0, {}, 0.0});
  work.run(Within::nothing);
}

RoundTimes SimBackend::time(std::span<const Launch> copies, const RoundPlan& plan) {
  const SimLaunch& first = of(copies.front());
  events_.push_back({SimEvent::What::time, first.labels(), dynamic_cast<const SequenceLaunch*>(&first) != nullptr,
                     static_cast<int>(copies.size()), plan, first.first_output(), traffic_});
  const std::int64_t turns = plan.samples * plan.batch;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(turns, static_cast<std::int64_t>(copies.size())); ++i)
    of(copies[static_cast<std::size_t>(i)]).run(Within::nothing);
  RoundTimes times;
  double run_ns = script_.clock_ns == 0.0 ? 0.0 : first.ns();
  if (++timed_[&first] % 2 == 0) run_ns *= 1.0 + script_.uneven;
  if (script_.wanders) run_ns *= 1.001 + 0.001 * static_cast<double>(::getpid() % 97);
  times.device_ns.assign(static_cast<std::size_t>(plan.samples), run_ns * static_cast<double>(plan.batch));
  times.wall_ns = times.device_ns;
  times.runs = turns;
  return times;
}

std::unique_ptr<Backend> open_sim_backend(const std::string& script) {
  return std::make_unique<SimBackend>(sim::parse_script(script));
}

}  // namespace gpubench
