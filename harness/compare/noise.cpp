#include "harness/compare/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/measure/statistics.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

constexpr int most_runs = 10000;
constexpr double least_noise = 0.5e-4;   // below, tables say 0.00%; no clock of a machine repeats itself so
constexpr double largest_spread = 10.0;  // a factor of 22,000
constexpr std::size_t most_bytes = 64U << 20U;
constexpr std::size_t most_cases = 100000;  // members of one object

CaseNoise noise_of_case(const std::vector<double>& log_medians) {
  const auto [least, most] = std::minmax_element(log_medians.begin(), log_medians.end());
  return {static_cast<int>(log_medians.size()), standard_deviation(log_medians), *most - *least,
          std::exp(median(log_medians))};
}

}  // namespace

Noise noise_of(std::span<const Invocation> invocations, std::string created_at) {
  if (invocations.size() < 2) throw std::invalid_argument("noise between runs needs at least two runs");
  Noise noise;
  noise.created_at = std::move(created_at);
  noise.invocations = static_cast<int>(invocations.size());
  noise.setup = invocations.front().setup;
  std::map<std::string, std::vector<double>> log_medians;
  for (const Invocation& invocation : invocations) {
    if (!differences(noise.setup.decisive, invocation.setup.decisive).empty())
      throw std::invalid_argument("noise of several set-ups is the noise of none");
    for (const MeasuredCase& one : invocation.cases) {
      if (one.run) log_medians[one.id].push_back(one.run->log_median);
    }
  }
  for (const auto& [id, values] : log_medians) {
    if (values.size() >= 2) noise.cases[id] = noise_of_case(values);
  }
  return noise;
}

bool has_noise(const Noise& noise) {
  std::vector<double> spreads;
  for (const auto& [id, one] : noise.cases) spreads.push_back(one.spread);
  return spreads.empty() || median(spreads) >= least_noise;
}

std::optional<Prior> prior_of(const Noise& noise, const std::string& case_id) {
  const auto found = noise.cases.find(case_id);
  if (found == noise.cases.end()) return std::nullopt;
  return Prior{found->second.spread * found->second.spread, found->second.runs};
}

Json to_json(const Noise& noise) {
  Json cases = Json::object();
  for (const auto& [id, one] : noise.cases) {
    cases[id] = {{"runs", one.runs}, {"spread", one.spread}, {"range", one.range}, {"median_ns", one.median_ns}};
  }
  return {{"schema", "gpubench-noise"},        {"schema_version", noise_schema_version},
          {"created_at", noise.created_at},    {"fingerprint", fingerprint(noise.setup)},
          {"device", noise.setup.device_kind}, {"setup", to_json(noise.setup.decisive)},
          {"invocations", noise.invocations},  {"cases", std::move(cases)}};
}

Noise noise_from_json(const Node& node, const std::string& source) {
  if (node.at("schema").text() != "gpubench-noise") node.at("schema").refuse("is not \"gpubench-noise\"");
  if (!node.at("schema_version").text().starts_with("1."))
    node.at("schema_version").refuse("is of another major version than 1, which this program reads");
  Noise noise;
  noise.source = source;
  noise.created_at = node.at("created_at").text();
  noise.invocations = static_cast<int>(node.at("invocations").integer(2, most_runs));
  noise.setup = {node.at("device").text(), facts_from_json(node.at("setup")), {}};
  if (node.at("fingerprint").text() != fingerprint(noise.setup))
    node.at("fingerprint").refuse("is not that of the set-up beside it: the file was changed by hand");
  for (const auto& [id, one] : node.at("cases").members()) {
    noise.cases[id] = {static_cast<int>(one.at("runs").integer(2, noise.invocations)),
                       one.at("spread").number(0.0, largest_spread), one.at("range").number(0.0, 10.0 * largest_spread),
                       one.at("median_ns").number(0.0, 1e21)};
  }
  if (!has_noise(noise))
    node.at("cases").refuse("have a noise of 0.00%: they were calibrated on copies of one run; calibrate anew");
  return noise;
}

Noise read_noise(const std::string& path) {
  const Json json = read_json_file(path, {.bytes = most_bytes, .members = most_cases});
  return noise_from_json(Node(json, path), path);
}

}  // namespace gpubench
