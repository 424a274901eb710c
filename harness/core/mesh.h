// The arrangement of a program's ranks. A mesh has named axes, "dp" (data-parallel), "tp" (tensor), "pp" (pipeline),
// "ep" (expert), "cp" (context); each rank is one point. Ranks that differ only along some axes form a group: the
// members of a collective.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// Distinct ranks in an order. Cheap to copy.
class RankGroup {
 public:
  RankGroup() = default;
  /// Throws ProgramError for a negative rank or a duplicate.
  explicit RankGroup(std::vector<int> members);
  [[nodiscard]] static RankGroup first(int ranks);

  [[nodiscard]] int size() const { return static_cast<int>(members().size()); }
  [[nodiscard]] bool empty() const { return members_ == nullptr; }
  [[nodiscard]] std::span<const int> members() const;
  [[nodiscard]] int operator[](int position) const { return members()[static_cast<std::size_t>(position)]; }
  [[nodiscard]] std::optional<int> position(int rank) const;
  [[nodiscard]] bool contains(int rank) const { return position(rank).has_value(); }
  /// "0, 1, 5"; "0 to 56 by 8" for more than four at equal distances.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const RankGroup& a, const RankGroup& b);

 private:
  std::shared_ptr<const std::vector<int>> members_;
};

struct MeshAxis {
  std::string name;
  int ranks = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// The last axis is fastest: with axes a and b, rank = place along a * ranks along b + place along b.
class Mesh {
 public:
  static constexpr int max_ranks = 1 << 20;

  Mesh() = default;
  /// Throws ProgramError for an axis of fewer than one rank, for a duplicate name, and above max_ranks.
  explicit Mesh(std::vector<MeshAxis> axes);
  [[nodiscard]] static Mesh line(int ranks) { return Mesh({{"dp", ranks}}); }

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::span<const MeshAxis> axes() const { return axes_; }
  /// The index of an axis. Throws ProgramError that names the known axes.
  [[nodiscard]] int axis(std::string_view name) const;
  [[nodiscard]] int place(int rank, int axis) const;
  /// All ranks that differ from `rank` along these axes only, with `rank` itself, ascending.
  [[nodiscard]] RankGroup group(int rank, std::span<const int> along) const;
  [[nodiscard]] RankGroup group(int rank, std::string_view along) const;
  /// The single axis along which the members differ; none for other groups.
  [[nodiscard]] std::optional<int> axis_of(const RankGroup& group) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  [[nodiscard]] int distance(int axis) const;

  std::vector<MeshAxis> axes_;
  int ranks_ = 1;
};

}  // namespace gpubench
