#include "harness/parity/precision_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/core/hash.h"
#include "harness/parity/lower_precision.h"
#include "reference/ops/quantize.h"
#include "tests/harness/parity/emulated_gemm.h"
#include "tests/trials.h"

namespace gpubench::testing {
namespace precision_probe_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr GemmExtents usual{.m = 128, .n = 128, .k = 512};
using enum DType;

PlanArithmetic read_of(const NamedUnit& unit, const GemmExtents& e = usual, const Math& math = {}, Gemm gemm = {}) {
  const EmulatedGemm emulated(unit, e, math, gemm);
  const auto [probe, launches] = emulated.probed(42);
  EXPECT_LE(launches, 3) << unit.what;
  return probe->arithmetic();
}

// For any seed and shape, with at most three launches.
TEST(PrecisionProbe, EveryKnownUnitIsIdentified) {
  const std::vector<NamedUnit> units = known_units();
  const int trials = trial_count("GPUBENCH_TRIAL_PROBES", 300);
  int wrong = 0, max_launches = 0;
  std::set<std::string> names;
  for (int trial = 0; trial < trials; ++trial) {
    const NamedUnit& unit = units[static_cast<std::size_t>(trial) % units.size()];
    const auto seed = static_cast<std::uint64_t>(trial);
    const std::vector<std::int64_t> lines{80, 96, 128, 136}, lengths{384, 416, 512, 640};
    const GemmExtents e{.m = lines[mix(seed) % 4], .n = lines[mix(seed + 1) % 4], .k = lengths[mix(seed + 2) % 4]};
    const EmulatedGemm emulated(unit, e);
    const auto [probe, launches] = emulated.probed(seed, 32);
    const PlanArithmetic told = probe->arithmetic();
    max_launches = std::max(max_launches, launches);
    names.insert(told.unit);
    if (told.unit == unit.name) continue;
    ++wrong;
    ADD_FAILURE() << unit.what << " [" << e.m << ", " << e.n << ", " << e.k << "], seed " << seed << ": " << told.unit
                  << ", " << told.bits.value_or(0) << " bits, " << told.rounding << ", " << told.at_once.value_or(0)
                  << " at once, fraction " << told.fraction.value_or(-1) << ", partial " << told.partial;
    if (wrong > 10) break;
  }
  tell_count("probes of emulated units", trials);
  tell_count("units identified wrongly", wrong);
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(max_launches, 3);
  EXPECT_GE(names.size(), 18U);
}

TEST(PrecisionProbe, AKnownUnitsReadingsAreThoseThatWerePublished) {
  std::map<std::string, PlanArithmetic> told;
  for (const NamedUnit& unit : known_units()) told[unit.what] = read_of(unit);
  const auto expect = [&](const char* what, int bits, const char* rounding, int at_once, std::optional<int> fraction) {
    SCOPED_TRACE(what);
    EXPECT_EQ(told.at(what).bits, bits);
    EXPECT_EQ(told.at(what).rounding, rounding);
    EXPECT_EQ(told.at(what).at_once, at_once);
    EXPECT_EQ(told.at(what).fraction, fraction);
  };
  expect("f32", 24, "nearest", 1, std::nullopt);
  expect("f64", 53, "nearest", 1, std::nullopt);
  expect("Volta", 24, "cut", 4, 23);
  expect("Ampere, bf16", 24, "cut", 8, 24);
  expect("Ampere, tf32", 24, "cut", 4, 24);
  expect("Hopper, f16", 24, "cut", 16, 25);
  expect("Hopper, tf32", 24, "cut", 8, 25);
  expect("Ada, e4m3", 14, "cut", 16, 13);
  expect("Hopper, e4m3", 14, "cut", 32, 13);
  expect("Hopper, promoted", 14, "cut", 32, 13);
  expect("Blackwell, e4m3", 24, "cut", 32, 25);
  expect("Blackwell, nvfp4", 24, "cut", 64, 35);
  expect("CDNA3, bf16", 24, "nearest", 8, 24);
  expect("f16 sums", 11, "nearest", 1, std::nullopt);
  expect("f16 sums, Ampere", 11, "nearest", 8, 24);
  expect("bf16 sums", 8, "nearest", 1, std::nullopt);
  EXPECT_EQ(told.at("Hopper, promoted").emptied, 128);
  EXPECT_EQ(told.at("Hopper, e4m3").emptied, std::nullopt);
  EXPECT_EQ(told.at("split-K in bf16").partial, "bf16");
  EXPECT_EQ(told.at("split-K in f16").partial, "f16");
  EXPECT_EQ(told.at("Hopper, bf16").order,
            "the first 51: 16 at once, in order; 51 that are 10 apart: 16 at once, in order");
  EXPECT_EQ(told.at("Volta").order, "16 of the first 256: 4 at once, in order") << "f16 has no room for more";
}

TEST(PrecisionProbe, AnUnpublishedUnitIsCalledUnknown) {
  const auto cut_alone = [](const Factors8& f) {
    double sum = 0.0;
    for (std::size_t k = 0; k < f.a.size(); ++k) sum = cut(sum + f.a[k] * f.b[k], 23, -126);
    return sum;
  };
  const std::vector<NamedUnit> units{
      {"19 bits", bf16, bf16, bf16, TensorUnit{8, 24, Register::f32_cut, 0, 1, 19}, "unknown"},
      {"22 bits", bf16, bf16, f32, TensorUnit{16, 25, Register::f32_cut, 0, 1, 22}, "unknown"},
      {"12 at once", bf16, bf16, bf16, TensorUnit{12, 24}, "unknown"},
      {"a fraction of 22 bits", f16, f16, f32, TensorUnit{8, 22}, "unknown"},
      {"a fraction of 26 bits", f16, f16, f32, TensorUnit{16, 26}, "unknown"},
      {"cut one by one", bf16, bf16, bf16, cut_alone, "unknown"},
      {"promoted every 96", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits, 96}, "unknown"},
      {"promoted every 64", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits, 64}, "unknown"},
      {"10 bits, 8-bit", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits, 0, 1, 10}, "unknown"},
  };
  for (const NamedUnit& unit : units) EXPECT_EQ(read_of(unit).unit, "unknown") << unit.what;
  EXPECT_EQ(read_of(units[0]).bits, 19);
  EXPECT_EQ(read_of(units[1]).bits, 22);
  EXPECT_EQ(read_of(units[2]).at_once, 12);
  EXPECT_EQ(read_of(units[4]).fraction, 26);
  EXPECT_EQ(read_of(units[6]).emptied, 96);
  EXPECT_EQ(read_of(units[7]).emptied, 64);
}

