// Devices that compute products below the declared precision are `downgraded`, with the measured and the declared
// arithmetic, unless the user accepts it. Honest devices pass, with the measured arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "harness/run/forwarding_backend.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/quantize.h"
#include "suites/suites.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace plan_probe_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Sum of a[k] b[k].
using Dot = std::function<double(std::span<const double> a, std::span<const double> b)>;

// Computes the timed gemms itself; a [m, k], b [k, n].
class EmulatingBackend final : public ForwardingBackend {
 public:
  EmulatingBackend(Backend& inner, Dot dot, bool overruns)
      : ForwardingBackend(inner, nullptr), dot_(std::move(dot)), overruns_(overruns) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    if (call.kind != gemm_kind) return inner().plan(call, tensors, options);
    return std::make_shared<EmulatedPlan>();
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    if (dynamic_cast<const EmulatedPlan*>(plan.get()) == nullptr) return inner().bind(plan, tensors, workspace);
    const std::vector<Tensor> scales(tensors.begin() + 2, tensors.end() - 1);
    return inner().launch_of([this, a = tensors[0], b = tensors[1], scales, c = tensors.back()](void*) {
      double factor = 1.0;
      for (const Tensor& scale : scales) factor *= load(scale.spec.dtype, scale.data, 0);
      multiply(a, b, factor, c);
    });
  }

  int launches = 0;

 private:
  struct EmulatedPlan : PlanImpl {
    [[nodiscard]] std::string implementation() const override { return "emulated"; }
  };

  void multiply(const Tensor& a, const Tensor& b, double factor, const Tensor& c) {
    ++launches;
    const std::int64_t m = c.spec.shape[0], n = c.spec.shape[1], k = a.spec.shape[1];
    std::vector<double> rows(static_cast<std::size_t>(m * k)), columns(static_cast<std::size_t>(n * k));
    for (std::int64_t i = 0; i < m * k; ++i) rows[static_cast<std::size_t>(i)] = load(a.spec.dtype, a.data, i);
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j)
        columns[static_cast<std::size_t>(j * k + l)] = load(b.spec.dtype, b.data, l * n + j);
    }
    const auto length = static_cast<std::size_t>(k);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double sum = dot_(std::span(rows).subspan(static_cast<std::size_t>(i) * length, length),
                                std::span(columns).subspan(static_cast<std::size_t>(j) * length, length));
        store(c.spec.dtype, c.data, i * n + j, factor * sum);
      }
    }
    const bool huge = std::any_of(rows.begin(), rows.end(), [](double value) { return std::fabs(value) > 0x1p20; });
    if (overruns_ && huge) c.data[c.spec.bytes()] ^= std::byte{1};
  }

  Dot dot_;
  bool overruns_;
};

Dot in_f32(std::function<float(double)> input) {
  return [input = std::move(input)](std::span<const double> a, std::span<const double> b) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < a.size(); ++k) sum = std::fma(input(a[k]), input(b[k]), sum);
    return static_cast<double>(sum);
  };
}
float all_bits(double value) { return static_cast<float>(value); }
float tf32(double value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0xffffe000U);
}
float one_bf16(double value) { return static_cast<float>(round_to(DType::bf16, value)); }
float two_bf16(double value) {
  const double high = round_to(DType::bf16, value);
  return static_cast<float>(std::isfinite(high) ? high + round_to(DType::bf16, value - high) : high);
}

double f16_sums(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum = round_to(DType::f16, sum + a[k] * b[k]);
  return sum;
}

double split_in_bf16(std::span<const double> a, std::span<const double> b) {
  const Dot part = in_f32(all_bits);
  const std::size_t half = a.size() / 2;
  return round_to(DType::bf16, part(a.first(half), b.first(half))) +
         round_to(DType::bf16, part(a.subspan(half), b.subspan(half)));
}

// Adds a block of 32 products and the old sum, cut to 13 bits below the largest.
double fast_f8(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); k += 32) {
    double largest = std::fabs(sum);
    for (std::size_t l = k; l < std::min(k + 32, a.size()); ++l) largest = std::max(largest, std::fabs(a[l] * b[l]));
    if (largest == 0.0 || !std::isfinite(largest)) {
      sum += largest;
      continue;
    }
    const double unit = std::ldexp(1.0, std::ilogb(largest) - 13);
    double block = std::trunc(sum / unit) * unit;
    for (std::size_t l = k; l < std::min(k + 32, a.size()); ++l) block += std::trunc(a[l] * b[l] / unit) * unit;
    const double last = block == 0.0 ? 1.0 : std::ldexp(1.0, std::ilogb(block) - 13);
    sum = std::trunc(block / last) * last;
  }
  return sum;
}

