// Faults of a catalogue must be seen for the right reason, and correct results accepted. The gemm under test is a loop
// in f32 with switchable mistakes.
#include "harness/parity/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace judge_test {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Fault {
  none,
  drop_last_k,
  extra_k,
  swap_k,
  flip_one_sign,
  transpose_a,
  swap_rows,
  no_bias,
  accumulate_f16,
  accumulate_bf16,
  truncate_store
};

// c = a b + bias with a [m, k], b [k, n], summed in f32 in the order of k.
struct TestGemm {
  std::int64_t m, n, k;
  DType type;
  ValueId a, b, bias, c;
  JudgedProgram memory;

  TestGemm(std::int64_t m_, std::int64_t n_, std::int64_t k_, DType type_, std::uint64_t seed = 42)
      : m(m_), n(n_), k(k_), type(type_), memory(program(), seed) {}

  Program program() {
    Program p;
    a = p.add(tensor("a", type, {m, k}, Role::input, Fill::normal(1.0)));
    b = p.add(tensor("b", type, {k, n}, Role::parameter, Fill::normal(1.0 / std::sqrt(static_cast<double>(k)))));
    bias = p.add(tensor("bias", type, {n}, Role::parameter, Fill::normal(1.0)));
    Gemm attributes;
    attributes.bias = true;
    c = gemm(p, attributes, Math{}, "c", a, b, {{}, bias, {}}).c;
    return p;
  }

  [[nodiscard]] double term(std::int64_t i, std::int64_t j, std::int64_t l, Fault fault) const {
    std::int64_t left = i * k + l;
    if (fault == Fault::transpose_a && m == k) left = l * k + i;
    if (fault == Fault::swap_rows) left = (i ^ 1) * k + l;
    if (fault == Fault::swap_k && l < 2) left = i * k + (l ^ 1);
    const double sign = fault == Fault::flip_one_sign && l == k / 2 ? -1.0 : 1.0;
    return sign * a_[static_cast<std::size_t>(left)] * b_[static_cast<std::size_t>(l * n + j)];
  }

  [[nodiscard]] double element(std::int64_t i, std::int64_t j, Fault fault) const {
    const DType sum_type = fault == Fault::accumulate_f16    ? DType::f16
                           : fault == Fault::accumulate_bf16 ? DType::bf16
                                                             : DType::f32;
    double sum = 0.0;
    const std::int64_t terms = fault == Fault::drop_last_k ? k - 1 : k;
    for (std::int64_t l = 0; l < terms; ++l) sum = round_to(sum_type, sum + term(i, j, l, fault));
    if (fault == Fault::extra_k) sum = round_to(sum_type, sum + term(i, j, 0, fault));
    if (fault != Fault::no_bias) sum = round_to(sum_type, sum + bias_[static_cast<std::size_t>(j)]);
    if (fault == Fault::truncate_store && type == DType::bf16) {
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(sum)) & 0xffff0000U);
    }
    return sum;
  }

  TestGemm& run(Fault fault = Fault::none) {
    const auto decoded = [this](ValueId id) {
      std::vector<double> values(static_cast<std::size_t>(memory.program().spec(id).shape.elements()));
      memory.view(id).read(0, values);
      return values;
    };
    a_ = decoded(a);
    b_ = decoded(b);
    bias_ = decoded(bias);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) memory.set(c, i * n + j, element(i, j, fault));
    }
    return *this;
  }

 private:
  std::vector<double> a_, b_, bias_;
};

double share_bad(const OpParity& parity) {
  return static_cast<double>(parity.bad) / static_cast<double>(parity.judged);
}

JudgePolicy sampling(double flop_budget, std::uint64_t seed = 1) { return {CheckMode::sample, flop_budget, seed, 1}; }

