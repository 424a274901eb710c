#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <span>

#include "harness/cli/compared_reports.h"
#include "harness/cli/verb.h"
#include "harness/compare/baseline.h"
#include "harness/core/text/quantity.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

struct BaselineOptions {
  std::string noise;
  std::string dir = "gpubench-baselines";
};

namespace fs = std::filesystem;
constexpr std::string_view suffix = ".json";

// Names become file names, also in other repositories.
void require_name(const std::string& name) {
  constexpr std::size_t longest = 80;
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (name.empty() || name.size() > longest || name.front() == '.' || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), good)) {
    throw UsageError(fmt::format("'{}' is not a name for a baseline: expected up to {} characters of a-z A-Z 0-9 . _ -",
                                 visible(name), longest));
  }
}

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string file(const std::string& name) const {
    return (fs::path(path_) / (name + std::string(suffix))).string();
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    std::error_code error;
    const fs::directory_iterator entries(path_, error);
    // A missing folder means no baseline yet; one that cannot be read may hold any number.
    if (error && error != std::errc::no_such_file_or_directory)
      throw UsageError(fmt::format("--dir: {}: cannot be listed: {}", visible(path_), error.message()));
    for (const auto& entry : entries) {
      const std::string name = entry.path().filename().string();
      if (name.size() > suffix.size() && name.ends_with(suffix) && !name.starts_with("."))
        names.push_back(name.substr(0, name.size() - suffix.size()));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  [[nodiscard]] Baseline read(const std::string& name) const {
    require_name(name);
    if (!fs::exists(file(name))) {
      const std::vector<std::string> known = names();
      throw UsageError(
          fmt::format("there is no baseline '{}' in {}{}", name, visible(path_), did_you_mean(name, known)));
    }
    try {
      return parse_baseline(read_text(file(name)), file(name));
    } catch (const ReadError& e) {
      throw UsageError(e.what());
    }
  }

  void write(const Baseline& baseline, const WriteRules& rules) const {
    const std::string path = file(baseline.name);
    if (fs::exists(path) && !rules.replace)
      throw UsageError(fmt::format("{} is there already; --force replaces it", visible(path)));
    try {
      make_folder(path_);
      write_atomically(path, baseline_text(baseline), rules);
    } catch (const WriteError& e) {
      fail_to_write("", e);
    }
  }

 private:
  std::string path_;
};

// Calibrated noise, or that of the baseline's own runs.
std::optional<Noise> noise_in(const Baseline& baseline) {
  if (baseline.noise) return baseline.noise;
  if (baseline.invocations.size() < 2) return std::nullopt;
  return noise_of(baseline.invocations, baseline.created_at);
}

std::string line_of(const Baseline& baseline) {
  const Invocation& first = baseline.invocations.front();
  return fmt::format("{} run{}, {} cases, set-up {}{}", baseline.invocations.size(),
                     baseline.invocations.size() == 1 ? "" : "s", first.cases.size(), fingerprint(first.setup),
                     baseline.noise ? fmt::format(", calibrated over {} runs", baseline.noise->invocations) : "");
}

int print_saved(const Baseline& baseline, const Folder& folder, const Environment& environment) {
  environment.out << fmt::format("{}: {}\nwritten to {}\n", baseline.name, line_of(baseline),
                                 visible(folder.file(baseline.name)));
  if (!baseline.noise && baseline.invocations.size() < static_cast<std::size_t>(enough_calibration))
    environment.out << fmt::format(
        "a gate with it needs {} candidate reports, or a calibration (--noise); {} runs or more serve as one\n",
        enough_runs, enough_calibration);
  return exit_codes::ok;
}

int save(std::span<const std::string> words, const Options& options, const Environment& environment) {
  const auto& o = options.of<BaselineOptions>();
  if (words.size() < 2) throw UsageError("baseline save NAME REPORT...: a name and at least one report are needed");
  require_name(words.front());
  SideFile side = read_side_of(words.subspan(1), "baseline save");
  std::optional<Noise> noise = std::move(side.noise);
  if (!o.noise.empty()) noise = noise_at(o.noise, side.invocations.front().setup);
  const Folder folder(o.dir);
  const Baseline baseline =
      make_baseline(words.front(), iso_time(environment.time_of_day()), std::move(side.invocations), std::move(noise));
  folder.write(baseline, options.writing);
  return print_saved(baseline, folder, environment);
}

int merge(std::span<const std::string> words, const Options& options, const Environment& environment) {
  const auto& o = options.of<BaselineOptions>();
  if (words.size() < 3)
    throw UsageError("baseline merge NAME FROM FROM...: a new name and at least two baselines are needed");
  require_name(words.front());
  const Folder folder(o.dir);
  std::vector<Invocation> invocations;
  std::optional<Noise> noise;
  for (const std::string& name : words.subspan(1)) {
    Baseline one = folder.read(name);
    std::move(one.invocations.begin(), one.invocations.end(), std::back_inserter(invocations));
    // The calibration with the most runs. All are of one set-up; make_baseline() checks that.
    if (one.noise && (!noise || one.noise->invocations > noise->invocations)) noise = std::move(one.noise);
  }
  if (!o.noise.empty()) noise = noise_at(o.noise, invocations.front().setup);
  const Baseline baseline =
      make_baseline(words.front(), iso_time(environment.time_of_day()), std::move(invocations), std::move(noise));
  folder.write(baseline, options.writing);
  return print_saved(baseline, folder, environment);
}

int list(const Options& options, const Environment& environment) {
  const auto& o = options.of<BaselineOptions>();
  const Folder folder(o.dir);
  TextTable table({{"name"}, {"saved"}, {"what"}});
  const std::vector<std::string> names = folder.names();
  for (const std::string& name : names) {
    try {
      const Baseline baseline = folder.read(name);
      table.add({name, baseline.created_at, line_of(baseline)});
    } catch (const UsageError& e) {  // an invalid file must not hide the others
      table.add({name, "-", std::string("unreadable: ") + e.what()});
    }
  }
  environment.out << (names.empty() ? fmt::format("no baselines in {}\n", visible(o.dir))
                                    : table.text(console_style(options, Stream::out, environment)));
  return exit_codes::ok;
}

int show(std::span<const std::string> words, const Options& options, const Environment& environment) {
  const auto& o = options.of<BaselineOptions>();
  if (words.size() != 1) throw UsageError("baseline show NAME: one name is needed");
  const Baseline baseline = Folder(o.dir).read(words.front());
  environment.out << fmt::format("{}: {}, saved {}\n", baseline.name, line_of(baseline), visible(baseline.created_at));
  for (const auto& [key, value] : baseline.invocations.front().setup.decisive)
    environment.out << fmt::format("  {} = {}\n", visible(key), visible(value));
  const std::optional<Noise> noise = noise_in(baseline);
  TextTable table({{"median", Align::right}, {"noise", Align::right}, {"runs", Align::right}, {"case"}});
  for (const MeasuredCase& one : baseline.invocations.front().cases) {
    const auto known = noise ? noise->cases.find(one.id) : std::map<std::string, CaseNoise>::const_iterator{};
    const bool has_noise = noise && known != noise->cases.end();
    table.add({one.run ? format_time_ns(std::exp(one.run->log_median)) : std::string(name(one.verdict)),
               has_noise ? fmt::format("{:.2f}%", 100.0 * known->second.spread) : "-",
               has_noise ? fmt::format("{}", known->second.runs) : "-", one.id});
  }
  environment.out << "\n" << table.text(console_style(options, Stream::out, environment));
  return exit_codes::ok;
}

int baseline_command(const Options& options, const Environment& environment) {
  const std::vector<std::string> actions{"save", "list", "show", "merge"};
  if (options.arguments.empty()) throw UsageError(fmt::format("baseline needs one of {}", joined(actions)));
  const std::string& action = options.arguments.front();
  const std::span<const std::string> rest = std::span(options.arguments).subspan(1);
  if (action == "save") return save(rest, options, environment);
  if (action == "merge") return merge(rest, options, environment);
  if (action == "list") return list(options, environment);
  if (action == "show") return show(rest, options, environment);
  throw UsageError(fmt::format("baseline: '{}' is not one of {}{}", visible(action), joined(actions),
                               did_you_mean(action, actions)));
}

std::vector<Flag> baseline_flags(std::span<const std::string> /*suites*/) {
  return together(
      under(
          "compare",
          row("--dir", "DIR", "folder of baselines (default: gpubench-baselines)", text(own(&BaselineOptions::dir))),
          row("--noise", "FILE", "calibration of the same set-up, stored with it", text(own(&BaselineOptions::noise))),
          row("--force", "", "replace a baseline of the same name",
              turn_on(in(&Options::writing, &WriteRules::replace)))),
      shared_flags({"--mode"}), several_arguments("", ValueKind::file, {"save", "list", "show", "merge"}));
}

}  // namespace

Verb baseline_verb() {
  return {.name = "baseline",
          .arguments = "save NAME REPORT... | list | show NAME | merge NAME FROM...",
          .summary = "store reports to compare later runs with",
          .examples = R"(  gpubench baseline save main run1.json run2.json run3.json
  gpubench baseline list
  gpubench baseline show main
  gpubench baseline merge both main other
)",
          .flags = baseline_flags,
          .act = baseline_command,
          .options = BaselineOptions{}};
}

}  // namespace gpubench
