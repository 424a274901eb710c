#include "harness/parity/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "reference/ops/pointwise.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace special_data_test {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<double> values(const HostTensor& tensor) {
  std::vector<double> all;
  for (std::int64_t e = 0; e < tensor.elements(); ++e) all.push_back(tensor.get(e));
  return all;
}

// x = (1, -2, 3), r = (10, 20, 30) and their sum.
std::vector<SpecialData> data_of(DType type) {
  Program p;
  add(p, Math{}, "op", p.add(tensor("x", type, {3}, Role::activation, Fill::normal(1.0))),
      p.add(tensor("r", type, {3}, Role::activation, Fill::normal(1.0))));
  std::vector<HostTensor> inputs;
  for (const ValueId id : p.op(0).inputs) inputs.emplace_back(p.spec(id));
  for (std::int64_t e = 0; e < 3; ++e) {
    inputs[0].set(e, std::array{1.0, -2.0, 3.0}[static_cast<std::size_t>(e)]);
    inputs[1].set(e, 10.0 * static_cast<double>(e + 1));
  }
  return special_data(p.op(0), inputs, specs_of(p, p.op(0).outputs));
}

std::vector<SpecialData> of(SpecialKind kind, DType type = DType::f32) {
  std::vector<SpecialData> all = data_of(type);
  std::erase_if(all, [&](const SpecialData& data) { return data.kind != kind; });
  return all;
}

TEST(SpecialData, HasOneNaNInOneOperandAtATime) {
  const std::vector<SpecialData> all = of(SpecialKind::nan);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "'x'");
  EXPECT_EQ(all[1].name, "'r'");
  for (std::size_t i = 0; i < 2; ++i) {
    int nan = 0;
    for (std::int64_t e = 0; e < 3; ++e) {
      const bool is_nan = std::isnan(all[i].inputs[i].get(e));
      nan += is_nan ? 1 : 0;
      EXPECT_EQ(std::isnan(all[i].right[0].get(e)), is_nan);
      EXPECT_FALSE(std::isnan(all[i].inputs[1 - i].get(e)));
    }
    EXPECT_EQ(nan, 1);
    EXPECT_THAT(values(all[i].wrong[0]), ElementsAre(11.0, 18.0, 33.0));
  }
}

TEST(SpecialData, HasNoInfinityInATypeWithoutAny) {
  EXPECT_EQ(of(SpecialKind::infinity, DType::f32).size(), 2U);
  EXPECT_EQ(of(SpecialKind::infinity, DType::bf16).size(), 2U);
  const SpecialData data = of(SpecialKind::infinity).front();
  int infinite = 0;
  for (const double value : values(data.right[0])) infinite += std::isinf(value) ? 1 : 0;
  EXPECT_EQ(infinite, 1);
}

TEST(SpecialData, OfZerosAndConstantsIsWhatTheSumSays) {
  const SpecialData zeros = of(SpecialKind::zeros).front();
  EXPECT_THAT(values(zeros.right[0]), Each(0.0));
  EXPECT_THAT(values(zeros.wrong[0]), ElementsAre(11.0, 18.0, 33.0));
  const SpecialData constants = of(SpecialKind::constants).front();
  EXPECT_THAT(values(constants.right[0]), Each(11.0));
}

TEST(SpecialData, HasDenormalsOfTheTypeWithTheSignsThatWereThere) {
  for (const auto& [type, step] : {std::pair(DType::f32, 0x1p-149), std::pair(DType::bf16, 0x1p-133)}) {
    const SpecialData data = of(SpecialKind::denormals, type).front();
    for (std::int64_t e = 0; e < 3; ++e) {
      const double multiple = data.inputs[0].get(e) / step;
      EXPECT_EQ(multiple, std::round(multiple));
      EXPECT_GE(std::fabs(multiple), 1.0);
      EXPECT_LE(std::fabs(multiple), 7.0);
      EXPECT_EQ(std::signbit(multiple), e == 1);
      EXPECT_EQ(data.right[0].get(e), data.inputs[0].get(e) + data.inputs[1].get(e));
    }
    EXPECT_THAT(values(data.wrong[0]), Each(0.0));
  }
}

}  // namespace special_data_test
}  // namespace gpubench