TEST(Judge, ACorrectGemmPassesWithEveryElementJudgedAndEveryMutationRejected) {
  for (const DType type : {DType::f32, DType::bf16}) {
    TestGemm g(32, 48, 64, type);
    const OpParity parity = g.run().memory.judged();
    EXPECT_EQ(parity.verdict, Verdict::pass) << parity.reason;
    EXPECT_EQ(parity.reason, "");
    EXPECT_EQ(parity.judged, 32 * 48);
    EXPECT_EQ(parity.elements, 32 * 48);
    EXPECT_EQ(parity.bad, 0);
    EXPECT_EQ(parity.mutations, 5);
    EXPECT_EQ(parity.mutations_rejected, 5);
    EXPECT_LE(parity.error_over_bound, 1.0);
    if (type == DType::f32) {
      EXPECT_GT(parity.error_over_bound, 0.0);  // some sums are off by more than their rounding
    }
    EXPECT_EQ(parity.label, "c");
    EXPECT_EQ(parity.kind, "gemm");
    EXPECT_EQ(parity.phase, "check");
  }
}

// 60 tensors of 1024 elements, each judged twice.
TEST(Judge, CorrectResultsRaiseNoAlarmForAnySeed) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const DType type : {DType::f32, DType::bf16}) {
      const OpParity parity = TestGemm(32, 32, 96, type, seed).run().memory.judged();
      ASSERT_EQ(parity.verdict, Verdict::pass) << "seed " << seed << " " << name(type) << ": " << parity.reason;
    }
  }
}

struct CatalogueRow {
  Fault fault;
  DType type;
  double min_share;  // of elements that must be rejected
  const char* what;
};

// Below the shares measured with emulated tensor cores at K = 4096 (f32: 0.99 for a lost term); a smaller K makes a
// lost term more visible.
TEST(Judge, ArithmeticFaultsOfTheCatalogueAreSeenInMostElements) {
  const CatalogueRow rows[] = {
      {Fault::drop_last_k, DType::f32, 0.95, "dropped last K element"},
      {Fault::drop_last_k, DType::bf16, 0.6, "dropped last K element"},
      {Fault::extra_k, DType::f32, 0.95, "one K element twice"},
      {Fault::extra_k, DType::bf16, 0.6, "one K element twice"},
      {Fault::swap_k, DType::f32, 0.95, "two columns of A swapped"},
      {Fault::swap_k, DType::bf16, 0.6, "two columns of A swapped"},
      {Fault::flip_one_sign, DType::f32, 0.95, "sign of one term"},
      {Fault::flip_one_sign, DType::bf16, 0.7, "sign of one term"},
      {Fault::transpose_a, DType::f32, 0.95, "transposed operand"},
      {Fault::transpose_a, DType::bf16, 0.9, "transposed operand"},
      {Fault::swap_rows, DType::f32, 0.95, "rows swapped"},
      {Fault::swap_rows, DType::bf16, 0.9, "rows swapped"},
      {Fault::no_bias, DType::f32, 0.95, "missing bias"},
      {Fault::no_bias, DType::bf16, 0.9, "missing bias"},
      {Fault::accumulate_f16, DType::f32, 0.9, "f16 accumulation"},
      {Fault::accumulate_bf16, DType::f32, 0.95, "bf16 accumulation"},
      {Fault::accumulate_bf16, DType::bf16, 0.4, "bf16 accumulation"},
      {Fault::truncate_store, DType::bf16, 0.4, "store that truncates"},
  };
  for (const CatalogueRow& row : rows) {
    TestGemm g(128, 32, 128, row.type);
    const OpParity parity = g.run(row.fault).memory.judged();
    const bool is_narrow = row.fault == Fault::accumulate_f16 || row.fault == Fault::accumulate_bf16;
    EXPECT_EQ(parity.verdict, is_narrow ? Verdict::downgraded : Verdict::fail) << row.what << " " << name(row.type);
    EXPECT_GE(share_bad(parity), row.min_share) << row.what << " " << name(row.type);
    EXPECT_GT(parity.error_over_bound, 1.0) << row.what;
    EXPECT_THAT(parity.reason, HasSubstr("outside their bound, worst at c[")) << row.what;
  }
}