double in_two_bf16(double value) {
  const double high = round_to(bf16, value);
  return high + round_to(bf16, value - high);
}

// The six largest of the nine products of three bf16 pieces each, the smallest ones first.
double by_three_bf16(const Factors8& f) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < f.a.size(); ++k) {
    std::array<double, 3> a{}, b{};
    for (const auto& [pieces, value] : {std::pair(&a, f.a[k]), std::pair(&b, f.b[k])}) {
      double rest = value;
      for (double& piece : *pieces) {
        piece = std::isfinite(rest) ? round_to(bf16, rest) : 0.0;
        rest -= piece;
      }
      if (!std::isfinite(value)) (*pieces)[0] = value;
    }
    for (const auto& [i, j] : {std::pair(2, 0), {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}})
      sum = std::fma(static_cast<float>(a[static_cast<std::size_t>(i)]),
                     static_cast<float>(b[static_cast<std::size_t>(j)]), sum);
  }
  return sum;
}

TEST(PrecisionProbe, TheMultipliedPartOfInputsIsRead) {
  const auto away = [](double value) {
    if (value == 0.0 || !std::isfinite(value)) return value;
    const int shift = 10 - std::ilogb(value);
    return std::ldexp(std::round(std::ldexp(value, shift)), -shift);
  };
  const auto f32_by = [](std::string words, std::function<double(double)> input) {
    return NamedUnit{"inputs", f32, f32, f32, fused_f32, std::move(words), std::move(input)};
  };
  for (const NamedUnit& unit :
       {f32_by("exact", {}), f32_by("tf32, cut", input_bits(11, true)),
        f32_by("tf32, rounded to nearest even", input_bits(11, false)),
        f32_by("tf32, rounded to nearest, ties away", away), f32_by("bf16, cut", input_bits(8, true)),
        f32_by("bf16, rounded to nearest even", input_bits(8, false)), f32_by("two bf16", in_two_bf16),
        f32_by("14 bits, cut", input_bits(14, true)),
        f32_by("23 bits, rounded to nearest even", input_bits(23, false))})
    EXPECT_EQ(read_of(unit).inputs, unit.name);
  EXPECT_EQ(read_of({"three bf16", f32, f32, f32, by_three_bf16, ""}).inputs, "three bf16, or pieces as long");
  EXPECT_EQ(read_of({"f16 as bf16", f16, f16, f16, fused_f32, "", input_bits(8, false)}).inputs,
            "bf16, rounded to nearest even");
  EXPECT_EQ(read_of({"f64 as f32", f64, f64, f64, fused_f64, "", [](double v) { return round_to(f32, v); }}).inputs,
            "24 bits, rounded to nearest even");
}

