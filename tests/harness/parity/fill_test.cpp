#include "harness/parity/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace fill_test {

constexpr std::string_view some_case = "gemm/linear_forward/m=8192,n=2304,k=768/bf16";

struct Filled {
  TensorSpec spec;
  std::vector<std::byte> bytes;
  TensorView view;

  explicit Filled(TensorSpec s, std::string_view key = some_case, std::uint64_t seed = 42) : spec(std::move(s)) {
    bytes.resize(static_cast<std::size_t>(spec.bytes()));
    fill(spec, key, seed, bytes);
    view = TensorView(spec, bytes.data());
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all(static_cast<std::size_t>(spec.shape.elements()));
    view.read(0, all);
    return all;
  }
};

TensorSpec spec_of(Shape shape, Fill fill, DType type = DType::f32, const char* name = "x") {
  return tensor(name, type, std::move(shape), Role::input, fill);
}

struct Moments {
  double mean = 0.0, deviation = 0.0;
  explicit Moments(std::span<const double> values) {
    for (const double v : values) mean += v / static_cast<double>(values.size());
    for (const double v : values) deviation += (v - mean) * (v - mean) / static_cast<double>(values.size());
    deviation = std::sqrt(deviation);
  }
};

// Expected values from an independent program: SplitMix64 over FNV-1a of seed, case and name; four 16-bit fields
// summed, minus 131070, times 2^-15.
TEST(Fill, NormalValuesAreTheSameOnEveryMachine) {
  const Filled x(spec_of({3}, Fill::normal(1.0)));
  EXPECT_EQ(x.view[0], 2.28228759765625);
  EXPECT_EQ(x.view[1], -1.58001708984375);
  EXPECT_EQ(x.view[2], -0.13311767578125);
}

TEST(Fill, IntegersAreTheHashModuloTheirRange) {
  const Filled x(spec_of({3}, Fill::integers(0, 50256), DType::i32));
  EXPECT_EQ(x.values(), (std::vector<double>{20760, 43947, 28542}));
  const Filled shifted(spec_of({3}, Fill::integers(-7, 50249), DType::i32));
  EXPECT_EQ(shifted.values(), (std::vector<double>{20753, 43940, 28535}));
}

// Large enough for several threads; element 1000003 as above.
TEST(Fill, ALargeTensorHoldsTheSameValueAtTheSameIndex) {
  const Filled x(spec_of({4, 1 << 20}, Fill::normal(1.0)));
  EXPECT_EQ(x.view[0], 2.28228759765625);
  EXPECT_EQ(x.view[1000003], 0.355133056640625);
}

TEST(Fill, EveryPartOfALargeTensorIsWritten) {
  const Filled x(spec_of({3, 1 << 20}, Fill::integers(1, 9)));
  const std::vector<double> values = x.values();
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), 0);
}

TEST(Fill, LayoutChangesWhereAValueLiesButNotTheValue) {
  const Shape shape{2, 3, 8, 5};
  TensorSpec nhwc = spec_of(shape, Fill::normal(1.0));
  nhwc.layout = Layout::ordered(shape, std::array{0, 2, 3, 1});
  TensorSpec blocked = spec_of(shape, Fill::normal(1.0));
  blocked.layout = Layout::blocked(shape, {{1, 4}, {3, 2}});
  const std::vector<double> plain = Filled(spec_of(shape, Fill::normal(1.0))).values();
  EXPECT_EQ(Filled(nhwc).values(), plain);
  EXPECT_EQ(Filled(blocked).values(), plain);
}

TEST(Fill, ElementsOfFourBitsLieInAnyLayout) {
  const Shape shape{5, 3, 7};
  TensorSpec turned = spec_of(shape, Fill::normal(2.0), DType::f4_e2m1);
  turned.layout = Layout::ordered(shape, std::array{2, 0, 1});
  const Filled plain(spec_of(shape, Fill::normal(2.0), DType::f4_e2m1));
  EXPECT_EQ(plain.bytes.size(), 53U);  // 105 elements
  EXPECT_EQ(Filled(turned).values(), plain.values());
}

TEST(Fill, PaddingIsZero) {
  TensorSpec blocked = spec_of({5}, Fill::constant(1.0));
  blocked.layout = Layout::blocked({5}, {{0, 4}});  // eight elements, three of them padding
  const Filled x(blocked);
  double sum = 0.0;
  for (int i = 0; i < 8; ++i) sum += load(DType::f32, x.bytes.data() + 4 * i);
  EXPECT_EQ(sum, 5.0);
}

