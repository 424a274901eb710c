#include "harness/measure/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "tests/harness/measure/made_rounds.h"

namespace gpubench {
namespace statistics_test {

using Values = std::vector<double>;

TEST(Statistics, TheMedianIsTheMiddleOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median(Values{5, 1, 3}), 3.0);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Values{7}), 7.0);
}

TEST(Statistics, NothingHasNoMedian) {
  EXPECT_THROW((void)median(Values{}), std::invalid_argument);
  EXPECT_THROW((void)quantile(Values{}, 0.5), std::invalid_argument);
  EXPECT_THROW((void)mean(Values{}), std::invalid_argument);
}

// Median 3; deviations 2, 1, 0, 1, 97; their median is 1.
TEST(Statistics, TheMedianDeviationIgnoresOneOutlier) {
  EXPECT_EQ(median_absolute_deviation(Values{1, 2, 3, 4, 100}), 1.0);
  EXPECT_EQ(median_absolute_deviation(Values{2, 2, 2}), 0.0);
}

// Positions p (n - 1) = 0.3 and 2.7 among 10, 20, 30, 40.
TEST(Statistics, QuantilesInterpolateBetweenOrderStatistics) {
  const Values values{40, 10, 30, 20};
  EXPECT_NEAR(quantile(values, 0.1), 13.0, 1e-12);
  EXPECT_NEAR(quantile(values, 0.9), 37.0, 1e-12);
  EXPECT_EQ(quantile(values, 0.0), 10.0);
  EXPECT_EQ(quantile(values, 1.0), 40.0);
  EXPECT_THROW((void)quantile(values, 1.5), std::invalid_argument);
  EXPECT_THROW((void)quantile(values, std::nan("")), std::invalid_argument);
}

// 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squared deviations 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32.
TEST(Statistics, TheStandardDeviationDividesByOneLess) {
  const Values values{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_EQ(mean(values), 5.0);
  EXPECT_NEAR(standard_deviation(values), std::sqrt(32.0 / 7.0), 1e-14);
  EXPECT_EQ(standard_deviation(Values{3}), 0.0);
}

// Closed forms: one degree of freedom is Cauchy's, two has t / (2 sqrt(2 + t^2)).
TEST(Statistics, StudentsDistributionAgreesWithItsClosedForms) {
  for (const double t : {-40.0, -3.0, -0.5, 0.0, 1e-3, 0.7, 2.0, 12.0, 1000.0}) {
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi, 1e-13) << t;
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2.0 * std::sqrt(2.0 + t * t)), 1e-13) << t;
  }
}

// With many degrees of freedom it is the normal distribution, to first order in 1 / degrees.
TEST(Statistics, StudentsDistributionApproachesTheNormalOne) {
  for (const double t : {-2.0, -0.3, 1.0, 1.96})
    EXPECT_NEAR(student_t_cdf(t, 1e7), 0.5 * std::erfc(-t / std::numbers::sqrt2), 1e-7) << t;
}

struct TableRow {
  double p, degrees, t;
};

// Any printed table of Student's t, to its six decimals.
TEST(Statistics, QuantilesOfStudentsTAreThoseOfTheTables) {
  constexpr std::array<TableRow, 9> table{{{0.975, 1, 12.706205},
                                           {0.975, 2, 4.302653},
                                           {0.975, 4, 2.776445},
                                           {0.975, 9, 2.262157},
                                           {0.975, 19, 2.093024},
                                           {0.995, 8, 3.355387},
                                           {0.95, 5, 2.015048},
                                           {0.9, 30, 1.310415},
                                           {0.975, 120, 1.979930}}};
  for (const TableRow& row : table) {
    EXPECT_NEAR(student_t_quantile(row.p, row.degrees), row.t, 1e-6) << row.p << " " << row.degrees;
    EXPECT_NEAR(student_t_quantile(1.0 - row.p, row.degrees), -row.t, 1e-6) << row.p << " " << row.degrees;
  }
  EXPECT_EQ(student_t_quantile(0.5, 3), 0.0);
}

// Beyond t = 1e9 the distribution function rounds to 1; there the tail of two degrees of freedom is 1 / (2 t^2).
TEST(Statistics, TheTailOfStudentsTKeepsItsDigitsFarOut) {
  EXPECT_NEAR(student_t_tail(1e9, 2) * 2e18, 1.0, 1e-12);
  EXPECT_NEAR(student_t_tail(-1.5, 7), 1.0 - student_t_tail(1.5, 7), 1e-15);
  EXPECT_NEAR(student_t_tail(1.833113, 9), 0.05, 1e-7);   // printed tables: t(0.95, 9)
  EXPECT_NEAR(student_t_tail(4.296806, 9), 0.001, 1e-8);  // t(0.999, 9)
  EXPECT_EQ(student_t_tail(0.0, 5), 0.5);
  // By mpmath's incomplete beta function to 40 digits; a formula with lgamma(degrees / 2) loses half of its digits
  // here.
  EXPECT_NEAR(student_t_tail(1.6677113221686866, 1e7), 0.047686539020847796, 1e-15);
}

TEST(Statistics, AQuantileOfStudentsTNeedsAProbability) {
  for (const double p : {0.0, 1.0, -0.1, std::nan("")})
    EXPECT_THROW((void)student_t_quantile(p, 3), std::invalid_argument) << p;
}

}  // namespace statistics_test

namespace summary_test {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(Summary, TimesArePerRunOfTheProgram) {
  const std::vector<RoundRecord> rounds{round_of({400, 800, 1200})};

  const Summary s = summarize(rounds, 4);