Program products(const Case& c, const Recipe& r) {
  Program p;
  const std::int64_t m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  const ValueId a = p.add(tensor("a", r.operand, {m, k}, Role::input, Fill::normal(1.0)));
  const ValueId b = p.add(tensor("b", r.operand, {k, n}, Role::parameter, Fill::normal(1.0)));
  Gemm attributes{.scaled = bits_of(r.operand) == 8};
  GemmOperands operands;
  if (attributes.scaled) {
    operands.scale_a = p.add(tensor("scale_a", DType::f32, {1}, Role::scalar, Fill::constant(1.0)));
    operands.scale_b = p.add(tensor("scale_b", DType::f32, {1}, Role::scalar, Fill::constant(1.0)));
  }
  for (std::int64_t i = 0; i < c.dim("count"); ++i)
    gemm(p, attributes, r.math, "product" + std::to_string(i), a, b, operands);
  return p;
}

std::vector<PlannedCase> case_of(Program (*build)(const Case&, const Recipe&), const std::string& recipe = "f32",
                                 std::int64_t count = 1) {
  Grid grid;
  grid.recipes = {recipe};
  grid.points = {Point{{{"m", 44}, {"n", 52}, {"k", 400}, {"count", count}}, "one", Tier::smoke}};
  const WorkloadInfo info{"product", "a case for tests", "", PrimaryMetric::flop_per_s, "rows", CacheMode::warm};
  const std::vector<Suite> suites{
      {"own", "products", {suites::declare({info, grid, build, [](const Case&) { return 1.0; }})}}};
  return plan_cases(suites, {});
}
std::vector<PlannedCase> case_of(const std::string& recipe, std::int64_t count = 1) {
  return case_of(products, recipe, count);
}

struct Ran {
  CaseRecord record;
  int launches = 0;
};
Ran run_case(const std::vector<PlannedCase>& cases, const Dot& dot, RunOptions options, bool overruns = false) {
  options.batches = {{cases.front().id(), 1}};
  options.breakdown = false;
  static const std::unique_ptr<Backend> cpu = open_cpu_backend(2);
  EmulatingBackend emulating(*cpu, dot, overruns);
  sim::Remembering seen;
  run_in_process(emulating, cases, options, seen, seen.stop);
  return {seen.records.begin()->second, emulating.launches};
}

RunOptions one_round() {
  RunOptions options = sim::smoke_options();
  options.rounds = 1;
  return options;
}

const PlanArithmetic& arithmetic_of(const CaseRecord& record) { return record.parity.arithmetic.value().front(); }

struct Row {
  const char* what;
  const char* recipe;
  Dot dot;
  const char* seen;      // null: as declared
  const char* declared;  // with the name that accepts it
};

class LowArithmetic : public ::testing::TestWithParam<Row> {};

// Up to 10 s each: long sums, emulated by element.
TEST_P(LowArithmetic, IsADowngradeUnlessItIsDeclared) {
  const Row& row = GetParam();
  const CaseRecord record = run_case(case_of(row.recipe), row.dot, one_round()).record;
  SCOPED_TRACE(row.what + std::string(": ") + record.reason);
  ASSERT_TRUE(record.parity.arithmetic);
  EXPECT_EQ(arithmetic_of(record).label, "product0");
  EXPECT_EQ(arithmetic_of(record).kind, "gemm");
  EXPECT_EQ(arithmetic_of(record).implementation, "emulated");
  if (row.seen == nullptr) {
    EXPECT_EQ(record.verdict, Verdict::pass);
    EXPECT_EQ(arithmetic_of(record).unit, "f32, one product at a time");
    EXPECT_EQ(arithmetic_of(record).inputs, "exact");
    return;
  }
  EXPECT_EQ(record.verdict, Verdict::downgraded);
  EXPECT_EQ(arithmetic_of(record).verdict, Verdict::downgraded);
  EXPECT_THAT(arithmetic_of(record).reason, AllOf(HasSubstr(row.seen), HasSubstr("declared: "),
                                                  HasSubstr(std::string("--arithmetic ") + row.declared)));

  RunOptions accepting = one_round();
  accepting.arithmetic = {row.declared};
  const CaseRecord accepted = run_case(case_of(row.recipe), row.dot, accepting).record;
  EXPECT_EQ(accepted.verdict, Verdict::pass) << accepted.reason;
  EXPECT_EQ(arithmetic_of(accepted).verdict, Verdict::pass);
  accepting.arithmetic = {"fewer_sum_bits"};
  EXPECT_EQ(run_case(case_of(row.recipe), row.dot, accepting).record.verdict, Verdict::downgraded) << "another one";
}