TEST(Fill, NarrowTypesHoldTheF32ValueRoundedOnce) {
  const std::vector<double> wide = Filled(spec_of({5000}, Fill::normal(0.02))).values();
  for (const DType type : {DType::bf16, DType::f16, DType::f8_e5m2, DType::f4_e2m1}) {
    const std::vector<double> narrow = Filled(spec_of({5000}, Fill::normal(0.02), type)).values();
    for (std::size_t i = 0; i < wide.size(); ++i)
      ASSERT_EQ(narrow[i], round_to(type, wide[i])) << name(type) << " " << i;
  }
}

TEST(Fill, AnotherCaseNameOrSeedIsAnotherTensor) {
  const std::vector<double> base = Filled(spec_of({64}, Fill::normal(1.0))).values();
  EXPECT_NE(Filled(spec_of({64}, Fill::normal(1.0), DType::f32, "w")).values(), base);
  EXPECT_NE(Filled(spec_of({64}, Fill::normal(1.0)), "gemm/other").values(), base);
  EXPECT_NE(Filled(spec_of({64}, Fill::normal(1.0)), some_case, 43).values(), base);
  EXPECT_EQ(Filled(spec_of({64}, Fill::normal(1.0))).values(), base);
}

// Four uniform 16-bit numbers have deviation 2 x 65536 / sqrt(12) = 37837 = 1.1547 x 2^15. The standard error of the
// mean of 2^18 elements is 1/512 of it; four of those are allowed.
TEST(Fill, NormalHasMeanZeroAndAboutTheScaleAsDeviation) {
  const Moments m(Filled(spec_of({1 << 18}, Fill::normal(1.0))).values());
  EXPECT_NEAR(m.mean, 0.0, 4.0 * 1.1547 / 512);
  EXPECT_NEAR(m.deviation, 1.1547, 0.01);
}

// On a log scale 0.02 is nearest to 2^-6 = 0.0156 (0.36 of an octave), 1/sqrt(768) = 0.0361 to 2^-5 = 0.0313.
TEST(Fill, ScalesAreRoundedToTheNearestPowerOfTwo) {
  const double base = Filled(spec_of({1}, Fill::normal(1.0))).view[0];
  EXPECT_EQ(Filled(spec_of({1}, Fill::normal(0.02))).view[0], base * 0x1p-6);
  EXPECT_EQ(Filled(spec_of({1}, Fill::normal(1.0 / std::sqrt(768.0)))).view[0], base * 0x1p-5);
  EXPECT_EQ(Filled(spec_of({1}, Fill::normal(1.41))).view[0], base);
  EXPECT_EQ(Filled(spec_of({1}, Fill::normal(1.42))).view[0], base * 2.0);
}

TEST(Fill, PositiveIsNeverZero) {
  const std::vector<double> values = Filled(spec_of({1 << 20}, Fill::positive(1.0))).values();
  const std::vector<double> normal = Filled(spec_of({1 << 20}, Fill::normal(1.0))).values();
  int zeros = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_GT(values[i], 0.0);
    if (normal[i] == 0.0) {
      ++zeros;
      EXPECT_EQ(values[i], 0x1p-15);
    } else {
      ASSERT_EQ(values[i], std::fabs(normal[i]));
    }
  }
  EXPECT_GT(zeros, 0) << "no element tried the case that this test is about";
}

TEST(Fill, IntegersReachBothEndsAndNothingBeyond) {
  const std::vector<double> values = Filled(spec_of({1000}, Fill::integers(-2, 2), DType::i32)).values();
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-2, -1, 0, 1, 2}));
}

TEST(Fill, SequenceTakesSteps) {
  const auto by = [](double step) { return Fill{Fill::Kind::sequence, step, 3, 17}; };
  EXPECT_EQ(Filled(spec_of({4}, by(7), DType::i32)).values(), (std::vector<double>{3, 10, 17, 3}));
  EXPECT_THROW(Filled(spec_of({4}, by(0), DType::i32)), ProgramError);
}

TEST(Fill, SequenceCountsAndStartsAgain) {
  EXPECT_EQ(Filled(spec_of({7}, Fill::sequence(3, 5), DType::i32)).values(),
            (std::vector<double>{3, 4, 5, 3, 4, 5, 3}));
}