  EXPECT_EQ(s.median_ns, 200.0);
  EXPECT_EQ(s.min_ns, 100.0);
  EXPECT_EQ(s.mean_ns, 200.0);
  EXPECT_EQ(s.mad_ns, 100.0);
  EXPECT_EQ(s.p10_ns, 120.0);
  EXPECT_EQ(s.p90_ns, 280.0);
  EXPECT_EQ(s.samples, 3);
  EXPECT_EQ(s.rounds, 1);
}

// Round medians 50, 100, 200: their logs have mean ln 100 and standard deviation ln 2; t(0.975, 2) = 4.302653.
TEST(Summary, TheIntervalComesFromTheLogMediansOfRounds) {
  const Summary s = summarize(rounds_of({100, 200, 400}), 2);

  const double h = 4.302653 * std::log(2.0) / std::sqrt(3.0);
  EXPECT_NEAR(s.round_sd, std::log(2.0), 1e-12);
  EXPECT_NEAR(s.ci95_low_ns, 100.0 * std::exp(-h), 1e-4);
  EXPECT_NEAR(s.ci95_high_ns, 100.0 * std::exp(h), 1e-3);
}

TEST(Summary, OneRoundHasNoIntervalAndAFlag) {
  const Summary s = summarize(rounds_of({100}), 1);
  EXPECT_THAT(s.flags, ElementsAre("no interval"));
  EXPECT_EQ(s.ci95_low_ns, 100.0);
  EXPECT_EQ(s.ci95_high_ns, 100.0);
}

TEST(Summary, SpoiledRoundsAreLeftOut) {
  std::vector<RoundRecord> rounds = rounds_of({100, 100, 100});
  rounds.push_back(spoiled(round_of({1000, 1000})));
  const Summary s = summarize(rounds, 1);
  EXPECT_EQ(s.rounds, 3);
  EXPECT_EQ(s.samples, 9);
  EXPECT_EQ(s.mean_ns, 100.0);
}

TEST(Summary, WithoutValidRoundsThereIsNoSummary) {
  const std::vector<RoundRecord> rounds{spoiled(round_of({100}))};
  EXPECT_EQ(summarize(rounds, 1).samples, 0);
  EXPECT_EQ(summarize(rounds, 1).median_ns, 0.0);
}

TEST(Summary, QuietSamplesRaiseNoFlag) {
  EXPECT_THAT(summarize(rounds_of({100, 101, 100, 99, 100, 101, 100, 99, 100, 100}), 1).flags, IsEmpty());
}

// Round medians m/r, m, m r: their logs have deviation d = ln r, and half of the interval is sinh(4.302653 d / sqrt 3)
// of the median. That is 0.25 at d = asinh(0.25) / 2.484138 = 0.0996, where r = 1.1047.
TEST(Summary, AnIntervalOfMoreThanAQuarterOfTheMedianIsNoisy) {
  EXPECT_THAT(summarize(rounds_of({100 / 1.11, 100, 100 * 1.11}), 1).flags, ElementsAre("noisy"));
  EXPECT_THAT(summarize(rounds_of({100 / 1.10, 100, 100 * 1.10}), 1).flags, IsEmpty());
}

// One sample in three is twice as fast as the others, in every round alike.
TEST(Summary, SamplesThatSpreadInsideRoundsThatAgreeAreNotNoisy) {
  std::vector<RoundRecord> rounds;
  for (int r = 0; r < 5; ++r) rounds.push_back(round_of({50, 100, 100.0 + r}));
  EXPECT_THAT(summarize(rounds, 1).flags, Not(Contains("noisy")));
}

// Halves 4% apart, with a spread of 0.1% inside each: D = 0.04 and t = 0.04 / (0.001 sqrt(2/5)), about 60.
TEST(Summary, AStepOfFourPercentIsADrift) {
  const Summary s = summarize(rounds_of({100, 100.1, 100, 100.2, 100, 104, 104.1, 104, 104.2, 104}), 1);
  EXPECT_NEAR(s.drift, std::log(1.04), 1e-6);
  EXPECT_THAT(s.flags, Contains("drift"));
}

// The same 4% inside a spread of 10%: t is below 1.
TEST(Summary, AStepInsideTheNoiseIsNotADrift) {
  const Summary s = summarize(rounds_of({100, 110, 90, 105, 95, 104, 114, 94, 109, 99}), 1);
  EXPECT_GT(std::fabs(s.drift), 0.01);
  EXPECT_THAT(s.flags, Not(Contains("drift")));
}

TEST(Summary, AClearStepOfHalfAPercentIsNotADrift) {
  const Summary s = summarize(rounds_of({100, 100, 100, 100, 100, 100.5, 100.5, 100.5, 100.5, 100.5}), 1);
  EXPECT_THAT(s.flags, Not(Contains("drift")));
}

// 18 samples of 99, 100, 101 (MAD about 1%) and two of 1000: 10 x 1.4826 MAD is about 15%.
TEST(Summary, SevereOutliersAreCountedAndKept) {
  std::vector<double> samples;
  for (int i = 0; i < 6; ++i) samples.insert(samples.end(), {99, 100, 101});
  samples.insert(samples.end(), {1000, 1000});
  const Summary s = summarize(std::vector<RoundRecord>{round_of(samples), round_of({100})}, 1);
  EXPECT_EQ(s.severe, 2);
  EXPECT_EQ(s.samples, 21);
  EXPECT_THAT(s.flags, Contains("severe"));  // 2 of 21 are more than 5%
}

}  // namespace summary_test

}  // namespace gpubench
