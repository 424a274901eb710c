#include "harness/run/host_lanes.h"

namespace gpubench {

// A run without steps in one of the lanes needs no second thread: the collectives of a lone one run right here.
void HostLanes::run(const RankProgram& program) {
  if (program.compute.empty() || program.communication.empty()) {
    for (const LaneStep& step : program.compute) hooks_.compute(step);
    for (const LaneStep& step : program.communication) hooks_.communicate(step);
    return;
  }
  program_.store(&program);
  begun_.advance();
  for (const LaneStep& step : program.compute) {
    if (step.waits_for > 0) await(communicated_, communicated_before_ + step.waits_for);
    hooks_.compute(step);
    computed_.advance();
  }
  communicated_before_ += program.communication.size();
  await(communicated_, communicated_before_);
}

void HostLanes::finish() {
  program_.store(nullptr);
  begun_.advance();
}

void HostLanes::serve() {
  for (std::uint64_t run = 1;; ++run) {
    await(begun_, run);
    const RankProgram* program = program_.load();
    if (program == nullptr) return;
    for (const LaneStep& step : program->communication) {
      if (step.waits_for > 0) await(computed_, computed_before_ + step.waits_for);
      hooks_.communicate(step);
      communicated_.advance();
    }
    computed_before_ += program->compute.size();
  }
}

void HostLanes::stop() {
  for (Progress* one : {&begun_, &computed_, &communicated_}) one->stop();
}

void HostLanes::reset() {
  for (Progress* one : {&begun_, &computed_, &communicated_}) one->reset();
  computed_before_ = communicated_before_ = 0;
}

void HostLanes::await(const Progress& progress, std::uint64_t goal) const {
  hooks_.waiting();
  progress.wait_for(goal, 0);
}

}  // namespace gpubench