TEST(Fill, BoundariesAscendFromNothingToTheEndInEveryRow) {
  constexpr std::int64_t rows = 50, parts = 7, high = 100;
  const std::vector<double> cuts = Filled(spec_of({rows, parts + 1}, Fill::boundaries(high), DType::i32)).values();
  std::set<double> lengths;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* cut = &cuts[static_cast<std::size_t>(row * (parts + 1))];
    EXPECT_EQ(cut[0], 0.0);
    EXPECT_EQ(cut[parts], high);
    for (std::int64_t part = 0; part < parts; ++part) lengths.insert(cut[part + 1] - cut[part]);
  }
  // 100 / 7, plus or minus half of that at either end
  EXPECT_GE(*lengths.begin(), 0.0);
  EXPECT_LE(*lengths.rbegin(), 29.0);
  EXPECT_GT(lengths.size(), 20U);
}

TEST(Fill, ConstantIsTheScaleRoundedOnce) {
  EXPECT_EQ(Filled(spec_of({2}, Fill::constant(0.1))).view[1], static_cast<double>(0.1F));
  EXPECT_EQ(Filled(spec_of({2}, Fill::constant(10), DType::i32)).view[1], 10.0);
  EXPECT_EQ(Filled(spec_of({2}, Fill::constant(0.0))).view[1], 0.0);
}

// Rows of variance about 1, 100 eps, eps and 0 with eps = 1e-5; means 0 and one deviation.
TEST(Fill, NormRowsMeetTheDataConditionsOfNorms) {
  constexpr std::int64_t width = 4096;
  const Filled x(spec_of({16, width}, Fill::norm_rows(1.0)));
  const std::array<double, 4> variances{1.0, 1e-3, 1e-5, 0.0};
  for (std::int64_t row = 0; row < 16; ++row) {
    std::vector<double> values(width);
    x.view.read(row * width, values);
    const Moments m(values);
    const double wanted = variances[static_cast<std::size_t>(row % 4)];
    EXPECT_GE(m.deviation * m.deviation, 0.5 * wanted) << row;
    EXPECT_LE(m.deviation * m.deviation, 2.0 * wanted) << row;
    if (wanted == 0.0) {
      EXPECT_NE(m.mean, 0.0) << row;
    } else {
      EXPECT_NEAR(m.mean / m.deviation, row / 4 % 2 == 1 ? 0.87 : 0.0, 0.1) << row;
    }
  }
}

TEST(Fill, PointwiseCoversWhereActivationsCurve) {
  const std::vector<double> values = Filled(spec_of({1 << 16}, Fill::pointwise())).values();
  const auto share = [&](double low, double high) {
    const auto inside = std::count_if(values.begin(), values.end(), [=](double v) { return v >= low && v < high; });
    return static_cast<double>(inside) / static_cast<double>(values.size());
  };
  EXPECT_GT(share(-4, -1), 0.2);
  EXPECT_GT(share(-4, -3), 0.05);
  EXPECT_GT(share(3, 4), 0.05);
  EXPECT_GT(share(-100, -4), 0.005);
  EXPECT_GT(share(4, 100), 0.005);
}

TEST(Fill, TinyMixHasOneInEightAtTheSizeOfEpsilon) {
  const std::vector<double> values = Filled(spec_of({1 << 16}, Fill::tiny_mix(0.0625))).values();
  const auto tiny = std::count_if(values.begin(), values.end(), [](double v) { return std::fabs(v) < 4e-8; });
  EXPECT_NEAR(static_cast<double>(tiny) / (1 << 16), 0.125, 0.01);
  std::vector<double> sizes;
  for (const double v : values) {
    if (std::fabs(v) < 4e-8) sizes.push_back(v);
  }
  EXPECT_NEAR(Moments(sizes).deviation, 1e-8, 0.5e-8);
}

// def_hash does not cover this kind: the first labels are fixed here.
TEST(Fill, MaskedHasThreeInTwentyLabelsAndTheMaskElsewhere) {
  TensorSpec spec = spec_of({1 << 16}, Fill::masked(0, 30521, -100));
  spec.dtype = DType::i32;
  const std::vector<double> values = Filled(spec).values();
  const auto labels = std::count_if(values.begin(), values.end(), [](double v) { return v >= 0 && v <= 30521; });
  EXPECT_NEAR(static_cast<double>(labels) / (1 << 16), 0.15, 0.01);
  EXPECT_EQ(labels + std::count(values.begin(), values.end(), -100.0), 1 << 16);
  EXPECT_EQ(std::vector<double>(values.begin(), values.begin() + 12),
            (std::vector<double>{18965, -100, 9804, 9500, -100, -100, -100, -100, -100, -100, -100, -100}));
}

TEST(Fill, TheFirstLabelIsNotMaskedThoughTheMaskIsALabel) {
  for (const int mask : {0, 1}) {
    TensorSpec spec = spec_of({1}, Fill::masked(0, 1, mask));
    spec.dtype = DType::i32;
    EXPECT_EQ(Filled(spec).values(), std::vector<double>{1.0 - mask});
  }
}

