// Prometheus' text exposition format 0.0.4 as a scraper reads it, written from its documentation. Stricter where we
// promise more: gauges only, no timestamps (node_exporter's textfile collector drops a file that has one), finite
// numbers only.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gpubench::prometheus {

struct Sample {
  std::string metric;
  std::map<std::string, std::string> labels;
  double value = 0.0;
};

/// Every sample of a file. Throws std::runtime_error for whatever would be refused: bad names, labels or escapes, bytes
/// that are not UTF-8, a family without HELP and TYPE before its samples or that stands twice, a series that does, no
/// newline at the end.
[[nodiscard]] std::vector<Sample> samples_of(const std::string& text);

/// Those of one metric.
[[nodiscard]] std::vector<Sample> of_metric(const std::vector<Sample>& samples, const std::string& metric);

}  // namespace gpubench::prometheus
