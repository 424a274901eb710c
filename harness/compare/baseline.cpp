#include "harness/compare/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>
#include <thread>

#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

void require_one_setup(const Setup& first, const Setup& other, const std::string& source) {
  const std::vector<Difference> all = differences(first.decisive, other.decisive);
  if (!all.empty())
    throw UsageError(fmt::format("{} is of another set-up than the first report: {}", visible(source),
                                 visible(differences_text(all))));
}

void require_schema(const Node& node, std::string_view schema) {
  if (node.at("schema").text() != schema) node.at("schema").refuse(fmt::format("is not \"{}\"", schema));
  if (!node.at("schema_version").text().starts_with("1."))
    node.at("schema_version").refuse("is of another major version than 1, which this program reads");
}

SideFile read_file(const std::string& path) {
  const auto [name, contender] = source_of(path);
  const std::string text = read_text(name);
  // A baseline has its schema in its first member, so that a report is not parsed twice.
  constexpr std::size_t head = 200;
  SideFile file;
  if (std::string_view(text).substr(0, head).find("\"gpubench-baseline\"") == std::string_view::npos) {
    file.invocations.push_back(parse_invocation(text, name, contender));
    return file;
  }
  Baseline baseline = parse_baseline(text, path);
  return {std::move(baseline.invocations), std::move(baseline.noise)};
}

SideFile named(std::string_view name, const auto& read) {
  try {
    return read();
  } catch (const ReadError& e) {
    if (name.empty()) throw;
    throw ReadError(fmt::format("{}: {}", name, e.what()));
  }
}

}  // namespace

Baseline make_baseline(std::string name, std::string created_at, std::vector<Invocation> invocations,
                       std::optional<Noise> noise) {
  if (invocations.empty()) throw UsageError("a baseline needs at least one report");
  for (const Invocation& invocation : invocations) {
    require_one_setup(invocations.front().setup, invocation.setup, invocation.source);
    if (!invocation.injected.empty())
      throw UsageError(fmt::format("{} was measured with an injected fault, {}, and cannot be a baseline",
                                   visible(invocation.source), visible(invocation.injected)));
    if (!invocation.complete)
      throw UsageError(fmt::format("{} is partial: its run was interrupted", visible(invocation.source)));
  }
  refuse_repeats(invocations, "");
  if (noise) require_one_setup(invocations.front().setup, noise->setup, noise->source);
  return {std::move(name), std::move(created_at), std::move(invocations), std::move(noise)};
}

Json to_json(const Baseline& baseline) {
  Json invocations = Json::array();
  for (const Invocation& invocation : baseline.invocations) invocations.push_back(to_json(invocation));
  Json json = {{"schema", "gpubench-baseline"},
               {"schema_version", baseline_schema_version},
               {"name", baseline.name},
               {"created_at", baseline.created_at},
               {"fingerprint", fingerprint(baseline.invocations.front().setup)},
               {"invocations", std::move(invocations)}};
  if (baseline.noise) json["noise"] = to_json(*baseline.noise);
  return json;
}

Baseline baseline_from_json(const Node& node, const std::string& source) {
  require_schema(node, "gpubench-baseline");
  Baseline baseline;
  baseline.name = node.at("name").text();
  baseline.created_at = node.at("created_at").text();
  const Node invocations = node.at("invocations");
  if (invocations.size() == 0) invocations.refuse("is empty");
  for (std::size_t i = 0; i < invocations.size(); ++i) {
    baseline.invocations.push_back(invocation_from_json(invocations.at(i), fmt::format("{} (run {})", source, i + 1)));
    if (node.at("fingerprint").text() != fingerprint(baseline.invocations.back().setup))
      invocations.at(i).at("setup").refuse("does not match the fingerprint");
  }
  if (node.has("noise")) baseline.noise = noise_from_json(node.at("noise"), source);
  return baseline;
}

std::string baseline_text(const Baseline& baseline) { return sealed_text(to_json(baseline), 1); }

Baseline parse_baseline(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const Node root(json, source);
  Baseline baseline = baseline_from_json(root, source);
  const Seal seal = seal_of(text);
  if (seal == Seal::broken) throw ReadError(broken_seal_text(source));
  const std::string version = root.at("schema_version").text();
  const bool older = version == "1.0" || version == "1.1";
  if (seal == Seal::none && !older) root.refuse("lacks \"digest\" as its last member: the file was edited");
  return baseline;
}

std::vector<SideFile> read_sides(std::span<const SidePaths> sides) {
  std::vector<std::pair<std::size_t, const std::string*>> files;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    for (const std::string& path : sides[side].paths) files.emplace_back(side, &path);
  }
  const std::size_t at_once = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  std::vector<SideFile> read(sides.size());
  for (std::size_t first = 0; first < files.size(); first += at_once) {
    const auto some = std::span(files).subspan(first, std::min(at_once, files.size() - first));
    std::vector<std::future<SideFile>> reading;
    for (const auto& [side, path] : some)
      reading.push_back(std::async(std::launch::async, [path = path] { return read_file(*path); }));
    for (std::size_t i = 0; i < some.size(); ++i) {
      SideFile& side = read[some[i].first];
      SideFile file = named(sides[some[i].first].name, [&] { return reading[i].get(); });
      std::move(file.invocations.begin(), file.invocations.end(), std::back_inserter(side.invocations));
      if (!side.noise) side.noise = std::move(file.noise);
    }
  }
  return read;
}

namespace {

constexpr int max_runs = 10000;
constexpr double min_noise = 0.5e-4;  // smaller ones print as 0.00%; no real machine repeats that closely
constexpr double largest_spread = 10.0;
constexpr std::size_t max_bytes = 64U << 20U;
constexpr std::size_t max_cases = 100000;

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
      throw std::invalid_argument("runs of different set-ups have no common noise");
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
  return spreads.empty() || median(spreads) >= min_noise;
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
  require_schema(node, "gpubench-noise");
  Noise noise;
  noise.source = source;
  noise.created_at = node.at("created_at").text();
  noise.invocations = static_cast<int>(node.at("invocations").integer(2, max_runs));
  noise.setup = {node.at("device").text(), facts_from_json(node.at("setup")), {}};
  if (node.at("fingerprint").text() != fingerprint(noise.setup))
    node.at("fingerprint").refuse("does not match its set-up: the file was edited");
  for (const auto& [id, one] : node.at("cases").members()) {
    noise.cases[id] = {static_cast<int>(one.at("runs").integer(2, noise.invocations)),
                       one.at("spread").number(0.0, largest_spread), one.at("range").number(0.0, 10.0 * largest_spread),
                       one.at("median_ns").number(0.0, 1e21)};
  }
  if (!has_noise(noise))
    node.at("cases").refuse("have a noise of 0.00%: they were calibrated on copies of one run; calibrate again");
  return noise;
}

Noise read_noise(const std::string& path) {
  const Json json = read_json_file(path, {.bytes = max_bytes, .members = max_cases});
  return noise_from_json(Node(json, path), path);
}

}  // namespace gpubench