TEST(PrecisionProbe, ProductsThatAreRoundedBeforeTheyAreAddedAreNotFused) {
  const auto unfused = [](const Factors8& f) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < f.a.size(); ++k) sum += static_cast<float>(f.a[k] * f.b[k]);
    return static_cast<double>(sum);
  };
  EXPECT_EQ(read_of({"unfused", f32, f32, f32, unfused, ""}).products, "rounded before they are added");
  EXPECT_EQ(read_of({"fused", f32, f32, f32, fused_f32, ""}).products, "fused");
  EXPECT_EQ(read_of({"exact products", bf16, bf16, f32, fused_f32, ""}).products, "") << "there is no difference";
}

TEST(PrecisionProbe, HowASumIsStoredIsRead) {
  const auto stored = [](DType type, bool away) {
    return [type, away](double value) {
      if (value == 0.0 || !std::isfinite(value)) return value;
      const int shift = significant_bits(type) - 1 - std::ilogb(value);
      const double scaled = std::ldexp(value, shift);
      return round_to(type, std::ldexp(away ? std::round(scaled) : std::trunc(scaled), -shift));
    };
  };
  for (const DType type : {bf16, f16}) {
    EXPECT_EQ(read_of({"", type, type, type, fused_f32, ""}).store, "nearest even");
    EXPECT_EQ(read_of({"", type, type, type, fused_f32, "", {}, false, stored(type, false)}).store, "toward zero");
    EXPECT_EQ(read_of({"", type, type, type, fused_f32, "", {}, false, stored(type, true)}).store,
              "nearest, ties away");
  }
  EXPECT_EQ(read_of({"", bf16, bf16, bf16, fused_f32, "", {}, false, [](double v) { return round_to(f16, v); }}).store,
            "neither to nearest nor toward zero");
  EXPECT_EQ(read_of({"", bf16, bf16, f32, fused_f32, ""}).store, "") << "nothing is rounded";
}

TEST(PrecisionProbe, FlushedDenormalsAreSeen) {
  const auto flushed = [](double value) { return std::fabs(value) < smallest_normal(f32) ? 0.0 : value; };
  EXPECT_EQ(read_of({"", bf16, bf16, bf16, fused_f32, ""}).denormals, "kept");
  EXPECT_EQ(read_of({"", bf16, bf16, bf16, fused_f32, "", flushed}).denormals, "flushed: a, b");
  EXPECT_EQ(read_of({"", f32, f32, f32, fused_f32, "", {}, false, flushed}).denormals, "flushed: output");
  EXPECT_EQ(
      read_of({"", f8_e4m3, f8_e4m3, bf16, fused_f32, "", [](double v) { return std::fabs(v) < 0x1p-6 ? 0.0 : v; }})
          .denormals,
      "flushed: a, b");
}

