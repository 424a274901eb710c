// Plans and bound work of several ranks, and how a sequence of it is cut up among them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/mesh.h"

namespace gpubench {

/// The plan of an op of several ranks; see GroupLaunch.
class GroupPlan : public PlanImpl {
 public:
  GroupPlan(Plan inner, RankGroup members, std::string label)
      : inner_(std::move(inner)), members_(std::move(members)), label_(std::move(label)) {}
  [[nodiscard]] std::string implementation() const override { return inner_->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  [[nodiscard]] Choice choice() const override { return inner_->choice(); }
  [[nodiscard]] std::vector<std::string> rejected() const override { return inner_->rejected(); }
  [[nodiscard]] const Plan& inner() const { return inner_; }
  /// One rank, or the members of a collective.
  [[nodiscard]] const RankGroup& members() const { return members_; }
  [[nodiscard]] bool is_collective() const { return members_.size() > 1; }
  [[nodiscard]] const std::string& label() const { return label_; }

 private:
  Plan inner_;
  RankGroup members_;
  std::string label_;
};

/// Bound work of several ranks: an op of one of them, or a collective of some.
class GroupLaunch : public LaunchImpl {
 public:
  GroupLaunch(Launch inner, RankGroup members, std::string label)
      : inner_(std::move(inner)), members_(std::move(members)), label_(std::move(label)) {}
  [[nodiscard]] const Launch& inner() const { return inner_; }
  [[nodiscard]] const RankGroup& members() const { return members_; }
  [[nodiscard]] bool is_collective() const { return members_.size() > 1; }
  [[nodiscard]] const std::string& label() const { return label_; }

 private:
  Launch inner_;
  RankGroup members_;
  std::string label_;
};

/// A sequence, cut up.
class GroupSequence : public LaunchImpl {
 public:
  GroupSequence(std::vector<Launch> held, std::vector<RankProgram> programs)
      : held_(std::move(held)), programs_(std::move(programs)) {}
  [[nodiscard]] const RankProgram& of(int rank) const { return programs_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Launch> held_;
  std::vector<RankProgram> programs_;
};

/// What each of `ranks` ranks does of a sequence: a collective is in its members' lanes only, and where two have
/// members in common these have them in one order. Throws BackendError where a launch is not a GroupLaunch of these
/// ranks.
[[nodiscard]] std::vector<RankProgram> rank_programs(std::span<const Launch> launches, const Schedule& schedule,
                                                     int ranks);

}  // namespace gpubench
