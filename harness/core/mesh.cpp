#include "harness/core/mesh.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/core/error.h"

namespace gpubench {

RankGroup::RankGroup(std::vector<int> members) {
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || sorted.front() < 0 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw ProgramError("a group of ranks is empty, or has a negative rank or a duplicate; expected each member once");
  members_ = std::make_shared<const std::vector<int>>(std::move(members));
}

RankGroup RankGroup::first(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(std::max(ranks, 0)));
  std::iota(members.begin(), members.end(), 0);
  return RankGroup(std::move(members));
}

std::span<const int> RankGroup::members() const {
  return members_ == nullptr ? std::span<const int>() : std::span<const int>(*members_);
}

std::optional<int> RankGroup::position(int rank) const {
  const auto found = std::find(members().begin(), members().end(), rank);
  return found == members().end() ? std::nullopt : std::optional(static_cast<int>(found - members().begin()));
}

std::string RankGroup::to_string() const {
  constexpr int listed = 4;
  const int step = size() > 1 ? (*this)[1] - (*this)[0] : 0;
  const bool even = std::adjacent_find(members().begin(), members().end(),
                                       [step](int a, int b) { return b - a != step; }) == members().end();
  if (size() > listed && even) {
    return std::to_string(members().front()) + " to " + std::to_string(members().back()) +
           (step == 1 ? "" : " by " + std::to_string(step));
  }
  std::string text;
  for (const int rank : members()) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

bool operator==(const RankGroup& a, const RankGroup& b) {
  return a.members_ == b.members_ ||
         std::equal(a.members().begin(), a.members().end(), b.members().begin(), b.members().end());
}

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const MeshAxis& axis = axes_[i];
    const auto same = [&axis](const MeshAxis& other) { return other.name == axis.name; };
    if (std::any_of(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(i), same))
      throw ProgramError("a mesh has axis '" + axis.name + "' twice");
    if (axis.ranks < 1 || axis.ranks > max_ranks / ranks_) {
      throw ProgramError("axis '" + axis.name + "' of a mesh has " + std::to_string(axis.ranks) +
                         " ranks; expected at least 1, and at most " + std::to_string(max_ranks) + " in total");
    }
    ranks_ *= axis.ranks;
  }
}

int Mesh::axis(std::string_view name) const {
  std::string known;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
    known += (known.empty() ? "" : ", ") + axes_[i].name;
  }
  throw ProgramError("the mesh has no axis '" + std::string(name) + "'; it has " + (known.empty() ? "none" : known));
}

int Mesh::distance(int axis) const {
  int ranks = 1;
  for (std::size_t inner = static_cast<std::size_t>(axis) + 1; inner < axes_.size(); ++inner)
    ranks *= axes_[inner].ranks;
  return ranks;
}

int Mesh::place(int rank, int axis) const {
  return rank / distance(axis) % axes_.at(static_cast<std::size_t>(axis)).ranks;
}

RankGroup Mesh::group(int rank, std::span<const int> along) const {
  if (rank < 0 || rank >= ranks_)
    throw ProgramError("rank " + std::to_string(rank) + " is outside a mesh of " + std::to_string(ranks_) + " ranks");
  std::vector<int> members{rank};
  for (const int axis : along) members.front() -= place(rank, axis) * distance(axis);
  for (const int axis : along) {
    const std::size_t before = members.size();
    for (int place = 1; place < axes_.at(static_cast<std::size_t>(axis)).ranks; ++place) {
      for (std::size_t i = 0; i < before; ++i) members.push_back(members[i] + place * distance(axis));
    }
  }
  std::sort(members.begin(), members.end());
  return RankGroup(std::move(members));
}

RankGroup Mesh::group(int rank, std::string_view along) const { return group(rank, std::array{axis(along)}); }

std::optional<int> Mesh::axis_of(const RankGroup& group) const {
  const auto members = group.members();
  if (members.size() < 2 || *std::max_element(members.begin(), members.end()) >= ranks_) return std::nullopt;
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    if (axes_[static_cast<std::size_t>(axis)].ranks == group.size() && group == this->group(group[0], std::array{axis}))
      return axis;
  }
  return std::nullopt;
}

}  // namespace gpubench