TEST(PrecisionProbe, DeparturesFromIeeeAreNamed) {
  EXPECT_EQ(read_of({"", f16, f16, f16, fused_f32, ""}).specials, "as IEEE 754");
  const auto skips_zeros = [](const Factors8& f) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < f.a.size(); ++k) {
      if (f.a[k] != 0.0 && f.b[k] != 0.0) sum = std::fma(static_cast<float>(f.a[k]), static_cast<float>(f.b[k]), sum);
    }
    return static_cast<double>(sum);
  };
  EXPECT_EQ(read_of({"", f32, f32, f32, skips_zeros, ""}).specials,
            "NaN x 0 is not NaN, 0 x NaN is not NaN, infinity x 0 is not NaN");
  const auto saturated = [](double v) { return round_to(f16, std::clamp(v, -65504.0, 65504.0)); };
  EXPECT_EQ(read_of({"", f16, f16, f16, fused_f32, "", {}, false, saturated}).specials,
            "an infinity is lost, overflow saturates");
  const auto no_nan = [](double v) { return std::isnan(v) ? 0.0 : round_to(f32, v); };
  EXPECT_THAT(read_of({"", f32, f32, f32, fused_f32, "", {}, false, no_nan}).specials, HasSubstr("a NaN is lost"));
}

// The declared arithmetic, a lower one, and its name for --arithmetic.
TEST(PrecisionProbe, OnlyLowerArithmeticIsADowngrade) {
  const Math usual_math;
  const Math tf32{.inputs = Math::Inputs::tf32}, fast{.fast_accumulation = true}, split{.split_k_in_output = true};
  const Math f16_math{.accumulate = f16}, f64_math{.accumulate = f64};
  struct Row {
    const char* unit;
    Math math;
    const char* name;  // null: it is what was declared
  };
  const std::vector<Row> rows{
      {"f32", usual_math, nullptr},
      {"f32", tf32, nullptr},
      {"f64", f64_math, nullptr},
      {"Ampere, tf32", usual_math, "tf32"},
      {"Ampere, tf32", tf32, nullptr},
      {"Hopper, tf32", tf32, nullptr},
      {"Volta", usual_math, nullptr},
      {"Hopper, f16", usual_math, nullptr},
      {"CDNA3, bf16", usual_math, nullptr},
      {"f16 sums, Ampere", usual_math, "f16_sums"},
      {"f16 sums", usual_math, "f16_sums"},
      {"f16 sums", f16_math, nullptr},
      {"bf16 sums", usual_math, "bf16_sums"},
      {"split-K in bf16", usual_math, "split_k_in_output"},
      {"split-K in bf16", split, nullptr},
      {"split-K in f16", usual_math, "split_k_in_output"},
      {"Hopper, e4m3", usual_math, "fast_f8"},
      {"Hopper, e4m3", fast, nullptr},
      {"Ada, e4m3", usual_math, "fast_f8"},
      {"Hopper, promoted", usual_math, nullptr},
      {"Blackwell, e4m3", usual_math, nullptr},
      {"Blackwell, nvfp4", usual_math, nullptr},
  };
  std::map<std::string, NamedUnit> units;
  for (const NamedUnit& unit : known_units()) units.emplace(unit.what, unit);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.unit);
    const EmulatedGemm emulated(units.at(row.unit), usual, row.math);
    const auto [probe, launches] = emulated.probed(7);
    const PlanArithmetic told = probe->arithmetic();
    EXPECT_EQ(told.verdict, row.name == nullptr ? Verdict::pass : Verdict::downgraded) << told.reason;
    EXPECT_EQ(told.reason.empty(), row.name == nullptr);
    if (row.name == nullptr) continue;
    EXPECT_THAT(told.reason, AllOf(HasSubstr("declared: "), HasSubstr(std::string("--arithmetic ") + row.name)));
    const std::vector<std::string> allowed{row.name}, another{"narrower"};
    EXPECT_EQ(probe->arithmetic(allowed).verdict, Verdict::pass);
    EXPECT_EQ(probe->arithmetic(another).verdict, Verdict::downgraded);
  }
}

