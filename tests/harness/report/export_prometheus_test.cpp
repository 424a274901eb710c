// The Prometheus export, by a checker of the text exposition format 0.0.4 that is written here, from its documentation.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "harness/report/export.h"
#include "tests/harness/report/holding_report.h"
#include "tests/harness/report/hostile_text.h"

namespace gpubench {
namespace {

struct Sample {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0.0;
};

bool is_name(std::string_view text, bool colons) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9') && !(colons && c == ':')) return false;
  }
  return true;
}

// Reads one line of a sample: name [ "{" label { "," label } "}" ] " " value, and no timestamp.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  Sample sample() {
    Sample sample;
    sample.metric = std::string(taken_until("{ "));
    require(is_name(sample.metric, true), "the metric's name");
    if (take('{')) {
      do label(sample);
      while (take(','));
      require(take('}'), "the end of the labels");
    }
    require(take(' '), "a blank before the value");
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), sample.value);
    require(error == std::errc() && end == rest_.data() + rest_.size() && std::isfinite(sample.value),
            "one finite number and nothing after it");
    return sample;
  }

 private:
  void label(Sample& sample) {
    const std::string key(taken_until("="));
    require(is_name(key, false), "a label's name");
    require(take('=') && take('"'), "a label's value in quotes");
    std::string value;
    while (!rest_.empty() && rest_[0] != '"') {
      if (take('\\')) {
        require(!rest_.empty() && std::string_view("\\\"n").find(rest_[0]) != std::string_view::npos, "an escape");
        value += rest_[0] == 'n' ? '\n' : rest_[0];
      } else {
        value += rest_[0];
      }
      rest_.remove_prefix(1);
    }
    require(take('"'), "the end of a label's value");
    require(sample.labels.emplace(key, value).second, "each label once");
  }

  std::string_view taken_until(std::string_view ends) {
    const std::string_view taken = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void require(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error("expected " + what + " at: " + std::string(rest_));
  }

  std::string_view rest_;
};

// Throws for whatever a scraper would refuse.
std::vector<Sample> checked(const std::string& text) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error("expected " + what);
  };
  require(!text.empty() && text.back() == '\n', "a newline at the end");
  std::vector<Sample> samples;
  std::set<std::string> families;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> series;
  std::string family;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.rfind("# HELP ", 0) == 0) {
      family = line.substr(7, line.find(' ', 7) - 7);
      require(is_name(family, true), "a family's name: " + line);
      require(families.insert(family).second, "each family once, all its samples together: " + line);
      require(line.find('\\') == std::string::npos, "no escapes in the help: " + line);
    } else if (line.rfind("# ", 0) == 0) {
      require(line == "# TYPE " + family + " gauge", "the type of the family that began: " + line);
      require(samples.empty() || samples.back().metric != family, "the type before the samples: " + line);
    } else {
      samples.push_back(Line(line).sample());
      require(samples.back().metric == family, "a sample of the family that began: " + line);
      require(series.insert({family, samples.back().labels}).second, "each series once: " + line);
    }
  }
  return samples;
}

std::vector<Sample> of_metric(const std::vector<Sample>& samples, const std::string& metric) {
  std::vector<Sample> found;
  for (const Sample& sample : samples) {
    if (sample.metric == metric) found.push_back(sample);
  }
  return found;
}

TEST(PrometheusChecker, RefusesWhatAScraperWould) {
  for (const char* text :
       {"", "a 1", "# HELP a b\na 1\n# HELP a b\n", "# HELP a b\nb 1\n", "# HELP a b\na 1 1700000000\n",
        "# HELP a b\na{x=\"1\",x=\"2\"} 1\n", "# HELP a b\na{x=\"\\t\"} 1\n", "# HELP a b\na{x=\"1} 1\n",
        "# HELP a b\na{1x=\"1\"} 1\n", "# HELP a b\na NaN\n", "# HELP a b\na{x=\"1\"} 1\na{x=\"1\"} 2\n",
        "# HELP a b\n# TYPE a sum\na 1\n", "# HELP 1a b\n", "# HELP a b\na\n", "\n"}) {
    EXPECT_THROW(checked(text), std::runtime_error) << text;
  }
  EXPECT_EQ(checked("# HELP a b\n# TYPE a gauge\na{x=\"\\\\\\\"\\n,}\"} 1e3\n")[0].labels.at("x"), "\\\"\n,}");
}

TEST(ExportPrometheus, TellsVerdictsAndPassingCases) {
  const std::vector<Sample> samples = checked(exported_prometheus(holding_report()));
  std::map<std::string, double> verdicts;
  for (const Sample& s : of_metric(samples, "gpubench_cases")) verdicts[s.labels.at("verdict")] = s.value;
  EXPECT_EQ(verdicts.size(), 8U);
  EXPECT_EQ(verdicts.at("pass"), 1);
  EXPECT_EQ(verdicts.at("fail"), 1);
  EXPECT_EQ(verdicts.at("skipped"), 1);
  EXPECT_EQ(verdicts.at("error"), 0);
  const std::vector<Sample> times = of_metric(samples, "gpubench_case_time_seconds");
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].labels.at("case"), "gemm/square/m=64,n=32,k=16/bf16/warm/x2");
  EXPECT_EQ(times[0].labels.at("recipe"), "bf16");
  EXPECT_DOUBLE_EQ(times[0].value, 2900e-9);
  EXPECT_EQ(of_metric(samples, "gpubench_case_items_per_second")[0].labels.at("item"), "tokens");
  EXPECT_EQ(of_metric(samples, "gpubench_run_complete")[0].value, 1);
  EXPECT_EQ(of_metric(samples, "gpubench_run_finished_time_seconds")[0].value, 1795228469);
}

TEST(ExportPrometheus, AnInterruptedRunWithoutAPassStillTellsSo) {
  Report report = holding_report();
  report.run.complete = false;
  report.cases.erase(report.cases.begin());
  const std::vector<Sample> samples = checked(exported_prometheus(report));
  EXPECT_EQ(of_metric(samples, "gpubench_run_complete")[0].value, 0);
  EXPECT_TRUE(of_metric(samples, "gpubench_case_time_seconds").empty());
}

TEST(ExportPrometheus, HostileTextComesBackFromItsLabelAndNowhereElse) {
  const std::size_t usual = checked(exported_prometheus(holding_report())).size();
  for (const std::string& text : hostile_texts()) {
    Report report = holding_report();
    report.run.devices[0].name = text;
    report.run.tool_version = text;
    report.cases[0].derived.item = text;
    const std::vector<Sample> samples = checked(exported_prometheus(report));
    EXPECT_EQ(samples.size(), usual) << text;
    const Sample info = of_metric(samples, "gpubench_run_info").at(0);
    EXPECT_EQ(info.labels.at("device"), text);
    EXPECT_EQ(info.labels.at("version"), text);
    EXPECT_EQ(of_metric(samples, "gpubench_case_items_per_second").at(0).labels.at("item"), text);
  }
}

}  // namespace
}  // namespace gpubench
