// copy, repeat_rows, transpose and reorder on the CPU: bit-exact moves, also to and from blocked layouts.
#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/move_contract.h"

namespace gpubench {
namespace move_test {

using testing::cpu_contract;
using testing::ProgramRun;
using testing::shared_backend;

TEST(Copy, KeepsEveryBitOfEveryTypeAndSize) { testing::expect_copies(cpu_contract(), {1, 7, 64, 333, 8200}); }

TEST(Copy, OfAPartTouchesNothingElse) { testing::expect_copies_of_parts(cpu_contract()); }

TEST(RepeatRows, WritesEveryRowAsOftenAsAskedAndNothingElse) { testing::expect_repeated_rows(cpu_contract()); }

TEST(Transpose, PutsEveryElementWhereThePermutationSays) { testing::expect_transposes(cpu_contract()); }

TEST(Transpose, KeepsNanPayloadsAndSubnormals) { testing::expect_transposes_to_keep_bits(cpu_contract()); }

TEST(Reorder, KeepsTheLogicalTensorInAnyLayout) {
  const Shape image{2, 19, 5, 6};  // n, c, h, w
  testing::expect_reorders(cpu_contract(), image,
                           {Layout::row_major(image), Layout::ordered(image, std::vector<int>{0, 2, 3, 1}),
                            Layout::blocked(image, {{1, 16}})});
  const Shape filter{40, 33, 3, 2};  // o, i, h, w; the last layout has bf16 pairs, as for AMX and VNNI
  testing::expect_reorders(cpu_contract(), filter,
                           {Layout::row_major(filter), Layout::blocked(filter, {{1, 16}, {0, 16}}),
                            Layout::blocked(filter, {{1, 8}, {0, 16}, {1, 2}})});
  const Shape run{17};
  testing::expect_reorders(cpu_contract(), run, {Layout::row_major(run), Layout::blocked(run, {{0, 4}})});
}

TEST(Reorder, WritesZerosIntoThePaddingOfBlocks) {
  const Shape shape{3, 5};
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, shape, Role::activation));
  const ValueId y = reorder(program, Layout::blocked(shape, {{1, 4}}), "reorder", x);
  ProgramRun run(shared_backend(), program);
  run.set(x, std::vector<double>(15, 1.0));
  run.run();
  const std::vector<std::byte> bytes = run.bytes_of(y);
  ASSERT_EQ(bytes.size(), 3U * 8U * 4U);  // 5 columns take two blocks of 4
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t pad = 5; pad < 8; ++pad) {
      const std::byte* element = bytes.data() + 4 * (row * 8 + pad);
      EXPECT_EQ(load(DType::f32, element), 0.0) << row << ", " << pad;
    }
  }
}

}  // namespace move_test
}  // namespace gpubench