INSTANTIATE_TEST_SUITE_P(
    Table, LowArithmetic,
    ::testing::Values(Row{"f32", "f32", in_f32(all_bits), nullptr, nullptr},
                      Row{"bf16", "bf16", in_f32(all_bits), nullptr, nullptr},
                      Row{"tf32", "f32", in_f32(tf32), "inputs as tf32, cut", "tf32"},
                      Row{"bf16 inputs", "f32", in_f32(one_bf16), "inputs as bf16, rounded to nearest even", "bf16"},
                      Row{"two bf16", "f32", in_f32(two_bf16), "inputs as two bf16", "bf16x2"},
                      Row{"f16 sums", "bf16", f16_sums, "running sums of 11 bits", "f16_sums"},
                      Row{"f16 sums of f32", "f32", f16_sums, "running sums of 11 bits", "f16_sums"},
                      Row{"split-K", "bf16", split_in_bf16, "partial sums in bf16", "split_k_in_output"},
                      Row{"fast f8", "f8_hybrid", fast_f8, "running sums of 14 bits for more than", "fast_f8"}),
    [](const auto& row) {
      std::string letters(row.param.what);
      std::erase_if(letters, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
      return letters;
    });

// Every element is within its bound, in check and recheck.
TEST(PlanProbe, SeesWhatIsWithinAllBounds) {
  const CaseRecord record = run_case(case_of("f8_hybrid"), fast_f8, one_round()).record;
  for (const OpParity& op : record.parity.ops) EXPECT_EQ(op.verdict, Verdict::pass) << op.reason;
  EXPECT_EQ(record.parity.ops.size(), 2U);
  EXPECT_EQ(record.verdict, Verdict::downgraded);
  EXPECT_THAT(record.reason, HasSubstr("op 'product0' (gemm) was downgraded in probe: running sums of 14 bits"));
}

// Slow: long sums, emulated by element.
TEST(PlanProbe, LooksAtEachPlanOnceAndNotAtAllWithTheCheckOff) {
  RunOptions options = one_round();
  const Ran checked = run_case(case_of("f32", 3), in_f32(all_bits), options);
  ASSERT_EQ(checked.record.parity.arithmetic->size(), 1U) << "three ops that differ in their labels only";
  EXPECT_EQ(arithmetic_of(checked.record).ops, 3);
  EXPECT_EQ(checked.record.verdict, Verdict::pass) << checked.record.reason;

  options.check = CheckMode::off;
  const Ran unchecked = run_case(case_of("f32", 3), in_f32(all_bits), options);
  EXPECT_FALSE(unchecked.record.parity.arithmetic);
  EXPECT_EQ(unchecked.record.verdict, Verdict::unverified);
}

// Only on data of probes.
TEST(PlanProbe, AWriteBeyondAnOutputIsAFailure) {
  const CaseRecord record = run_case(case_of("f32"), in_f32(all_bits), one_round(), true).record;
  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("op 'product0' (gemm) in probe wrote outside 'product0'"));
}

TEST(PlanProbe, ReadsTheSameOfADeviceWhoseMemoryTheHostDoesNotSee) {
  const sim::InProcess visible(""), opaque("opaque");
  int read = 0;
  for (const auto& [id, record] : visible.seen.records) {
    const CaseRecord& other = opaque.seen.records.at(id);
    ASSERT_EQ(record.parity.arithmetic.has_value(), other.parity.arithmetic.has_value()) << id;
    if (!record.parity.arithmetic) continue;
    ++read;
    for (std::size_t i = 0; i < record.parity.arithmetic->size(); ++i) {
      const PlanArithmetic &a = (*record.parity.arithmetic)[i], &b = (*other.parity.arithmetic)[i];
      EXPECT_EQ(a.inputs, b.inputs) << id;
      EXPECT_EQ(a.bits, b.bits) << id;
      EXPECT_EQ(a.order, b.order) << id;
      EXPECT_EQ(a.verdict, Verdict::pass) << id << ": " << a.reason;
    }
  }
  EXPECT_GT(read, 0);
}

Program square_of_one_matrix(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", DType::f32, {c.dim("m"), c.dim("m")}, Role::input, Fill::normal(1.0)));
  gemm(p, {}, r.math, "square", x, x);
  return p;
}

TEST(PlanProbe, LeavesOutAProductOfAMatrixWithItself) {
  const CaseRecord record = run_case(case_of(square_of_one_matrix), in_f32(all_bits), one_round()).record;
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_FALSE(record.parity.arithmetic);
}

Program quantized_to_blocks(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", DType::f32, {c.dim("m"), 96}, Role::input, Fill::normal(1.0)));
  (void)quantize_blocks(p, {BlockFormat::mxfp8_e4m3}, r.math, "quantized", x);
  return p;
}

TEST(PlanProbe, RecordsWhichAllowedResultADeviceGives) {
  const CaseRecord record = run_case(case_of(quantized_to_blocks), in_f32(all_bits), one_round()).record;
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.parity.arithmetic);
  EXPECT_EQ(arithmetic_of(record).specials, "a block with an infinity is NaN");
}

}  // namespace plan_probe_test
}  // namespace gpubench
