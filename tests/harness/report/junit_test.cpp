#include "harness/report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/report/format_readers.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/shell.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

XmlElement read(const std::string& document) {
  std::string problem;
  const std::optional<XmlElement> root = read_xml(document, problem);
  EXPECT_TRUE(root) << problem << "\n" << document;
  return root.value_or(XmlElement{});
}

// One case of each verdict, each in a suite of that name.
Report report_of_all_verdicts() {
  Report report = sample_report();
  report.cases = {sample_record(Verdict::pass),
                  sample_record(Verdict::fail),
                  sample_record(Verdict::downgraded),
                  sample_record(Verdict::not_proven),
                  sample_without_run(Verdict::unverified, ""),
                  sample_without_run(Verdict::unsupported, "no f8 here"),
                  sample_without_run(Verdict::skipped, "too big"),
                  sample_without_run(Verdict::error, "worker ended by signal 11")};
  return report;
}

TEST(Junit, EachVerdictIsTheElementThatServersCount) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  ASSERT_EQ(root.children.size(), 2U);
  std::vector<std::string> elements;
  for (const XmlElement& suite : root.children) {
    for (const XmlElement* test : suite.all("testcase")) {
      std::string element = "pass";
      for (const XmlElement& child : test->children) element = child.name == "system-out" ? element : child.name;
      elements.push_back(element);
    }
  }
  EXPECT_THAT(elements, ElementsAre("pass", "failure", "failure", "failure", "skipped", "skipped", "skipped", "error"));
}

TEST(Junit, CountsAreThoseOfTheSuiteAndTheirSumsThoseOfTheRun) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  const auto counts = [](const XmlElement& e) {
    return e.attributes.at("tests") + " " + e.attributes.at("failures") + " " + e.attributes.at("errors");
  };
  EXPECT_EQ(counts(root), "8 3 1");
  EXPECT_EQ(root.children[0].attributes.at("name"), "gemm");
  EXPECT_EQ(counts(root.children[0]), "4 3 0");
  EXPECT_EQ(root.children[0].attributes.at("skipped"), "0");
  EXPECT_EQ(counts(root.children[1]), "4 0 1");
  EXPECT_EQ(root.children[1].attributes.at("skipped"), "3");
}

TEST(Junit, ATestsTimeIsWhatPlanningCheckingAndTimingItTook) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  // Each of the four cases that ran: 0.0625 s of planning, 0.125 s of checks and 0.5 s of timing.
  EXPECT_EQ(root.children[0].all("testcase")[0]->attributes.at("time"), "0.687500000");
  EXPECT_EQ(root.children[0].attributes.at("time"), "2.750000000");
  EXPECT_EQ(root.attributes.at("time"), "2.750000000");
}

TEST(Junit, SuitesTellWhenAndWhereTheyRanAndWhatMatteredThere) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  const XmlElement& suite = root.children[0];
  EXPECT_EQ(suite.attributes.at("timestamp"), "2026-11-21T02:34:19");
  EXPECT_EQ(suite.attributes.at("hostname"), "a-host");
  std::map<std::string, std::string> properties;
  for (const XmlElement* one : suite.all("properties")[0]->all("property"))
    properties[one->attributes.at("name")] = one->attributes.at("value");
  EXPECT_EQ(properties["device"], "A Processor");
  EXPECT_EQ(properties["seed"], "42");
  EXPECT_EQ(properties["tier"], "smoke");
  EXPECT_EQ(properties["complete"], "true");
  EXPECT_EQ(properties["env.OMP_NUM_THREADS"], "2");
}

