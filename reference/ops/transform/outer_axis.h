// A step of some ranks, several times over: a mesh that has one axis more, in front of the step's own. Rank r of the
// step is rank place * ranks + r at each place along that axis.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

class OuterAxis {
 public:
  OuterAxis(const Program& step, std::string name, int places)
      : step_(step), name_(std::move(name)), places_(places), each_(step.mesh().ranks()) {}

  [[nodiscard]] Mesh mesh() const;
  [[nodiscard]] int each() const { return each_; }  ///< ranks of the step
  [[nodiscard]] int ranks() const { return places_ * each_; }
  [[nodiscard]] int rank(int place, int of_step) const { return place * each_ + of_step; }
  /// The members of a group of the step, there.
  [[nodiscard]] RankGroup group(const RankGroup& of_step, int place) const;
  /// The ranks at all places that are rank `of_step` of the step.
  [[nodiscard]] RankGroup across(int of_step) const;
  /// The label of an op, "x@1" of rank 1 of the step, as it is there: "x@3"; with `more`, ".parts": "x.parts@3".
  [[nodiscard]] std::string label(std::string_view of_step, int rank_of_step, int place,
                                  std::string_view more = "") const;
  /// The label of a collective of the step, there: "x@dp1".
  [[nodiscard]] std::string label(std::string_view of_step, int place) const;
  /// Makes of a tensor of the step the one that is there: its name, its rank, and the axes that it is spread over.
  void move(TensorSpec& spec, int place) const;

 private:
  const Program& step_;
  std::string name_;
  int places_, each_;
};

}  // namespace gpubench
