#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/exit_code.h"
#include "harness/cli/named_sides.h"
#include "harness/cli/terminal.h"
#include "harness/compare/comparison.h"
#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

std::string device_of(const Setup& setup) {
  for (const auto& [key, value] : setup.decisive) {
    if (key == "device.name") return value;
  }
  return setup.device_kind;
}

SideLabel label_of(std::size_t side, const SideFile& file) {
  SideLabel label;
  label.letter = side_letter(side);
  for (const Invocation& invocation : file.invocations) label.files.push_back(invocation.source);
  label.device = device_of(file.invocations.front().setup);
  return label;
}

std::string text_of(const std::vector<LabelledComparison>& all, CompareFormat format, const ConsoleStyle& style) {
  if (format == CompareFormat::json) return dump(comparison_json(all), 1) + "\n";
  if (format == CompareFormat::csv) return comparison_csv(all);
  std::string text;
  for (const LabelledComparison& one : all) {
    text += (text.empty() ? "" : "\n");
    text += format == CompareFormat::table ? comparison_table(one, style) : comparison_markdown(one);
  }
  return text;
}

}  // namespace

std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides) {
  std::vector<SideFile> read;
  try {
    read = read_sides(sides);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  std::vector<Invocation> all;  // a run on both sides is as little a second run as one that is there twice on one
  for (const SideFile& side : read) all.insert(all.end(), side.invocations.begin(), side.invocations.end());
  refuse_repeats(all, sides.size() == 1 ? sides.front().name : "");
  return read;
}

SideFile read_side_of(std::span<const std::string> paths, std::string_view flag) {
  const SidePaths side{flag, paths};
  return std::move(read_named_sides({&side, 1}).front());
}

std::string noise_file_name(const Setup& setup) { return fmt::format("noise-{}.json", fingerprint(setup)); }

Noise noise_at(const std::string& path, const Setup& setup) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? (std::filesystem::path(path) / noise_file_name(setup)).string() : path;
  if (folder && !std::filesystem::exists(file))
    throw UsageError(fmt::format("--noise: {} has no {}: this set-up was not calibrated; run gpubench calibrate",
                                 visible(path), noise_file_name(setup)));
  try {
    return read_noise(file);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--noise: {}", e.what()));
  }
}

int compare_verb(const Options& options, const Environment& environment) {
  const CompareOptions& o = options.compare;
  std::vector<SidePaths> named;
  for (const std::vector<std::string>& paths : o.sides) named.push_back({"", paths});
  const std::vector<SideFile> sides = read_named_sides(named);
  const Setup& setup = sides.front().invocations.front().setup;
  std::optional<Noise> noise = sides.front().noise;
  if (!o.noise.empty()) noise = noise_at(o.noise, setup);
  if (!o.noise.empty() && fingerprint(noise->setup) != fingerprint(setup))
    throw UsageError(fmt::format("--noise: {} was calibrated on another set-up than that of {}", visible(noise->source),
                                 visible(sides.front().invocations.front().source)));
  std::vector<LabelledComparison> all;
  std::size_t cases = 0;
  for (std::size_t side = 1; side < sides.size(); ++side) {
    // What was calibrated here says nothing of another machine.
    const bool applies = noise && fingerprint(noise->setup) == fingerprint(sides[side].invocations.front().setup);
    all.push_back({label_of(0, sides[0]), label_of(side, sides[side]),
                   compare(sides[0].invocations, sides[side].invocations, {o.tau, applies ? &*noise : nullptr})});
    cases += all.back().comparison.cases.size();
  }
  environment.out << text_of(all, o.format, console_style(options, Stream::out, environment));
  if (cases > 0) return exit_codes::ok;
  environment.err << "gpubench: no case passed on both sides: there is nothing to compare\n";
  return exit_codes::not_comparable;
}

}  // namespace gpubench