TEST(PrecisionProbe, EveryLowerArithmeticHasAUniqueName) {
  const NamedUnit narrow{"19 bits", bf16, bf16, bf16, TensorUnit{8, 24, Register::f32_cut, 0, 1, 19}, ""};
  EXPECT_EQ(read_of(narrow).reason, "running sums of 19 bits, declared: 24 (f32) (--arithmetic fewer_sum_bits)");
  const NamedUnit split{"", f32, f32, f32, fused_f32, "", in_two_bf16};
  EXPECT_EQ(read_of(split).reason, "inputs as two bf16, declared: exact inputs (--arithmetic bf16x2)");
  const NamedUnit few{"", f32, f32, f32, fused_f32, "", input_bits(14, true)};
  EXPECT_EQ(read_of(few).reason, "inputs as 14 bits, cut, declared: exact inputs (--arithmetic fewer_input_bits)");
  const NamedUnit both{
      "", f32, f32, f32, [](const Factors8& f) { return rounded_each_time(f, f16); }, "", input_bits(8, false)};
  EXPECT_THAT(read_of(both).reason, AllOf(HasSubstr("--arithmetic bf16)"), HasSubstr("--arithmetic f16_sums)")));
  std::set<std::string_view> names;
  for (const LowerArithmetic& one : lower_arithmetic::all) EXPECT_TRUE(names.insert(one.name).second) << one.name;
}

// Three bf16 pieces have all of f32's bits, and denormals depend on the device.
TEST(PrecisionProbe, AmbiguousReadingsAreReportedAndNotJudged) {
  EXPECT_EQ(read_of({"", f32, f32, f32, by_three_bf16, ""}).verdict, Verdict::pass);
  const auto flushed = [](double value) { return std::fabs(value) < smallest_normal(f32) ? 0.0 : value; };
  EXPECT_EQ(read_of({"", bf16, bf16, bf16, fused_f32, "", flushed}).verdict, Verdict::pass);
  const NamedUnit f8{"", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits}, ""};
  EXPECT_EQ(read_of(f8, {.m = 128, .n = 128, .k = 128}).verdict, Verdict::pass) << "so few may be one chunk";
}

TEST(PrecisionProbe, SumsWiderThanTheTriedOnesAreReported) {
  const auto wide = [](const Factors8& f) {
    long double sum = 0.0L;  // 64 bits
    for (std::size_t k = 0; k < f.a.size(); ++k) sum += static_cast<long double>(f.a[k]) * f.b[k];
    return static_cast<double>(sum);
  };
  const PlanArithmetic told = read_of({"", f32, f32, f32, wide, ""});
  EXPECT_EQ(told.note, "sums lose no bit: they keep more than 60");
  EXPECT_EQ(told.verdict, Verdict::pass);
}

// A transform around the products, as Winograd's, leaves no plain sums.
TEST(PrecisionProbe, SumsThatAreNotPlainAreNotRead) {
  const auto transformed = [](const Factors8& f) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < f.a.size(); ++k)
      sum = std::fma(static_cast<float>(f.a[k]), static_cast<float>(f.b[k]) * (1.0F / 6.0F), sum);
    return static_cast<double>(sum * 6.0F);
  };
  for (const DType type : {f32, bf16}) {
    const PlanArithmetic told = read_of({"", type, type, type, transformed, ""});
    EXPECT_EQ(told.note, "the sums are not plain sums of products") << name(type);
    EXPECT_EQ(told.bits, std::nullopt);
    EXPECT_EQ(told.verdict, Verdict::pass) << told.reason;
  }
}