TEST(Judge, TheLastBitOfEveryBf16ResultMatters) {
  TestGemm g(32, 32, 64, DType::bf16);
  g.run();
  for (std::int64_t i = 0; i < 32 * 32; ++i) *g.memory.element(g.c, i) ^= std::byte{1};
  const OpParity parity = g.memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_GT(share_bad(parity), 0.9);
}

TEST(Judge, OneWrongElementIsFoundAndReported) {
  TestGemm g(32, 32, 64, DType::f32);
  g.run();
  const double right = g.memory.get(g.c, 5 * 32 + 17);
  g.memory.set(g.c, 5 * 32 + 17, right * 1.01 + 0.01);

  const OpParity parity = g.memory.judged();

  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_EQ(parity.bad, 1);
  ASSERT_TRUE(parity.worst);
  EXPECT_EQ(parity.worst->tensor, "c");
  EXPECT_EQ(parity.worst->index, (std::vector<std::int64_t>{5, 17}));
  EXPECT_EQ(parity.worst->got, g.memory.get(g.c, 5 * 32 + 17));
  EXPECT_NEAR(parity.worst->want, right, 1e-4);
  EXPECT_THAT(parity.reason, StartsWith("1 of 1024 judged elements outside their bound, worst at c[5, 17]: got "));
}

TEST(Judge, ABitFlipInAnyOfTheUpperHalfOfF32IsFound) {
  TestGemm g(8, 8, 64, DType::f32);
  g.run();
  for (int bit = 16; bit < 32; ++bit) {
    std::byte& byte = g.memory.element(g.c, 27)[bit / 8];
    byte ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(g.memory.judged().verdict, Verdict::fail) << "bit " << bit;
    byte ^= std::byte{1} << (bit % 8);
  }
  EXPECT_EQ(g.memory.judged().verdict, Verdict::pass);
}

// 7 * 9 elements: rows begin within a byte, and the last byte is half empty.
TEST(Judge, OneWrongElementOfFourBitsIsFoundNextToItsNeighbour) {
  Program p;
  const ValueId x = p.add(tensor("x", DType::f4_e2m1, {7, 9}, Role::input, Fill::normal(2.0)));
  const ValueId y = transpose(p, {{1, 0}}, "y", x);
  EXPECT_EQ(p.bytes(), 64);
  JudgedProgram memory(std::move(p));
  EXPECT_EQ(memory.judged().verdict, Verdict::fail) << "nothing is written yet";
  for (std::int64_t i = 0; i < 63; ++i) memory.set(y, i, memory.get(x, i % 7 * 9 + i / 7));
  EXPECT_EQ(memory.judged().verdict, Verdict::pass) << memory.judged().reason;

  for (std::int64_t i = 0; i < 63; ++i) {
    const double right = memory.get(y, i);
    memory.set(y, i, right == 0.0 ? 0.5 : -right);
    const OpParity parity = memory.judged();
    EXPECT_EQ(parity.verdict, Verdict::fail) << i;
    EXPECT_EQ(parity.bad, 1) << i;
    memory.set(y, i, right);
  }
}

TEST(Judge, AnUnwrittenTileIsCalledUnwritten) {
  for (const DType type : {DType::f32, DType::bf16}) {
    TestGemm g(64, 64, 32, type);
    g.run();
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) g.memory.poison(g.c, (i + 1) * 64 + j);
    }
    const OpParity parity = g.memory.judged();
    EXPECT_EQ(parity.verdict, Verdict::fail);
    EXPECT_EQ(parity.reason, "unwritten: 128 of 4096 elements of 'c' still hold the poison pattern, first at c[1, 0]");
  }
}

TEST(Judge, AnUnwrittenOutputIsReportedAsAWhole) {
  const OpParity parity = TestGemm(16, 16, 8, DType::bf16).memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_THAT(parity.reason, StartsWith("unwritten: 256 of 256 elements of 'c'"));
}