TEST(Junit, TheSuitesSayHowManyTimingsAreUnreliable) {
  const auto timings = [](const Report& report) {
    const XmlElement root = read(junit_text(report));
    for (const XmlElement* one : root.children.at(0).all("properties").at(0)->all("property")) {
      if (one->attributes.at("name") == "timings") return one->attributes.at("value");
    }
    return std::string("(nothing)");
  };
  Report report = sample_report();
  report.cases = {sample_record(), sample_record()};
  EXPECT_EQ(timings(report), "reliable");
  // Half of the interval is 1200 of 3000.5 ns, 40%.
  report.cases[1].summary.ci95_low_ns = 1800.0;
  report.cases[1].summary.ci95_high_ns = 4200.0;
  EXPECT_EQ(timings(report), "1 of 2 timings unreliable: rounds differ too much; --preset normal runs more of them");
}

TEST(Junit, AFailureTellsTheOpItsWorstElementAndTheRerunLine) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  const XmlElement& failure = *root.children[0].all("testcase")[1]->all("failure")[0];
  EXPECT_EQ(failure.attributes.at("type"), "fail");
  EXPECT_THAT(failure.attributes.at("message"), HasSubstr("3 of 64 elements outside their bound"));
  EXPECT_THAT(failure.text, HasSubstr("\n    worst   c[0, 17]  got -1.84375  want -1.8390312"));
  EXPECT_THAT(
      failure.text,
      HasSubstr("\n    rerun   gpubench run --filter '^gemm/square/m=64,n=32,k=16/bf16/warm/x1$' --tier standard"));
  const XmlElement& error = *root.children[1].all("testcase")[3]->all("error")[0];
  EXPECT_EQ(error.attributes.at("message"), "worker ended by signal 11");
}

TEST(Junit, WhatDidNotRunSaysWhy) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  const std::vector<const XmlElement*> tests = root.children[1].all("testcase");
  EXPECT_EQ(tests[0]->all("skipped")[0]->attributes.at("message"), "unverified: --check off");
  EXPECT_EQ(tests[1]->all("skipped")[0]->attributes.at("message"), "unsupported: no f8 here");
  EXPECT_EQ(tests[2]->all("skipped")[0]->attributes.at("message"), "skipped: too big");
  EXPECT_THAT(tests[2]->all("system-out"), IsEmpty());
}

TEST(Junit, SystemOutIsTheLineThatAPersonReads) {
  const XmlElement root = read(junit_text(report_of_all_verdicts()));
  const XmlElement& out = *root.children[0].all("testcase")[0]->all("system-out")[0];
  EXPECT_THAT(out.text, ::testing::AllOf(HasSubstr("PASS"), HasSubstr("21.8 GFLOP/s"),
                                         HasSubstr("by onednn:brg:avx512_core_amx_bf16")));
}

TEST(Junit, TimesThatAreNoNumberCountAsNone) {
  Report report = sample_report();
  report.cases[0].check_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(read(junit_text(report)).children[0].all("testcase")[0]->attributes.at("time"), "0.000000000");
}

TEST(Junit, HoldsByTheSchemaOfJenkins) {
  if (!is_installed("xmllint")) GTEST_SKIP() << "xmllint (libxml2-utils) is not installed";
  EXPECT_EQ(junit_problem(junit_text(report_of_all_verdicts())), "");
  Report empty = sample_report();
  empty.cases.clear();
  EXPECT_EQ(junit_problem(junit_text(empty)), "");
}

TEST(Junit, TheSchemaRefusesWhatJenkinsWould) {
  if (!is_installed("xmllint")) GTEST_SKIP() << "xmllint (libxml2-utils) is not installed";
  const std::string good = junit_text(report_of_all_verdicts());
  const auto with = [&good](const std::string& what, const std::string& other) {
    std::string text = good;
    return text.replace(text.find(what), what.size(), other);
  };
  for (const std::string& bad :
       {with("<testsuites ", "<testsuites skipped=\"3\" "), with(" tests=\"4\"", ""),
        with("time=\"2.75", "time=\"2.75e1"), with("<property name", "<property key"), with("<skipped", "<ignored"),
        with("</testsuites>", ""), with("<testcase classname=\"gemm\" name", "<testcase classname=\"gemm\" title")}) {
    ASSERT_NE(bad, good);
    EXPECT_THAT(junit_problem(bad), Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace gpubench
