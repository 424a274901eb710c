#include "harness/run/rank_work.h"

#include <algorithm>

#include "harness/core/error.h"

namespace gpubench {

std::vector<RankProgram> rank_programs(std::span<const Launch> launches, const Schedule& schedule, int ranks) {
  std::vector<RankProgram> programs(static_cast<std::size_t>(ranks));
  std::vector<std::uint64_t> place(launches.size());  // in its lane, counted from 1
  std::vector<const GroupLaunch*> works;
  for (std::size_t index = 0; index < launches.size(); ++index) {
    const auto* work = dynamic_cast<const GroupLaunch*>(launches[index].get());
    if (work == nullptr)
      throw BackendError("a launch of a sequence is empty or of another backend; expected those bound by these ranks");
    works.push_back(work);
    // What `rank` has to wait for in its other lane; its own lane runs in order.
    const auto waits = [&](int rank, bool for_collectives) {
      std::uint64_t last = 0;
      for (const int earlier : schedule.dependencies.at(index)) {
        const auto at = static_cast<std::size_t>(earlier);
        const bool counts =
            for_collectives ? works[at]->is_collective() : !works[at]->is_collective() && works[at]->rank() == rank;
        if (counts) last = std::max(last, place[at]);
      }
      return last;
    };
    if (work->is_collective()) {
      for (int rank = 0; rank < ranks; ++rank) {
        auto& lane = programs[static_cast<std::size_t>(rank)].communication;
        lane.push_back({&work->inner(), &work->label(), waits(rank, false)});
        place[index] = lane.size();
      }
    } else {
      auto& lane = programs.at(static_cast<std::size_t>(work->rank())).compute;
      lane.push_back({&work->inner(), &work->label(), waits(work->rank(), true)});
      place[index] = lane.size();
    }
  }
  return programs;
}

}  // namespace gpubench
