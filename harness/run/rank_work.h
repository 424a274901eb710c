// Plans and bound work of a group of ranks, and how a sequence of it is cut up among them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/rank_program.h"

namespace gpubench {

/// The plan of an op of a group of ranks; see GroupLaunch.
class GroupPlan : public PlanImpl {
 public:
  GroupPlan(Plan inner, int rank, std::string label)
      : inner_(std::move(inner)), rank_(rank), label_(std::move(label)) {}
  [[nodiscard]] std::string implementation() const override { return inner_->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  [[nodiscard]] Choice choice() const override { return inner_->choice(); }
  [[nodiscard]] std::vector<std::string> rejected() const override { return inner_->rejected(); }
  [[nodiscard]] const Plan& inner() const { return inner_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& label() const { return label_; }

 private:
  Plan inner_;
  int rank_;
  std::string label_;
};

/// Bound work of a group of ranks: an op of one rank, or a collective of all.
class GroupLaunch : public LaunchImpl {
 public:
  GroupLaunch(Launch inner, int rank, std::string label)
      : inner_(std::move(inner)), rank_(rank), label_(std::move(label)) {}
  [[nodiscard]] const Launch& inner() const { return inner_; }
  [[nodiscard]] bool is_collective() const { return rank_ < 0; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& label() const { return label_; }

 private:
  Launch inner_;
  int rank_;  // -1: all
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

/// What each of `ranks` ranks does of a sequence. Throws BackendError where a launch is not a GroupLaunch.
[[nodiscard]] std::vector<RankProgram> rank_programs(std::span<const Launch> launches, const Schedule& schedule,
                                                     int ranks);

}  // namespace gpubench