TEST(PrecisionProbe, OutputsThatAreSummedInDifferentOrdersHaveNoSingleOrder) {
  const auto reversed = [](const Factors8& f) {
    float sum = 0.0F;
    for (std::size_t k = f.a.size(); k-- > 0;)
      sum = std::fma(static_cast<float>(f.a[k]), static_cast<float>(f.b[k]), sum);
    return static_cast<double>(sum);
  };
  const PlanArithmetic told =
      read_of({"", f32, f32, f32, fused_f32, "", {}, false, {}, reversed}, {.m = 128, .n = 128, .k = 80});
  EXPECT_EQ(told.bits, 24);
  EXPECT_THAT(told.order, HasSubstr("no single order"));
  EXPECT_EQ(read_of({"", f32, f32, f32, reversed, ""}, {.m = 128, .n = 128, .k = 80}).order, "in reverse order of k");
}

TEST(PrecisionProbe, FactorsThatArePowersOfTwoAreSeenThrough) {
  for (const double alpha : {0.25, -2.0}) {
    for (const NamedUnit& unit : known_units()) {
      if (unit.nvfp4) continue;
      EXPECT_EQ(read_of(unit, usual, {}, {.alpha = alpha}).unit, unit.name) << unit.what << ", alpha " << alpha;
    }
  }
  EmulatedGemm third({"", f32, f32, f32, fused_f32, ""}, usual, {}, {.alpha = 1.0 / 3.0});
  EXPECT_FALSE(is_readable(third.specs(), third.product()));
  EmulatedGemm half({"", f32, f32, f32, fused_f32, ""}, usual, {}, {.alpha = 0.5});
  EXPECT_TRUE(is_readable(half.specs(), half.product()));
}

TEST(PrecisionProbe, SmallAndLopsidedProductsAreReadAsFarAsTheyGo) {
  for (const NamedUnit& unit : known_units()) {
    if (unit.nvfp4 || unit.what.starts_with("split")) continue;  // so small a part is of no known unit
    for (const GemmExtents& e :
         {GemmExtents{1, 1, 1, 1}, GemmExtents{1, 1, 1, 512}, GemmExtents{1, 1, 400, 64}, GemmExtents{1, 400, 1, 64},
          GemmExtents{1, 3, 5, 7}, GemmExtents{1, 8, 8, 8}, GemmExtents{1, 12, 100, 33}, GemmExtents{1, 33, 65, 129},
          GemmExtents{1, 300, 20, 64}, GemmExtents{1, 40, 40, 40}, GemmExtents{1, 64, 64, 64}}) {
      const EmulatedGemm emulated(unit, e);
      const auto [probe, launches] = emulated.probed(3);
      const PlanArithmetic told = probe->arithmetic();
      SCOPED_TRACE(unit.what + " " + std::to_string(e.m) + " " + std::to_string(e.n) + " " + std::to_string(e.k));
      EXPECT_NE(told.unit, "unknown") << told.bits.value_or(0) << " " << told.rounding << " "
                                      << told.at_once.value_or(0) << " " << told.fraction.value_or(-1);
      EXPECT_LE(launches, 3);
      const bool lower = unit.name.find("16") == 0 || unit.input || unit.what.find("sums") != std::string::npos ||
                         unit.what.find("split") == 0 || unit.what.find("Hopper, e") == 0 || unit.what == "Ada, e4m3";
      EXPECT_TRUE(lower || told.verdict == Verdict::pass) << told.reason;
    }
  }
  const PlanArithmetic vector = read_of({"", f32, f32, f32, fused_f32, ""}, {.m = 1, .n = 400, .k = 64});
  EXPECT_EQ(vector.inputs, "b: exact") << "a matrix times a vector, which is needed whole for the matrix";
  const PlanArithmetic small = read_of({"", f32, f32, f32, fused_f32, ""}, {.m = 8, .n = 8, .k = 8});
  EXPECT_EQ(small.bits, std::nullopt) << "all of k may be one step";
  EXPECT_EQ(small.note, "sums of few products keep 24 bits; more products are needed to read more");
  EXPECT_EQ(small.order, "in order of k");
}

