#include "harness/remote/served_lanes.h"

#include <chrono>
#include <exception>
#include <utility>

#include "harness/core/error.h"
#include "harness/remote/requests.h"

namespace gpubench {
namespace {

const std::string lining_up = "waiting for all ranks to start";
const std::string waiting_for_device = "waiting for its device";

}  // namespace

Heartbeat WorkProgress::beat() const {
  const bool computes = compute_.busy_;
  const bool waits = !computes && communication_.busy_;
  const std::string* const label = waits ? communication_.label_ : compute_.label_;
  return {compute_.steps_ + communication_.steps_, waits, label == nullptr ? std::string() : *label};
}

ServedLanes::ServedLanes(WorkProgress& progress)
    : progress_(progress),
      lanes_({[this](const LaneStep& step) { compute(step); },
              [this](const LaneStep& step) { communicate(step, true); }, [] {}}),
      communication_([this] { serve_communication(); }) {}

ServedLanes::~ServedLanes() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  communication_.join();
}

void ServedLanes::serve_communication() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || serving_; });
    if (ending_) return;
    lock.unlock();
    lanes_.serve();
    lock.lock();
    serving_ = false;
    changed_.notify_all();
  }
}

void ServedLanes::keep(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
}

// After a failed op, HostLanes still counts the steps and collectives still run: peers wait for them.
void ServedLanes::compute(const LaneStep& step) {
  if (failed_) return;
  progress_.compute().begin(step.label);
  try {
    backend_->run(*step.work);
  } catch (...) {
    failed_ = true;
    keep(std::current_exception());
  }
  progress_.compute().end();
}

void ServedLanes::communicate(const LaneStep& step, bool overlaps_compute) {
  if (cut_off_) return;
  progress_.communication().begin(step.label);
  try {
    collectives_->run(*step.work, overlaps_compute);
  } catch (...) {
    cut_off_ = failed_ = true;
    keep(std::current_exception());
  }
  progress_.communication().end();
}

// A single lane skips HostLanes: its waits would lengthen the shortest collectives by tenths of a microsecond.
void ServedLanes::run(const RankProgram& program) {
  if (program.compute.empty()) {
    for (const LaneStep& step : program.communication) communicate(step, program.overlaps_compute);
  } else if (program.communication.empty()) {
    for (const LaneStep& step : program.compute) compute(step);
  } else {
    lanes_.run(program);
  }
}

// The device aligns with its peers and takes the time. During the wait for it, the current op is unknown.
double ServedLanes::time_on(RankQueues& queues, std::span<const ServedProgram* const> order) {
  const RankQueues::At at = [this](const std::string& label) { progress_.compute().begin(&label); };
  queues.begin();
  for (const ServedProgram* one : order) queues.enqueue(one->program, at);
  progress_.compute().end();
  progress_.communication().begin(&waiting_for_device);
  const double elapsed_ns = queues.end();
  progress_.communication().end();
  return elapsed_ns;
}

double ServedLanes::time(Backend& backend, RankCollectives& collectives, std::span<const ServedProgram* const> order,
                         bool align) {
  if (RankQueues* const queues = align ? collectives.queues() : nullptr) return time_on(*queues, order);
  backend_ = &backend;
  collectives_ = &collectives;
  failed_ = cut_off_ = false;
  lanes_.reset();
  bool both = false;
  for (const ServedProgram* one : order)
    both = both || (!one->program.compute.empty() && !one->program.communication.empty());
  {
    const std::lock_guard lock(mutex_);
    failure_ = nullptr;
    serving_ = both;
  }
  if (both) changed_.notify_all();
  std::chrono::duration<double, std::nano> elapsed{0.0};
  progress_.compute().end();  // of the request; from here on, the ops report progress
  try {
    if (align) {
      progress_.communication().begin(&lining_up);
      collectives.align();
      progress_.communication().end();
    }
    const auto begin = std::chrono::steady_clock::now();
    for (const ServedProgram* one : order) run(one->program);
    elapsed = std::chrono::steady_clock::now() - begin;
  } catch (...) {  // from align(): lanes keep their exceptions
    keep(std::current_exception());
  }
  lanes_.finish();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !serving_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return elapsed.count();
}

void Answerer::beat() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(beat_every_s), [this] { return ending_; })) {
    if (!busy_) continue;
    const Heartbeat beat = progress_.beat();
    MessageWriter message;
    message.put(Answer::beat);
    message.put(beat.steps);
    message.put(beat.waits);
    message.put(beat.label);
    try {
      channel_.send(message.bytes());
    } catch (const std::exception&) {
      return;  // the answering thread meets the same error and reports it
    }
  }
}

}  // namespace gpubench
