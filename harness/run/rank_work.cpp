#include "harness/run/rank_work.h"

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {
namespace {

/// A launch of the sequence, and where it is in its members' lanes, counted from 1.
struct Placed {
  const GroupLaunch* work = nullptr;
  std::vector<std::uint64_t> places;  // by member
};

const GroupLaunch& own_launch(const Launch& launch, int ranks) {
  const auto* work = dynamic_cast<const GroupLaunch*>(launch.get());
  if (work == nullptr)
    throw BackendError("a launch of a sequence is empty or of another backend; expected those bound by these ranks");
  for (const int rank : work->members().members()) {
    if (rank >= ranks)
      throw BackendError("'" + work->label() + "' runs on rank " + std::to_string(rank) + " of " +
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
    for (const int rank : work.members().members()) {
      // What has to be done before in the rank's other lane; its own lane runs in order.
      std::uint64_t last = 0;
      for (const int earlier : schedule.dependencies.at(index)) {
        const Placed& other = placed.at(static_cast<std::size_t>(earlier));
        if (other.work->is_collective() == work.is_collective()) continue;
        if (const std::optional<int> there = other.work->members().position(rank))
          last = std::max(last, other.places[static_cast<std::size_t>(*there)]);
      }
      RankProgram& program = programs[static_cast<std::size_t>(rank)];
      std::vector<LaneStep>& lane = work.is_collective() ? program.communication : program.compute;
      lane.push_back({&work.inner(), &work.label(), last});
      own.places.push_back(lane.size());
    }
    placed.push_back(std::move(own));
  }
  return programs;
}

}  // namespace gpubench
