#include "harness/run/rank_group.h"

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {
namespace {

/// A launch and its positions in its members' lanes, from 1.
struct Placed {
  const GroupLaunch* work = nullptr;
  std::vector<std::uint64_t> places;  // by member
};

const GroupLaunch& own_launch(const Launch& launch, int ranks) {
  const auto* work = dynamic_cast<const GroupLaunch*>(launch.get());
  if (work == nullptr)
    throw BackendError("a launch of a sequence is empty or of another backend; expected those bound by these ranks");
  for (const int rank : work->op.members.members()) {
    if (rank >= ranks)
      throw BackendError("'" + work->op.label + "' runs on rank " + std::to_string(rank) + " of " +
                         std::to_string(ranks) + " ranks");
  }
  return *work;
}

}  // namespace

std::vector<RankProgram> rank_programs(std::span<const Launch> launches, const Schedule& schedule, int ranks) {
  std::vector<RankProgram> programs(static_cast<std::size_t>(ranks));
  std::vector<Placed> placed;
  placed.reserve(launches.size());
  for (std::size_t index = 0; index < launches.size(); ++index) {
    const GroupLaunch& work = own_launch(launches[index], ranks);
    Placed own{&work, {}};
    for (const int rank : work.op.members.members()) {
      // The last step of the rank's other lane to wait for; each lane runs in order.
      std::uint64_t last = 0;
      for (const int earlier : schedule.dependencies.at(index)) {
        const Placed& other = placed.at(static_cast<std::size_t>(earlier));
        if (other.work->op.is_collective() == work.op.is_collective()) continue;
        if (const std::optional<int> there = other.work->op.members.position(rank))
          last = std::max(last, other.places[static_cast<std::size_t>(*there)]);
      }
      RankProgram& program = programs[static_cast<std::size_t>(rank)];
      std::vector<LaneStep>& lane = work.op.is_collective() ? program.communication : program.compute;
      lane.push_back({&work.inner, &work.op.label, last});
      own.places.push_back(lane.size());
    }
    placed.push_back(std::move(own));
  }
  const bool computes = std::ranges::any_of(programs, [](const RankProgram& one) { return !one.compute.empty(); });
  for (RankProgram& program : programs) program.overlaps_compute = computes;
  return programs;
}

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