TEST(Judge, NaNNeverPasses) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const double wrong : {std::nan(""), infinity, -infinity}) {
      TestGemm g(16, 16, 32, type);
      g.run();
      g.memory.set(g.c, 200, wrong);
      const OpParity parity = g.memory.judged();
      EXPECT_EQ(parity.verdict, Verdict::fail) << wrong;
      EXPECT_EQ(parity.bad, 1) << wrong;
      EXPECT_EQ(parity.error_over_bound, infinity) << wrong;
      EXPECT_EQ(parity.worst->index, (std::vector<std::int64_t>{12, 8}));
    }
  }
}

TEST(Judge, ATileOfZerosIsRejected) {
  TestGemm g(64, 64, 32, DType::bf16);
  g.run();
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j) g.memory.set(g.c, (i + 16) * 64 + j + 32, 0.0);
  }
  const OpParity parity = g.memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_GE(parity.bad, 250);  // 256, less those that really are about zero
}

TEST(Judge, AResultForOtherInputsIsStale) {
  TestGemm g(16, 16, 32, DType::f32);
  g.run();
  g.memory.set(g.a, 3 * 32 + 1, 9.0);  // row 3 was computed from what was there before
  const OpParity parity = g.memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_EQ(parity.bad, 16);
}

// An element costs 656 operations (64 products, b read against its rows, the comparison). 3 MFLOP pay for about 4600 of
// 65536, one per stratum of about 14: a tile of 64 x 64 contains some 256 whole strata.
TEST(Judge, ASampleSeesEveryWrongTile) {
  TestGemm clean(256, 256, 64, DType::bf16);
  clean.run();
  const OpParity right = clean.memory.judged(sampling(3e6));
  EXPECT_EQ(right.verdict, Verdict::pass) << right.reason;
  EXPECT_LT(right.judged, 65536 / 4);
  EXPECT_GT(right.judged, 1000);
  for (std::int64_t tile = 0; tile < 16; ++tile) {
    TestGemm g = clean;
    const std::int64_t row = tile / 4 * 64;
    const std::int64_t column = tile % 4 * 64;
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) g.memory.set(g.c, (row + i) * 256 + column + j, 0.0);
    }
    EXPECT_EQ(g.memory.judged(sampling(3e6)).verdict, Verdict::fail) << "tile " << tile;
  }
}

TEST(Judge, NaNAndPoisonOutsideTheSampleAreFound) {
  TestGemm g(256, 256, 16, DType::f32);
  g.run();
  for (std::int64_t i = 0; i < 65536; i += 977) {
    const double right = g.memory.get(g.c, i);
    g.memory.set(g.c, i, std::nan(""));
    ASSERT_EQ(g.memory.judged(sampling(1e4)).verdict, Verdict::fail) << i;
    g.memory.poison(g.c, i);
    ASSERT_THAT(g.memory.judged(sampling(1e4)).reason, StartsWith("unwritten: 1 of 65536")) << i;
    g.memory.set(g.c, i, right);
  }
  EXPECT_EQ(g.memory.judged(sampling(1e4)).verdict, Verdict::pass);
}

TEST(Judge, CornersAreInEverySample) {
  for (const std::int64_t corner : {0, 255, 65280, 65535}) {
    TestGemm g(256, 256, 16, DType::f32);
    g.run().memory.set(g.c, corner, g.memory.get(g.c, corner) + 0.5);
    EXPECT_EQ(g.memory.judged(sampling(1e4)).verdict, Verdict::fail) << corner;
  }
}

TEST(Judge, FullJudgesEverythingForAnyBudget) {
  TestGemm g(64, 64, 16, DType::f32);
  const OpParity parity = g.run().memory.judged({CheckMode::full, 1.0, 1, 1});
  EXPECT_EQ(parity.judged, 4096);
  EXPECT_EQ(parity.verdict, Verdict::pass);
}

