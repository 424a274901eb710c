#include "harness/cli/compare_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

#include "harness/cli/choice_words.h"
#include "harness/cli/options.h"
#include "harness/cli/words.h"

namespace gpubench {
namespace {

constexpr int most_runs = 1000;

CLI::Option* one(CLI::App& app, const std::string& flag, std::string& to, const char* type, const char* text) {
  return app.add_option(flag, to, text)
      ->type_name(type)
      ->group("compare")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// Several values after one flag, as a shell's pattern gives them.
CLI::Option* several(CLI::App& app, const std::string& flag, std::vector<std::string>& to, const char* text) {
  return app.add_option(flag, to, text)->type_name("FILE...")->group("compare");
}

void add_words(CLI::App& app, CompareFlags& flags) { app.add_option("words", flags.words, "")->group(""); }

void add_noise_and_tau(CLI::App& app, CompareFlags& flags) {
  one(app, "--noise", flags.noise, "FILE",
      "what gpubench calibrate wrote, or a folder in which it is named after the set-up (noise-FINGERPRINT.json)");
  app.add_option("--tau", flags.tau,
                 "a change that matters (default: 3%); SUITE=10%: for the cases of one suite; may be repeated")
      ->type_name("[SUITE=]PERCENT")
      ->group("compare")
      ->allow_extra_args(false);
}

void add_gate(CLI::App& app, CompareFlags& flags) {
  several(app, "--baseline", flags.baselines, "reports of the old build, or a baseline that was saved");
  several(app, "--candidate", flags.candidates, "reports of the new build");
  add_noise_and_tau(app, flags);
  app.add_flag("--strict", flags.strict, "an inconclusive case does not pass (exit 4)")->group("compare");
  app.add_option("--allow-diff", flags.allowed, "a fact of the set-up that may differ, as the refusal names it")
      ->type_name("KEY")
      ->group("compare")
      ->allow_extra_args(false);
  app.add_flag("--allow-missing", flags.allow_missing, "a case that the candidate lacks passes")->group("compare");
  one(app, "--json", flags.json, "FILE", "all of it as JSON; -: to standard output, and nothing else");
  one(app, "--junit", flags.junit, "FILE", "JUnit XML");
  one(app, "--markdown", flags.markdown, "FILE", "a table for a pull request");
  app.add_flag("--github", flags.github, "annotations, and the table in $GITHUB_STEP_SUMMARY")->group("compare");
}

std::vector<std::vector<std::string>> sides_of(const CompareFlags& flags) {
  const bool lettered = !flags.side_a.empty() || !flags.side_b.empty();
  if (lettered && (flags.side_a.empty() || flags.side_b.empty() || !flags.words.empty()))
    throw UsageError("compare takes either reports, A.json B.json, or both --a FILE... and --b FILE...");
  if (lettered) return {flags.side_a, flags.side_b};
  if (flags.words.size() < 2) throw UsageError("compare needs two reports at least: gpubench compare A.json B.json");
  std::vector<std::vector<std::string>> sides;
  for (const std::string& file : flags.words) sides.push_back({file});
  return sides;
}

// Of two for the same the last one holds.
Tau tau_of(const std::vector<std::string>& words) {
  Tau tau;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const double share = share_of("--tau", equals == word.npos ? word : word.substr(equals + 1));
    (equals == word.npos ? tau.all : tau.by_suite[word.substr(0, equals)]) = share;
  }
  return tau;
}

}  // namespace

double share_of(const char* flag, const std::string& word) {
  const bool percent = word.ends_with("%");
  const char* end = word.data() + word.size() - (percent ? 1 : 0);
  double value = 0.0;
  const auto [last, error] = std::from_chars(word.data(), end, value);
  if (percent) value /= 100.0;
  const bool number = error == std::errc() && last == end;
  if (number && !percent && value >= 1.0 && std::isfinite(value))
    throw UsageError(fmt::format("{0}: '{1}' would be {2:.6g}%: write {1}% or {3:.6g}", flag, visible(word),
                                 100.0 * value, value / 100.0));
  if (!number || !(value > 0.0 && value < 10.0))
    throw UsageError(fmt::format("{}: '{}' is no share such as 3% or 0.03", flag, visible(word)));
  return value;
}

void add_compare_flags(CLI::App& app, Verb verb, CompareFlags& flags) {
  if (verb == Verb::compare) {
    several(app, "--a", flags.side_a, "side A: several runs of one build, or a baseline");
    several(app, "--b", flags.side_b, "side B");
    add_noise_and_tau(app, flags);
    one(app, "--format", flags.form, "FORMAT", "table (default), markdown, json or csv");
    add_words(app, flags);
  } else if (verb == Verb::gate) {
    add_gate(app, flags);
  } else if (verb == Verb::calibrate) {
    one(app, "--runs", flags.runs, "N", "runs of this program, each of its own process (default: 10)");
    several(app, "--from", flags.from, "reports of one build on one set-up; nothing is run");
    one(app, "-o,--output", flags.output, "FILE", "the noise file (default: noise-FINGERPRINT.json)");
    one(app, "--keep", flags.keep, "DIR", "keep the reports of the runs there");
  } else if (verb == Verb::baseline) {
    one(app, "--dir", flags.dir, "DIR", "where baselines are (default: gpubench-baselines)");
    one(app, "--noise", flags.noise, "FILE", "a calibration of the same set-up, to be kept with it");
    app.add_flag("--force", flags.force, "replace a baseline of the same name")->group("compare");
    add_words(app, flags);
  }
}

CompareOptions checked_compare(Verb verb, const CompareFlags& flags) {
  CompareOptions o;
  o.noise = flags.noise;
  o.tau = tau_of(flags.tau);
  o.format = choose("--format", flags.form, compare_format_words);
  o.allowed_differences = flags.allowed;
  o.words = flags.words;
  o.baselines = flags.baselines;
  o.candidates = flags.candidates;
  o.from = flags.from;
  o.junit = flags.junit;
  o.markdown = flags.markdown;
  o.json = flags.json;
  o.output = flags.output;
  o.keep = flags.keep;
  o.dir = flags.dir.empty() ? "gpubench-baselines" : flags.dir;
  o.runs = whole<int>("--runs", flags.runs, 2, most_runs);
  o.strict = flags.strict;
  o.allow_missing = flags.allow_missing;
  o.github = flags.github;
  o.force = flags.force;
  if (verb == Verb::compare) o.sides = sides_of(flags);
  if (verb == Verb::gate && (o.baselines.empty() || o.candidates.empty()))
    throw UsageError("gate needs both --baseline FILE... and --candidate FILE...");
  if (verb == Verb::calibrate && o.from.size() == 1)
    throw UsageError("--from: one report knows nothing of the noise between runs; at least two are needed");
  return o;
}

std::vector<std::string> words_for_runs(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string flag = word.substr(0, word.find('='));
    if (i == 0 && word == "calibrate") continue;
    if (word.starts_with("-o") && word.size() > 2) continue;  // its value stands in the same word
    if (flag == "--runs" || flag == "--output" || flag == "--keep" || flag == "--mode" || flag == "-o") {
      if (flag == word) ++i;  // its value is the next word
      continue;
    }
    kept.push_back(word);
  }
  return kept;
}

}  // namespace gpubench
