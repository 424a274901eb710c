#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpParity op(const std::string& kind, double error, std::int64_t judged = 10) {
  OpParity parity;
  parity.label = kind + "0";
  parity.kind = kind;
  parity.phase = "recheck";
  parity.verdict = error <= 1.0 ? Verdict::pass : Verdict::fail;
  parity.error_over_bound = error;
  parity.judged = judged;
  parity.elements = 40;
  return parity;
}

CaseRecord checked(const std::string& recipe, std::vector<OpParity> ops, std::int64_t n) {
  CaseRecord record = made_case("matmul", {{"n", n}}, recipe);
  record.parity.ops = std::move(ops);
  return record;
}

const chart::HeatMap& map_of(const Figure& figure) { return std::get<chart::HeatMap>(figure.chart); }

TEST(ErrorBudget, ACellIsTheLargestErrorOfItsKindAndPrecision) {
  const Figure figure =
      part_of(made_report({checked("f32", {op("gemm", 0.25), op("softmax", 0.0)}, 1),
                           checked("f32", {op("gemm", 0.5)}, 2), checked("bf16", {op("gemm", 0.125)}, 3)}),
              "error-budget")
          .figures.front();
  EXPECT_THAT(map_of(figure).columns, ElementsAre("f32", "bf16"));
  EXPECT_THAT(map_of(figure).rows, ElementsAre("gemm", "softmax"));
  EXPECT_EQ(map_of(figure).cells[0][0].text, "0.50");
  EXPECT_DOUBLE_EQ(map_of(figure).cells[0][0].shade, 0.5);
  EXPECT_FALSE(map_of(figure).cells[0][0].marked);
  EXPECT_EQ(map_of(figure).cells[0][1].text, "0.12");
  EXPECT_EQ(map_of(figure).cells[1][0].text, "0");
  EXPECT_EQ(map_of(figure).cells[1][1].text, "");
  EXPECT_THAT(column_of(figure.table, "elements judged"), ElementsAre("20", "10", "10"));
  EXPECT_THAT(column_of(figure.table, "worst in"),
              ElementsAre("gemm/matmul/n=2/f32/x1", "gemm/matmul/n=3/bf16/x1", "gemm/matmul/n=1/f32/x1"));
}

TEST(ErrorBudget, OfABriefReportIsThatOfTheFullOne) {
  const CaseRecord full = checked("f32", {op("gemm", 0.25), op("norm", 0.5), op("gemm", 0.125), op("norm", 0.25)}, 1);
  const CaseRecord brief_one = brief(full);
  ASSERT_EQ(brief_one.parity.ops.size(), 1U);
  const auto figure_of = [](const CaseRecord& record) {
    return part_of(made_report({record}), "error-budget").figures.front();
  };
  EXPECT_EQ(figure_of(brief_one).table.rows, figure_of(full).table.rows);
  EXPECT_THAT(column_of(figure_of(brief_one).table, "checks"), ElementsAre("2", "2"));
  EXPECT_THAT(map_of(figure_of(brief_one)).cells[1][0].note, HasSubstr("0.25 of its bound, gemm recheck in"));
}

// The only chart that includes failing cases.
TEST(ErrorBudget, AboveOneIsMarkedAndFirst) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Figure figure =
      part_of(
          made_report({checked("f32", {op("adamw", 0.9), op("gemm", 3.5)}, 1), checked("f32", {op("clip", nan)}, 2)}),
          "error-budget")
          .figures.front();
  EXPECT_THAT(map_of(figure).rows, ElementsAre("clip", "gemm", "adamw"));
  EXPECT_TRUE(map_of(figure).cells[0][0].marked);
  EXPECT_EQ(map_of(figure).cells[0][0].text, "inf");
  EXPECT_TRUE(map_of(figure).cells[1][0].marked);
  EXPECT_EQ(map_of(figure).cells[1][0].text, "3.50");
  EXPECT_FALSE(map_of(figure).cells[2][0].marked);
}

TEST(ErrorBudget, WhatWasNotJudgedUsedNoBudget) {
  EXPECT_TRUE(part_of(made_report({checked("f32", {op("gemm", 0.0, 0)}, 1)}), "error-budget").empty());
}

}  // namespace
}  // namespace gpubench::page