// One wrong element of 65536 that is neither large nor small, outside a sample of 200.
TEST(Judge, ASuspectIsAlwaysJudged) {
  TestGemm g(256, 256, 16, DType::f32);
  constexpr std::int64_t wrong = 77 * 256 + 99;
  g.run().memory.set(g.c, wrong, g.memory.get(g.c, wrong) + 0.5);
  ASSERT_EQ(g.memory.judged(sampling(1e4)).verdict, Verdict::pass);

  const std::vector<TensorView> inputs{g.memory.view(g.a), g.memory.view(g.b), g.memory.view(g.bias)};
  const std::vector<TensorView> outputs{g.memory.view(g.c)};
  const std::vector<std::vector<std::int64_t>> suspects{{12, wrong}};
  const OpParity parity = judge(g.memory.program(), 0, {inputs, outputs, suspects}, sampling(1e4), "timed");

  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_EQ(parity.bad, 1);
  EXPECT_EQ(parity.worst->index, (std::vector<std::int64_t>{77, 99}));
}

TEST(Judge, TheLargestAndTheSmallestMagnitudesAreInEverySample) {
  for (const double value : {60.0, -1000.0, 0.0, 1e-30}) {
    TestGemm g(256, 256, 16, DType::f32);
    g.run().memory.set(g.c, 77 * 256 + 99, value);
    EXPECT_EQ(g.memory.judged(sampling(1e4)).verdict, Verdict::fail) << value;
  }
}

// One wrong element in 65536, neither large nor small, and a sample of about 1 in 14: only some seeds see it.
TEST(Judge, TheSeedAndThePhaseMoveTheSample) {
  TestGemm g(256, 256, 64, DType::f32);
  g.run().memory.set(g.c, 77 * 256 + 99, g.memory.get(g.c, 77 * 256 + 99) + 1e-4);  // too little for a sum to show
  int seen = 0;
  int different = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Verdict check = g.memory.judged(sampling(0.6e6, seed)).verdict;
    seen += check == Verdict::fail ? 1 : 0;
    different += check != g.memory.judged(sampling(0.6e6, seed), 0, "recheck").verdict ? 1 : 0;
    ASSERT_EQ(check, g.memory.judged(sampling(0.6e6, seed)).verdict);
  }
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, 50);
  EXPECT_GT(different, 0);
}

TEST(Judge, ThreadsChangeNothing) {
  TestGemm g(64, 64, 64, DType::bf16);
  g.run();
  g.memory.set(g.c, 1000, 50.0);
  g.memory.set(g.c, 3000, 50.0);
  const OpParity one = g.memory.judged({CheckMode::full, 0.0, 1, 1});
  const OpParity four = g.memory.judged({CheckMode::full, 0.0, 1, 4});
  EXPECT_EQ(one.reason, four.reason);
  EXPECT_EQ(one.error_over_bound, four.error_over_bound);
  EXPECT_EQ(one.judged, four.judged);
  EXPECT_EQ(one.bad, 2);
  EXPECT_EQ(four.bad, 2);
}

TEST(Judge, WithoutACheckTheVerdictIsUnverified) {
  const OpParity parity = TestGemm(8, 8, 8, DType::f32).memory.judged({CheckMode::off, 1e6, 1, 1});
  EXPECT_EQ(parity.verdict, Verdict::unverified);
  EXPECT_EQ(parity.judged, 0);
}

JudgedProgram copied(DType type, Shape shape, Fill fill) {
  Program p;
  copy(p, "y", p.add(tensor("x", type, std::move(shape), Role::input, fill)));
  return JudgedProgram(std::move(p));
}
constexpr ValueId x_of_copy{0};
constexpr ValueId y_of_copy{1};

void run_copy(JudgedProgram& memory) {
  const std::int64_t elements = memory.program().spec(x_of_copy).shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) memory.set(y_of_copy, i, memory.get(x_of_copy, i));
}

TEST(Judge, ZeroWorkIsNotProven) {
  JudgedProgram memory = copied(DType::f32, {0, 8}, Fill::normal(1.0));
  const OpParity parity = memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::not_proven);
  EXPECT_EQ(parity.reason, "no element of 'y' was compared");
}

TEST(Judge, AZeroReferenceWithATightBoundIsProven) {
  JudgedProgram memory = copied(DType::f32, {64}, Fill::constant(0.0));
  run_copy(memory);
  EXPECT_EQ(memory.judged().verdict, Verdict::pass);
  memory.set(y_of_copy, 9, 0x1p-149);
  EXPECT_EQ(memory.judged().verdict, Verdict::fail);
}

