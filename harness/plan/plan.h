// Planning: from suites, tier and filters to the list of cases, with an estimate of memory and work. Pure.
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

/// What the user asked for; empty lists mean "all".
struct Selection {
  std::vector<std::string> suites;  ///< names; "all" or empty: every suite but those only_by_name
  Tier tier = Tier::quick;
  std::vector<std::string> filters;                ///< regular expressions searched in the id; any may match
  std::vector<std::string> excludes;               ///< and none of these
  std::vector<std::string> precisions;             ///< recipe names
  std::vector<std::string> default_precisions;     ///< what an empty `precisions` means; empty: all of them
  LaunchMode default_launch = LaunchMode::stream;  ///< of one device; cases in this mode do not say so in their id
  std::vector<LaunchMode> launches;                ///< each case in each of these; empty: in the default
  bool fuse = true;                                ///< false: every op runs as declared; ids say "unfused"
  std::vector<std::int64_t> batches;               ///< replaces the batch axis of every point
  std::vector<int> ranks;  ///< each case on each of these that it supports; empty: the fewest it supports
  int ranks_there = 1;     ///< that the device has: what WorkloadInfo::on_all_ranks goes up to
  std::optional<int> processes =
      {};  ///< that were started as ranks: without `ranks`, all of them take part in each case
  /// Each case shared so by its ranks, as far as it can be; empty: every rank has whole tensors. With `dp`, that times
  /// tp ranks take the place of `ranks`.
  struct Layout {
    std::optional<int> dp = {};
    RankLayout parallel;
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  std::vector<Layout> layouts;
  bool virtual_ranks = false;  ///< several ranks share one device; ids say "virtual"
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> axes;  ///< --axis k=v,...: replaces that dimension
};

struct PlannedCase {
  Case c;
  std::shared_ptr<const Workload> workload;
  Cost cost;                     ///< of one run of the timed program
  std::int64_t bytes = 0;        ///< of the program's tensors, one copy
  std::uint64_t definition = 0;  ///< definition_digest()

  [[nodiscard]] std::string id() const { return c.id(); }
  [[nodiscard]] std::string key() const { return c.key(); }
};

/// Whether ranks of the workload can lie so.
[[nodiscard]] bool can_share(const WorkloadInfo& info, const RankLayout& parallel);
/// What --ranks (`ranks`) and a layout say together: the one that does, or else as few as the layout needs. Throws
/// UsageError where both say how many there are, and for a number that the layout cannot divide up.
[[nodiscard]] std::vector<int> ranks_of(const Selection::Layout& layout, std::vector<int> ranks);

/// All cases in suite order, each id once. Throws UsageError for an unknown suite, precision or axis, naming the known
/// ones and the nearest match, and for a malformed regular expression. An empty result is not an error here (exit 5).
[[nodiscard]] std::vector<PlannedCase> plan_cases(std::span<const Suite> suites, const Selection& selection);

/// Throws UsageError where the four largest extents multiply to 2^56 or more, which suites cannot count.
void expect_countable(const Dims& dims);

/// The cases of plan_cases(), without building any program: cost, bytes and definition are 0.
[[nodiscard]] std::vector<PlannedCase> declared_cases(std::span<const Suite> suites, const Selection& selection);

/// A declared case as plan_cases() plans it. Throws ProgramError where its extents are inconsistent.
[[nodiscard]] PlannedCase with_program(PlannedCase declared);

/// The meaning of a case id in 64 bits, so that a report can show that it measured the same work as another: a digest
/// of everything that defines a case, as its suite declares it: the id, caches and cadence, items; each tensor's name,
/// type, shape, layout, place and fill; each op's kind, attributes, arithmetic, FLOP and bytes, and what it reads and
/// writes. Nothing that a device or a backend decides: launches, fusing, implementations. Counts are rounded to 12
/// digits, since sums may round differently elsewhere, so that every machine and compiler gets the same digest.
[[nodiscard]] std::uint64_t definition_digest(const Case& c, const Workload& workload, const Program& program);

}  // namespace gpubench