TEST(PrecisionProbe, WithLinesEnoughTwoLaunchesDo) {
  const auto launches_of = [](DType type, const GemmExtents& e) {
    const EmulatedGemm gemm({"", type, type, type, fused_f32, ""}, e);
    return gemm.probed(1).second;
  };
  EXPECT_EQ(launches_of(bf16, usual), 2);
  EXPECT_EQ(launches_of(f32, {.m = 256, .n = 256, .k = 128}), 2);
  EXPECT_EQ(launches_of(f32, {.m = 128, .n = 128, .k = 128}), 3) << "all of k needs all lines";
  EXPECT_EQ(launches_of(f32, {.m = 64, .n = 64, .k = 512}), 3) << "too few lines are left";
  EXPECT_EQ(launches_of(f32, {.m = 64, .n = 64, .k = 2}), 1) << "no sum";
}

TEST(PrecisionProbe, TheSameSeedGivesTheSameDataAndAnotherOneOthers) {
  const EmulatedGemm gemm({"", f32, f32, f32, fused_f32, ""}, usual);
  const auto first_launch = [&](std::uint64_t seed) {
    PrecisionProbe probe(gemm.specs(), gemm.product(), seed);
    return probe.next()->inputs.front().dense().bytes;
  };
  EXPECT_EQ(first_launch(1), first_launch(1));
  EXPECT_NE(first_launch(1), first_launch(2));
}

TEST(PrecisionProbe, KnownUnitsHaveSourcesAndDiffer) {
  std::set<std::tuple<int, int, int, int>> readings;
  for (const KnownAccumulator& known : known_accumulators()) {
    EXPECT_FALSE(known.source.empty()) << known.name;
    EXPECT_TRUE(readings.emplace(known.bits, static_cast<int>(known.rounding), known.at_once, known.fraction).second)
        << known.name << " can't be told from another one: they are one line";
  }
  EXPECT_GE(readings.size(), 11U);
}

TEST(OpenResult, OfNvfp4IsWhatBecomesOfASmallScale) {
  Program p;
  const ValueId x = p.add(tensor("x", bf16, {3, 48}, Role::input, Fill::normal(1.0)));
  const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(1.0)));
  (void)quantize_blocks(p, {BlockFormat::nvfp4}, {}, "q", x, scale);
  const std::vector<TensorSpec> in = specs_of(p, p.op(0).inputs), out = specs_of(p, p.op(0).outputs);
  const CallSpecs op{p.op(0), in, out};
  const ProbeLaunch launch = open_result_launch(op);
  const std::vector<HostTensor> given{launch.inputs[0].dense(), launch.inputs[1].dense()};
  const std::vector<TensorView> views = views_of(given);
  const std::vector<HostTensor> textbook = textbook_outputs({op.call, views, out});
  EXPECT_EQ(open_result(op, views_of(textbook)[1][launch.wanted[0]]).denormals, "scales below 2^-6 kept");
  EXPECT_EQ(open_result(op, 0x1p-6).denormals, "scales below 2^-6 raised to it");
  EXPECT_EQ(open_result(op, 0.0).denormals, "a scale of 2^-8 becomes 0");
}

TEST(OpenResult, OfMxIsWhatBecomesOfAnInfinity) {
  Program p;
  (void)quantize_blocks(p, {BlockFormat::mxfp4}, {}, "q", p.add(tensor("x", f32, {3, 96}, Role::input)));
  const std::vector<TensorSpec> in = specs_of(p, p.op(0).inputs), out = specs_of(p, p.op(0).outputs);
  const CallSpecs op{p.op(0), in, out};
  EXPECT_EQ(open_result_launch(op).inputs[0].elements[0].value, HUGE_VAL);
  EXPECT_EQ(open_result(op, 255.0).specials, "a block with an infinity is NaN");
  EXPECT_EQ(open_result(op, 254.0).specials, "an infinity saturates, with a scale of 2^127");
  EXPECT_EQ(open_result(op, 0.0).specials, "a block with an infinity has the stored scale 0");
}

}  // namespace precision_probe_test
}  // namespace gpubench::testing