// One element, a sum of 2^44 and -(2^44 - 2^20): the result is 2^20, and Rule G allows 2^-23 sqrt(2) 2^44.5, about
// 2^22, which includes zero.
TEST(Judge, AResultThatDrownsInItsBoundIsNotProven) {
  Program p;
  const ValueId a = p.add(tensor("a", DType::f32, {1, 2}, Role::input));
  const ValueId b = p.add(tensor("b", DType::f32, {2, 1}, Role::input, Fill::constant(1.0)));
  const ValueId c = gemm(p, {}, Math{}, "c", a, b).c;
  JudgedProgram memory(std::move(p));
  memory.set(a, 0, 0x1p44);
  memory.set(a, 1, -(0x1p44 - 0x1p20));
  memory.set(c, 0, 0x1p20);
  const OpParity parity = memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::not_proven);
  EXPECT_THAT(parity.reason, HasSubstr("also accepted zeros"));
  EXPECT_LT(parity.mutations_rejected, parity.mutations);
}

TEST(Judge, AnOpThatReadNaNMustReturnNaN) {
  JudgedProgram memory = copied(DType::f32, {64}, Fill::normal(1.0));
  memory.set(x_of_copy, 5, std::nan(""));
  run_copy(memory);
  EXPECT_EQ(memory.judged().verdict, Verdict::pass);
  memory.set(y_of_copy, 5, 0.0);
  EXPECT_EQ(memory.judged().verdict, Verdict::fail);
}

// A mean over no labels is 0 / 0.
TEST(Judge, ALossOverNoLabelsMustBeNaN) {
  Program p;
  const ValueId logits = p.add(tensor("logits", DType::f32, {3, 5}, Role::input));
  const ValueId labels = p.add(tensor("labels", DType::i32, {3}, Role::input, Fill::constant(-100)));
  const CrossEntropyForward loss = cross_entropy_forward(p, {}, "loss", logits, labels, {.ignores = true});
  JudgedProgram memory(std::move(p));
  for (std::int64_t row = 0; row < 3; ++row) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < 5; ++i) sum += std::exp(memory.get(logits, 5 * row + i));
    memory.set(loss.lse, row, std::log(sum));
  }
  memory.set(loss.loss, 0, std::nan(""));
  EXPECT_EQ(memory.judged().verdict, Verdict::pass) << memory.judged().reason;
  memory.set(loss.loss, 0, 0.0);
  EXPECT_EQ(memory.judged().verdict, Verdict::fail);
}

// No answer is right: the label is outside the classes.
TEST(Judge, ALossOfALabelThatIsNoClassProvesNothing) {
  Program p;
  const ValueId logits = p.add(tensor("logits", DType::f32, {1, 2}, Role::input, Fill::constant(0.0)));
  const ValueId labels = p.add(tensor("labels", DType::i32, {1}, Role::input, Fill::constant(7)));
  const CrossEntropyForward loss = cross_entropy_forward(p, {}, "loss", logits, labels);
  JudgedProgram memory(std::move(p));
  memory.set(loss.lse, 0, std::log(2.0));
  memory.set(loss.loss, 0, std::nan(""));
  EXPECT_EQ(memory.judged().verdict, Verdict::not_proven);
}

TEST(Judge, NaNInputsProveNothing) {
  JudgedProgram memory = copied(DType::f32, {8}, Fill::normal(1.0));
  for (std::int64_t i = 0; i < 8; ++i) memory.set(x_of_copy, i, std::nan(""));
  run_copy(memory);
  EXPECT_EQ(memory.judged().verdict, Verdict::not_proven);
}

TEST(Judge, AnUnknownOpIsAProgramError) {
  Program p;
  const ValueId x = p.add(tensor("x", DType::f32, {4}, Role::input));
  p.append({OpKind{"no_such_op"}, {}, {}, {x}, {p.reserve(tensor("y", DType::f32, {4}, Role::activation))}, "y"});
  EXPECT_THROW((void)JudgedProgram(std::move(p)).judged(), ProgramError);
}

