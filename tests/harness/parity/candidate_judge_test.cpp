#include "harness/parity/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace candidate_judge_test {

using ::testing::HasSubstr;

struct Sum {
  Program program;
  ValueId a = program.add(tensor("a", DType::f32, {8}, Role::input));
  ValueId b = program.add(tensor("b", DType::f32, {8}, Role::input));
  ValueId y = add(program, Math{}, "y", a, b);
  std::vector<float> in_a{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> in_b{8, 7, 6, 5, 4, 3, 2, 1};
  std::vector<float> out = std::vector<float>(8, 9.0F);

  [[nodiscard]] TensorView view(ValueId id, const std::vector<float>& values) const {
    return {program.spec(id), reinterpret_cast<const std::byte*>(values.data())};
  }
  [[nodiscard]] std::string objection() const {
    return CandidateJudge(program, 0).objection(std::vector{view(a, in_a), view(b, in_b)}, std::vector{view(y, out)});
  }
};

TEST(CandidateJudge, AcceptsTheTextbooksResults) { EXPECT_EQ(Sum().objection(), ""); }

TEST(CandidateJudge, ReportsHowManyElementsAreOutsideTheBoundAndByHowMuch) {
  Sum sum;
  sum.out[2] = 10.0F;
  sum.out[5] = 9.5F;
  EXPECT_THAT(sum.objection(), HasSubstr("2 of 8 judged elements of 'y' outside their bound, by up to "));
}

TEST(CandidateJudge, AnUnwrittenElementIsOutside) {
  Sum sum;
  sum.out[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(sum.objection(), HasSubstr("1 of 8 judged elements of 'y' outside their bound, by up to inf times"));
}

TEST(CandidateJudge, TensorsThatTheOpHasNotAreAProgramError) {
  const Sum sum;
  EXPECT_THROW((void)CandidateJudge(sum.program, 0).objection({}, std::vector{sum.view(sum.y, sum.out)}), ProgramError);
}

}  // namespace candidate_judge_test
}  // namespace gpubench
