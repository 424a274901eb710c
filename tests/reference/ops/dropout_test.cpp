#include "reference/ops/dropout.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "reference/ops/shared_textbook.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace dropout_test {

struct Example {
  Program program;
  ValueId x, seed, offset, y;

  Example(double p, DType type, const Shape& shape) {
    x = source(program, "x", type, shape);
    seed = source(program, "seed", DType::i32, {2});
    offset = source(program, "offset", DType::i32, {2});
    y = dropout(program, {p}, type == DType::f64 ? f64_math : f32_math, "dropout", x, {seed, offset});
  }
};

// From Random123's known answers of philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32_10({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Dropout, DropsWhatTheKnownAnswerSaysAndScalesTheRest) {
  // The first words of seed 0 and offset 0, as parts of 2^32: 0.40, 0.88, 0.74, 0.61.
  Example s(0.5, DType::f64, {4});
  TextbookRun run(s.program);
  run.set(s.x, {1, 2, 3, 4});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{0, 4, 6, 8}));

  Example more(0.75, DType::f64, {4});
  TextbookRun more_run(more.program);
  more_run.set(more.x, {1, 2, 3, 4});
  EXPECT_EQ(values_of(more_run.judge(0, 0)), (std::vector<double>{0, 8, 0, 0}));
}

TEST(Dropout, CountsElementsInItsCounterBesideTheOffset) {
  Example s(0.5, DType::f64, {3, 40});
  TextbookRun run(s.program);
  run.set(s.x, std::vector<double>(120, 1.0));
  run.set(s.seed, {-1, 7});
  run.set(s.offset, {5, -2});
  const std::vector<double> y = values_of(run.judge(0, 0));
  for (std::uint32_t i = 0; i < 120; ++i) {
    const auto words = philox4x32_10({i / 4, 0, 5, 0xfffffffe}, {0xffffffff, 7});
    EXPECT_EQ(y[i], words[i % 4] < 0x80000000U ? 0.0 : 2.0) << i;
  }
}

TEST(Dropout, DropsAsManyAsItSaysAndOthersAtAnotherOffset) {
  constexpr std::int64_t count = 1 << 16;
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    Example s(p, DType::f64, {count});
    TextbookRun run(s.program);
    run.set(s.x, std::vector<double>(count, 1.0));
    run.set(s.seed, {1, 2});
    const std::vector<double> first = values_of(run.judge(0, 0));
    run.set(s.offset, {1, 0});
    const std::vector<double> second = values_of(run.judge(0, 0));
    double dropped = 0.0, in_both = 0.0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      dropped += first[i] == 0.0 ? 1.0 : 0.0;
      in_both += first[i] == 0.0 && second[i] == 0.0 ? 1.0 : 0.0;
    }
    // Six standard deviations of a binomial distribution.
    EXPECT_LE(std::fabs(dropped - p * count), 6.0 * std::sqrt(p * (1.0 - p) * count)) << p;
    EXPECT_LE(std::fabs(in_both - p * p * count), 6.0 * std::sqrt(p * p * (1.0 - p * p) * count)) << p;
  }
}

TEST(Dropout, ItsGradientHasTheSameMask) {
  Example s(0.3, DType::f64, {5, 7});

  expect_derivative_agrees(s.program, s.y, {{s.x, spread(35, 1)}, {s.seed, {3, 4}}, {s.offset, {5, 6}}}, {s.x});
}

TEST(Dropout, AFactorThatIsForgottenIsRejectedAndAnElementThatShouldBeDropped) {
  Example s(0.1, DType::bf16, {64});
  TextbookRun run(s.program);
  const std::vector<double> x(64, 1.0);
  run.set(s.x, x);
  const std::vector<Expected> judged = run.judge(0, 0);
  int accepted = 0;
  for (const Expected& one : judged) accepted += within(one, DType::bf16, 1.0) ? 1 : 0;

  EXPECT_EQ(accepted, 0);
}

TEST(Dropout, SubsetsAgreeWithTheWhole) {
  Example s(0.4, DType::bf16, {9, 11});
  TextbookRun run(s.program);
  run.set(s.x, spread(99, 1));
  expect_subsets_agree(run, 0, 0);
}

TEST(Dropout, MisfitsAreErrorsNamingWhatIsWrong) {
  for (const double p : {-0.1, 1.0, std::nan("")})
    EXPECT_NE(program_error([&] { Example(p, DType::f32, {4}); }).find("expected at least 0 and less than 1"),
              std::string::npos);
  Program program;
  const ValueId x = source(program, "x", DType::f32, {4}), seed = source(program, "seed", DType::i32, {2});
  const ValueId wide = source(program, "wide", DType::i32, {3});
  EXPECT_NE(program_error([&] {
              dropout(program, {}, f32_math, "d", x, {seed, wide});
            }).find("'wide'"),
            std::string::npos);
  EXPECT_NE(program_error([&] { dropout(program, {}, f32_math, "d", x, {seed, x}); }).find("'x'"), std::string::npos);
}

}  // namespace dropout_test
}  // namespace gpubench::testing