TEST(Judge, MissingViewsAreAProgramError) {
  const JudgedProgram memory = copied(DType::f32, {4}, Fill::normal(1.0));
  EXPECT_THROW((void)judge(memory.program(), 0, {}, {}, "check"), ProgramError);
}

TEST(Judge, CopiesAreComparedBitForBit) {
  for (const DType type : {DType::f32, DType::bf16}) {
    JudgedProgram memory = copied(type, {257}, Fill::normal(1.0));
    run_copy(memory);
    ASSERT_EQ(memory.judged().verdict, Verdict::pass);
    *memory.element(y_of_copy, 256) ^= std::byte{1};
    EXPECT_EQ(memory.judged().verdict, Verdict::fail) << name(type);
    EXPECT_EQ(memory.judged().bad, 1);
  }
}

TEST(Judge, MovesKeepTheSignOfZero) {
  const auto filled = [](const std::function<ValueId(Program&, ValueId)>& op) {
    Program p;
    const ValueId x = p.add(tensor("x", DType::f32, {4, 4}, Role::input, Fill::normal(1.0)));
    const ValueId y = op(p, x);
    JudgedProgram memory(std::move(p));
    for (std::int64_t i = 0; i < 16; ++i) {
      memory.set(x, i, i % 5 == 0 ? -0.0 : 1.0);  // -0 on the diagonal
      memory.set(y, i, i % 5 == 0 ? -0.0 : 1.0);
    }
    return std::pair(std::move(memory), y);
  };
  const std::function<ValueId(Program&, ValueId)> ops[] = {
      [](Program& p, ValueId x) { return copy(p, "y", x); },
      [](Program& p, ValueId x) { return cast(p, DType::bf16, "y", x); },
      [](Program& p, ValueId x) {
        return transpose(p, {{1, 0}}, "y", x);
      },
  };
  for (const auto& op : ops) {
    auto [memory, y] = filled(op);
    const std::string kind(memory.program().op(0).kind.name);
    EXPECT_EQ(memory.judged().verdict, Verdict::pass) << kind;
    memory.set(y, 10, 0.0);
    const OpParity parity = memory.judged();
    EXPECT_EQ(parity.verdict, Verdict::fail) << kind;
    EXPECT_EQ(parity.bad, 1) << kind;
    EXPECT_GT(parity.error_over_bound, 1.0) << kind;
  }
  // Where a zero is computed, its sign is the implementation's choice.
  auto [memory, y] = filled([](Program& p, ValueId x) { return add(p, Math{}, "y", x, x); });
  for (std::int64_t i = 0; i < 16; ++i) memory.set(y, i, i % 5 == 0 ? 0.0 : 2.0);
  EXPECT_EQ(memory.judged().verdict, Verdict::pass);
}

// 256 rows of 64 columns in a storage of 192; the rest stays poisoned.
TEST(Judge, APartOfAStorageIsJudgedWithoutItsNeighbours) {
  Program p;
  const ValueId a = p.add(tensor("a", DType::bf16, {16, 8}, Role::input, Fill::normal(1.0)));
  const ValueId b = p.add(tensor("b", DType::bf16, {8, 4}, Role::input, Fill::normal(1.0)));
  const ValueId packed = p.reserve(tensor("packed", DType::bf16, {16, 12}, Role::activation));
  TensorSpec spec = tensor("c", DType::bf16, {16, 4}, Role::activation);
  spec.layout.strides = {12, 1};
  const ValueId c = p.part(packed, spec, 4);
  gemm(p, {}, Math{}, "c.gemm", a, b, {}, c);
  JudgedProgram memory(std::move(p));
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < 8; ++l) sum += memory.view(a).at({i, l}) * memory.view(b).at({l, j});
      memory.set(c, i * 4 + j, sum);
    }
  }
  const OpParity parity = memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::pass) << parity.reason;
  EXPECT_EQ(parity.elements, 64);
  memory.poison(c, 13);
  EXPECT_THAT(memory.judged().reason,
              HasSubstr("1 of 64 elements of 'c' still hold the poison pattern, first at c[3, 1]"));
}

