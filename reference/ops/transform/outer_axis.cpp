#include "reference/ops/transform/partition.h"

#include <utility>
#include <vector>

namespace gpubench {

Mesh OuterAxis::mesh() const {
  std::vector<MeshAxis> axes{{name_, places_}};
  axes.insert(axes.end(), step_.mesh().axes().begin(), step_.mesh().axes().end());
  return Mesh(std::move(axes));
}

RankGroup OuterAxis::group(const RankGroup& of_step, int place) const {
  std::vector<int> members;
  for (const int member : of_step.members()) members.push_back(rank(place, member));
  return RankGroup(std::move(members));
}

RankGroup OuterAxis::across(int of_step) const {
  std::vector<int> members;
  for (int place = 0; place < places_; ++place) members.push_back(rank(place, of_step));
  return RankGroup(std::move(members));
}

std::string OuterAxis::label(std::string_view of_step, int rank_of_step, int place, std::string_view more) const {
  const std::string suffix = name_on_rank("", rank_of_step, each_);
  if (of_step.ends_with(suffix)) of_step.remove_suffix(suffix.size());
  return name_on_rank(std::string(of_step) + std::string(more), rank(place, rank_of_step), ranks());
}

std::string OuterAxis::label(std::string_view of_step, int place) const {
  return std::string(of_step) + "@" + name_ + std::to_string(place);
}

void OuterAxis::move(TensorSpec& spec, int place) const {
  const int there = rank(place, spec.placement.rank);
  spec.name = name_on_rank(spec.global_name(), there, ranks());
  spec.placement.rank = there;
  spec.placement.ranks = ranks();
  for (AxisSpread& spread : spec.placement.spread) {
    if (spread.mesh_axis != AxisSpread::no_axis_yet) ++spread.mesh_axis;
  }
}

}  // namespace gpubench