TEST(Fill, InvalidScalesAreRefused) {
  EXPECT_THROW(Filled(spec_of({2}, Fill::normal(0.0))), ProgramError);
  EXPECT_THROW(Filled(spec_of({2}, Fill::normal(std::nan("")))), ProgramError);
  EXPECT_THROW(Filled(spec_of({2}, Fill::integers(3, 2))), ProgramError);
}

TEST(Fill, AWrongAmountOfMemoryIsRefused) {
  std::vector<std::byte> bytes(7);
  EXPECT_THROW(fill(spec_of({2}, Fill::normal(1.0)), some_case, 1, bytes), ProgramError);
}

TEST(Fill, TheRanksPartsMakeUpTheTensorThatOneRankHas) {
  for (const Fill fill : {Fill::normal(1.0), Fill::norm_rows(1.0), Fill::sequence(0, 6)}) {
    for (const int axis : {0, 1}) {
      constexpr int ranks = 3;
      const Shape whole_shape = axis == 0 ? Shape{6, 5} : Shape{2, 15};
      const Shape part_shape = axis == 0 ? Shape{2, 5} : Shape{2, 5};
      const std::vector<double> whole = Filled(spec_of(whole_shape, fill)).values();
      for (int rank = 0; rank < ranks; ++rank) {
        TensorSpec spec = spec_of(part_shape, fill);
        spec.name = name_on_rank("x", rank, ranks);
        spec.placement = Placement::shard(axis, rank, ranks);
        const std::vector<double> part = Filled(spec).values();
        for (std::int64_t row = 0; row < 2; ++row) {
          for (std::int64_t column = 0; column < 5; ++column) {
            const std::int64_t at =
                axis == 0 ? (2 * rank + row) * 5 + column : row * 15 + 5 * rank + column;  // by hand
            EXPECT_EQ(part[static_cast<std::size_t>(row * 5 + column)], whole[static_cast<std::size_t>(at)])
                << "axis " << axis << ", rank " << rank;
          }
        }
      }
    }
  }
}

// Rows over two ranks, columns over three; rank (i, j) has rows 2 i and 2 i + 1, columns 5 j to 5 j + 4.
TEST(Fill, PartsOverTwoAxesOfAMeshMakeUpTheSameTensor) {
  for (const Fill fill : {Fill::normal(1.0), Fill::norm_rows(1.0), Fill::sequence(0, 6)}) {
    const std::vector<double> whole = Filled(spec_of({4, 15}, fill)).values();
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        TensorSpec spec = spec_of({2, 5}, fill);
        spec.name = name_on_rank("x", 3 * i + j, 6);
        spec.placement = Placement::on(3 * i + j, 6);
        spec.placement.spread = {{AxisSpread::Kind::sharded, 0, 0, i, 2}, {AxisSpread::Kind::sharded, 1, 1, j, 3}};
        const std::vector<double> part = Filled(spec).values();
        for (int row = 0; row < 2; ++row) {
          for (int column = 0; column < 5; ++column)
            EXPECT_EQ(part[static_cast<std::size_t>(row * 5 + column)],
                      whole[static_cast<std::size_t>((2 * i + row) * 15 + 5 * j + column)]);
        }
      }
    }
  }
}

TEST(Fill, AddendsOfASumDiffer) {
  const std::vector<double> all = Filled(spec_of({2, 40}, Fill::normal(1.0))).values();
  for (int rank = 0; rank < 2; ++rank) {
    TensorSpec spec = spec_of({40}, Fill::normal(1.0));
    spec.name = name_on_rank("x", rank, 2);
    spec.placement = Placement::on(rank, 2);
    spec.placement.spread = {{AxisSpread::Kind::partial, 0, -1, rank, 2}};
    EXPECT_EQ(Filled(spec).values(), std::vector<double>(all.begin() + 40 * rank, all.begin() + 40 * (rank + 1)));
  }
}

TEST(Fill, ReplicatedTensorsAreEqualOnEveryRank) {
  TensorSpec first = spec_of({40}, Fill::normal(1.0), DType::f32, "w@0");
  TensorSpec second = spec_of({40}, Fill::normal(1.0), DType::f32, "w@1");
  first.placement.ranks = second.placement.ranks = 2;
  second.placement.rank = 1;
  EXPECT_EQ(Filled(first).bytes, Filled(second).bytes);
  EXPECT_EQ(Filled(first).bytes, Filled(spec_of({40}, Fill::normal(1.0), DType::f32, "w")).bytes);
}

}  // namespace fill_test
}  // namespace gpubench
