#include "reference/cuda/round_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "reference/cuda/kernels/timing.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration elapsed) { return std::chrono::duration<double, std::nano>(elapsed).count(); }

// A sample at least this long is not changed by the gap before its first kernel.
constexpr double long_sample_ns = 5e6;
// Host time of one launch, generously; and how many may wait in the queue before the host waits for the device.
constexpr double host_call_ns = 5e3;
constexpr std::int64_t most_queued = 256;

}  // namespace

RoundTimes RoundTimer::time(std::span<const Launch> copies, const RoundPlan& plan) {
  if (copies.empty() || plan.samples < 0 || plan.batch < 1) {
    throw BackendError(
        fmt::format("cuda: a round of {} samples of {} runs over {} copies; expected at least one run and copy",
                    plan.samples, plan.batch, copies.size()));
  }
  const std::int64_t total = plan.samples * plan.batch;
  if (queue_ == nullptr || !queue_->serves(copies, plan.batch, total)) {
    queue_ = nullptr;  // first free what the last case held
    queue_ = std::make_unique<RunQueue>(copies, plan.batch, total, stream_);
  }
  make_events(plan.samples);
  RoundTimes times;
  const double run_ns = warm_up(plan, times.runs);
  times.device_ns.resize(static_cast<std::size_t>(plan.samples));
  times.wall_ns.resize(static_cast<std::size_t>(plan.samples));
  const bool is_long = run_ns * static_cast<double>(plan.batch) >= long_sample_ns;
  if (!is_long) queued(plan, run_ns, times);
  alone(plan, is_long, times);
  times.runs += is_long ? total : 2 * total;
  return times;
}

double RoundTimer::warm_up(const RoundPlan& plan, std::int64_t& calls) {
  const std::int64_t at_once = std::min<std::int64_t>(plan.batch, most_queued);
  const Clock::time_point start = Clock::now();
  calls = 0;
  double run_ns = 0.0;
  // At least once, so that there is an estimate; a round that asks for no warm-up has been warmed by an earlier one.
  do {
    const Clock::time_point begin = Clock::now();
    const std::int64_t count = calls == 0 ? 1 : at_once;
    queue_->enqueue(0, count);
    wait();
    run_ns = nanoseconds(Clock::now() - begin) / static_cast<double>(count);
    calls += count;
  } while (calls < plan.warmup_calls || nanoseconds(Clock::now() - start) < plan.warmup_s * 1e9);
  return run_ns;
}

void RoundTimer::queued(const RoundPlan& plan, double run_ns, RoundTimes& times) {
  const std::int64_t calls = std::min(queue_->host_calls(plan.batch), most_queued);
  // Runs longer than their launch fill the queue by themselves, but for the first.
  const double host_ns = run_ns > 50e3 ? 2 * host_call_ns : host_call_ns * static_cast<double>(calls + 2);
  for (int sample = 0; sample < plan.samples; ++sample) {
    const auto index = static_cast<std::size_t>(sample);
    launch_spin(static_cast<std::uint64_t>(host_ns), stream_);
    check_launch("the spin kernel");
    check(cudaEventRecord(begin_[index].get(), stream_), "recording an event");
    queue_->enqueue(sample * plan.batch, plan.batch);
    check(cudaEventRecord(end_[index].get(), stream_), "recording an event");
  }
  wait();
  for (int sample = 0; sample < plan.samples; ++sample) {
    times.device_ns[static_cast<std::size_t>(sample)] = elapsed_ns(sample);
  }
}

void RoundTimer::alone(const RoundPlan& plan, bool by_events, RoundTimes& times) {
  for (int sample = 0; sample < plan.samples; ++sample) {
    const auto index = static_cast<std::size_t>(sample);
    const Clock::time_point begin = Clock::now();
    if (by_events) check(cudaEventRecord(begin_[index].get(), stream_), "recording an event");
    queue_->enqueue(sample * plan.batch, plan.batch);
    if (by_events) check(cudaEventRecord(end_[index].get(), stream_), "recording an event");
    wait();
    times.wall_ns[index] = nanoseconds(Clock::now() - begin);
    if (by_events) times.device_ns[index] = elapsed_ns(sample);
  }
}

void RoundTimer::make_events(int samples) {
  while (begin_.size() < static_cast<std::size_t>(samples)) {
    begin_.push_back(make_event());
    end_.push_back(make_event());
  }
}

double RoundTimer::elapsed_ns(int sample) const {
  float ms = 0.0F;
  const auto index = static_cast<std::size_t>(sample);
  check(cudaEventElapsedTime(&ms, begin_[index].get(), end_[index].get()), "reading the time between two events");
  return static_cast<double>(ms) * 1e6;
}

void RoundTimer::wait() const { check(cudaStreamSynchronize(stream_), "waiting for the device"); }

}  // namespace gpubench::cuda
