// Planning: from suites, tier and filters to the list of cases, with memory and cost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/workload.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// The cases that the user selects; empty lists mean "all".
struct Selection {
  std::vector<std::string> suites;  ///< names; "all" or empty: every suite except those only_by_name
  Tier tier = Tier::quick;
  std::vector<std::string> filters;                ///< regular expressions searched in the id; any may match
  std::vector<std::string> excludes;               ///< and none of these
  std::vector<std::string> precisions;             ///< recipe names
  std::vector<std::string> default_precisions;     ///< used if `precisions` is empty; empty: all
  LaunchMode default_launch = LaunchMode::stream;  ///< of cases on one rank; not part of their id
  std::vector<LaunchMode> launches;                ///< each case in each of these; empty: the default
  bool fuse = true;                                ///< false: every op runs as declared; ids have "unfused"
  std::vector<std::int64_t> batches;               ///< replaces the batch axis of every point
  std::vector<int> ranks;             ///< each case on each of these that it supports; empty: the fewest it supports
  int ranks_there = 1;                ///< ranks of the device, the limit for WorkloadInfo::on_all_ranks
  std::optional<int> processes = {};  ///< processes started as ranks; without `ranks`, each case uses all of them
  /// How the ranks of each case share its tensors; `dp` times parallel.ranks() replaces `ranks`. Applies to the
  /// workloads that support it (can_share); no layouts: every rank has whole tensors.
  struct Layout {
    std::optional<int> dp = {};
    RankLayout parallel;
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  std::vector<Layout> layouts;
  bool virtual_ranks = false;  ///< several ranks share one device; ids have "virtual"
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> axes;  ///< --axis k=v,...: replaces that dimension
};

struct PlannedCase {
  Case c;
  std::shared_ptr<const Workload> workload;
  Cost cost;               ///< of one run of the timed program
  std::int64_t bytes = 0;  ///< of the program's tensors, one copy
  std::uint64_t definition = 0;

  [[nodiscard]] std::string id() const { return c.id(); }
  [[nodiscard]] std::string key() const { return c.key(); }
};

[[nodiscard]] bool can_share(const WorkloadInfo& info, const RankLayout& parallel);
/// The rank counts of a layout: `ranks` (--ranks), or from dp, or the fewest that the layout needs. Throws UsageError
/// if both dp and `ranks` are given, and for a count that is not a multiple of the layout's.
[[nodiscard]] std::vector<int> ranks_of(const Selection::Layout& layout, std::vector<int> ranks);

/// All cases in suite order, each id once; may be empty. Throws UsageError for an unknown suite, precision or axis,
/// with the known names and the nearest one, and for an invalid regular expression.
[[nodiscard]] std::vector<PlannedCase> plan_cases(std::span<const Suite> suites, const Selection& selection);

/// Throws UsageError if the product of the four largest extents is 2^56 or more: costs could overflow.
void expect_countable(const Dims& dims);

/// The cases of plan_cases(), without building any program: cost, bytes and definition are 0.
[[nodiscard]] std::vector<PlannedCase> declared_cases(std::span<const Suite> suites, const Selection& selection);

/// A declared case with cost, bytes and definition. Throws ProgramError for inconsistent extents.
[[nodiscard]] PlannedCase with_program(PlannedCase declared);

/// Digest of the work that a case id stands for; two reports with the same digest measured the same work. Covers id,
/// cache, cadence and items; name, type, shape, layout, placement and fill of each tensor; kind, attributes,
/// arithmetic, FLOP, bytes, inputs and outputs of each op. Excludes choices of a device or backend: launch mode,
/// fusion, implementations. Counts are rounded to 12 digits, since sums may round differently on other machines.
[[nodiscard]] std::uint64_t definition_digest(const Case& c, const Workload& workload, const Program& program);

}  // namespace gpubench