// Layer norm in fp64 with the catalogue's mistakes; storing rounds every output once.
struct TestLayerNorm {
  static constexpr std::int64_t rows = 32, width = 256;
  ValueId x, gamma, beta;
  LayerNormForward out;
  JudgedProgram memory;

  TestLayerNorm() : memory(program()) {}
  Program program() {
    Program p;
    x = p.add(tensor("x", DType::f32, {rows, width}, Role::input, Fill::norm_rows(1.0)));
    gamma = p.add(tensor("gamma", DType::f32, {width}, Role::parameter, Fill::normal(1.0)));
    beta = p.add(tensor("beta", DType::f32, {width}, Role::parameter, Fill::normal(1.0)));
    out = layer_norm_forward(p, {1e-5}, Math{}, "ln", x, gamma, beta);
    return p;
  }
  OpParity run(double epsilon, double lost, bool outside_root = false) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<double> row(width);
      memory.view(x).read(i * width, row);
      double mean = 0.0;
      for (const double v : row) mean += v / width;
      double variance = 0.0;
      for (const double v : row) variance += (v - mean) * (v - mean) / (width - lost);
      const double rstd = outside_root ? 1.0 / (std::sqrt(variance) + epsilon) : 1.0 / std::sqrt(variance + epsilon);
      memory.set(out.mean, i, mean);
      memory.set(out.rstd, i, rstd);
      for (std::int64_t j = 0; j < width; ++j) {
        const double normed = (row[static_cast<std::size_t>(j)] - mean) * rstd;
        memory.set(out.y, i * width + j, memory.get(gamma, j) * normed + memory.get(beta, j));
      }
    }
    return memory.judged();
  }
};

TEST(Judge, EveryOutputOfAnOpIsJudged) {
  TestLayerNorm norm;
  const OpParity parity = norm.run(1e-5, 0.0);
  EXPECT_EQ(parity.verdict, Verdict::pass) << parity.reason;
  EXPECT_EQ(parity.elements, 32 * 256 + 2 * 32);
  EXPECT_EQ(parity.judged, parity.elements);
  EXPECT_EQ(parity.mutations, 15);
  EXPECT_EQ(parity.mutations_rejected, 15);
}

TEST(Judge, AFaultInOneOfSeveralOutputsIsNamed) {
  TestLayerNorm norm;
  norm.run(1e-5, 0.0);
  const std::string rstd = norm.memory.program().spec(norm.out.rstd).name;
  norm.memory.set(norm.out.rstd, 9, norm.memory.get(norm.out.rstd, 9) * 1.001);
  const OpParity parity = norm.memory.judged();
  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_EQ(parity.bad, 1);
  EXPECT_THAT(parity.reason, HasSubstr("worst at " + rstd + "[9]"));
}

TEST(Judge, FaultsOfNormsAreSeenBecauseTheRowsMeetTheirConditions) {
  EXPECT_EQ(TestLayerNorm().run(1e-6, 0.0).verdict, Verdict::fail) << "epsilon 1e-6 for 1e-5";
  EXPECT_EQ(TestLayerNorm().run(1e-5, 1.0).verdict, Verdict::fail) << "variance over N - 1";
  EXPECT_EQ(TestLayerNorm().run(1e-5, 0.0, true).verdict, Verdict::fail) << "epsilon outside the root";
}

TEST(Judge, ABudgetIsSharedSoThatSmallOutputsAreJudgedWhole) {
  TestLayerNorm norm;
  norm.run(1e-5, 0.0);
  norm.memory.set(norm.out.mean, 21, 5.0);
  const OpParity parity = norm.memory.judged(sampling(2.0e5));
  EXPECT_EQ(parity.verdict, Verdict::fail);
}

}  // namespace judge_test
}  // namespace gpubench
