#include "harness/cli/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "harness/cli/choice_words.h"
#include "harness/cli/flags.h"
#include "harness/cli/words.h"
#include "harness/compare/comparison_text.h"

namespace gpubench {
namespace {

std::vector<std::int64_t> whole_list(std::string_view flag, std::string_view words, std::int64_t low) {
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t comma = words.find(',');
    values.push_back(whole<std::int64_t>(flag, words.substr(0, comma), low));
    if (comma == std::string_view::npos) return values;
    words.remove_prefix(comma + 1);
  }
}

std::pair<std::string, std::vector<std::int64_t>> axis(const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw UsageError(fmt::format("{}: '{}' is not NAME=N,... as in --axis k=256,512", flag, visible(word)));
  }
  return {word.substr(0, equals), whole_list(flag + " " + word.substr(0, equals), word.substr(equals + 1), 0)};
}

ExportFormat export_format(const std::string& flag, const std::string& word) {
  std::vector<std::string> names;
  for (const ExportFormat format : export_formats()) {
    if (word == name(format)) return format;
    names.emplace_back(name(format));
  }
  if (word.empty()) throw UsageError(fmt::format("export needs {}, one of {}", flag, joined(names)));
  throw UsageError(
      fmt::format("{}: '{}' is not one of {}{}", flag, visible(word), joined(names), did_you_mean(word, names)));
}

Slowdown slowdown_of(const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(fmt::format("{}: '{}' is not OP=PERCENT as in gemm=25%", flag, visible(word)));
  return {word.substr(0, equals), share_of(flag.c_str(), word.substr(equals + 1))};
}

InjectedError error_of(const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(fmt::format("{}: '{}' is not OP=KIND as in gemm=bit", flag, visible(word)));
  return {word.substr(0, equals), choose(flag, word.substr(equals + 1), error_words)};
}

// "A=driver 580": a letter of one of several reports, each at most once.
void add_label(Options& o, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string letter = word.substr(0, equals);
  if (equals == std::string::npos || equals + 1 == word.size())
    throw UsageError(fmt::format("--label: '{}' is no label such as A=before", visible(word)));
  if (o.files.size() < 2) throw UsageError("--label: a report alone has no letter; give two reports or more");
  std::vector<std::string> letters;
  for (std::size_t side = 0; side < o.files.size(); ++side) letters.push_back(side_letter(side));
  if (std::find(letters.begin(), letters.end(), letter) == letters.end())
    throw UsageError(fmt::format("--label: no report is called '{}'; there are {}", visible(letter), joined(letters)));
  if (!o.labels.emplace(letter, word.substr(equals + 1)).second)
    throw UsageError(fmt::format("--label: {} is named twice", letter));
}

double price_of(const std::string& flag, const std::string& word) {
  constexpr double most = 1e9;
  double price = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), price);
  if (error != std::errc() || end != word.data() + word.size() || !(price > 0.0 && price <= most))
    throw UsageError(fmt::format("{}: '{}' is no price such as 2.49", flag, visible(word)));
  return price;
}

// Seconds, 0 for off; nothing for auto.
std::optional<double> deadline_of(const std::string& flag, const std::string& word) {
  constexpr double most_s = 30.0 * 24.0 * 3600.0;
  if (word == "auto") return std::nullopt;
  if (word == "off") return 0.0;
  double seconds = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seconds);
  if (error != std::errc() || end != word.data() + word.size() || !(seconds > 0.0 && seconds <= most_s))
    throw UsageError(fmt::format("{}: '{}' is not auto, off or a number of seconds such as 120", flag, visible(word)));
  return seconds;
}

// Permissions as chmod takes them in digits. Whoever writes a file must be able to read it again.
unsigned mode_of(const std::string& flag, const std::string& word) {
  constexpr unsigned owner_reads_and_writes = 0600, most = 0777;
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), mode, 8);
  if (error != std::errc() || end != word.data() + word.size() || mode > most ||
      (mode & owner_reads_and_writes) != owner_reads_and_writes)
    throw UsageError(fmt::format("{}: '{}' is no mode from 0600 to 0777 such as 0644", flag, visible(word)));
  return mode;
}

// "gpu" is what everybody else calls it; "gpu:1" as well.
std::string device_of(const std::string& word) {
  const bool is_gpu = word == "gpu" || word.starts_with("gpu:");
  return is_gpu ? "cuda" + word.substr(3) : word;
}

void check_files(const Options& o) {
  if (o.verb == Verb::report_page && o.files.empty()) throw UsageError("report needs at least one report to read");
  if (o.verb == Verb::report_page && o.files.size() > 1 && (o.junit || o.csv || o.markdown))
    throw UsageError(fmt::format("{} takes one report, {} were given",
                                 o.junit ? "--junit"
                                 : o.csv ? "--csv"
                                         : "--markdown",
                                 o.files.size()));
  if (o.verb == Verb::validate && o.files.empty()) throw UsageError("validate needs at least one report to read");
  if (o.verb == Verb::export_report && o.files.size() != 1)
    throw UsageError(fmt::format("export takes one report, {} were given", o.files.size()));
}

void check_worker(const Options& o) {
  const bool both = o.is_worker() && o.worker_output >= 0;
  const bool none = !o.is_worker() && o.worker_output < 0;
  if (o.verb == Verb::run && !both && !none) throw UsageError("--worker-input and --worker-output belong together");
}

// What the user wrote, and where: a message names the variable where that stood in for the flag.
struct Given {
  RawOptions raw;
  std::vector<std::pair<std::string, std::string>> from_environment;
  std::vector<std::string> own_words;

  [[nodiscard]] std::string source(const std::string& flag) const {
    const std::string variable = variable_of(flag);
    const bool from_variable = std::any_of(from_environment.begin(), from_environment.end(),
                                           [&variable](const auto& one) { return one.first == variable; });
    return from_variable ? variable : flag;
  }
};

// The words between commas, of all times that the flag was given.
std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> words;
  for (const std::string& list : lists) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      words.push_back(list.substr(at, comma - at));
      at = comma + 1;
    }
  }
  return words;
}

Options checked(Verb verb, const Given& given) {
  const RawOptions& raw = given.raw;
  const auto from = [&given](const char* flag) { return given.source(flag); };
  Options o;
  o.from_environment = given.from_environment;
  o.verb = verb;
  o.selection.suites = split(raw.suites);
  o.selection.filters = raw.filters;
  o.selection.excludes = raw.excludes;
  for (const std::string& word : split(raw.precisions))
    o.selection.precisions.push_back(unaliased(word, precision_aliases));
  for (const std::string& batch : split(raw.batches))
    o.selection.batches.push_back(whole<std::int64_t>(from("--batch"), batch, 1));
  for (const std::string& word : raw.axes) o.selection.axes.push_back(axis(from("--axis"), word));
  for (const std::string& word : split(raw.launches)) {
    const LaunchMode mode = choose(from("--launch"), word, launch_words);
    if (std::find(o.selection.launches.begin(), o.selection.launches.end(), mode) == o.selection.launches.end())
      o.selection.launches.push_back(mode);
  }
  for (const std::string& word : split(raw.ranks)) {
    const int ranks = whole<int>(from("--ranks"), word, 1);
    if (std::find(o.selection.ranks.begin(), o.selection.ranks.end(), ranks) == o.selection.ranks.end())
      o.selection.ranks.push_back(ranks);
  }
  o.selection.virtual_ranks = raw.virtual_ranks;
  o.selection.fuse = choose(from("--fuse"), raw.fuse, switch_words);
  if (!raw.tier.empty()) o.tier = choose(from("--tier"), raw.tier, tier_words);
  if (!raw.preset.empty()) o.preset = choose(from("--preset"), unaliased(raw.preset, preset_aliases), preset_words);
  if (!raw.slowdown.empty()) o.slowdown = slowdown_of(from("--inject-slowdown"), raw.slowdown);
  if (!raw.error.empty()) o.error = error_of(from("--inject-error"), raw.error);
  o.device = device_of(raw.device);
  o.seed = whole<std::uint64_t>(from("--seed"), raw.seed, 0);
  o.check = choose(from("--check"), raw.check, check_words);
  o.isolate = choose(from("--isolate"), raw.isolate, switch_words);
  o.deadline_s = deadline_of(from("--deadline"), raw.deadline);
  o.dry_run = raw.dry_run;
  o.deterministic = raw.deterministic;
  o.energy = raw.energy;
  o.breakdown = choose(from("--breakdown"), raw.breakdown, switch_words);
  o.trust_libraries = raw.trust_libraries;
  if (!raw.locked_clock.empty()) o.locked_clock_mhz = whole<int>(from("--locked-clock"), raw.locked_clock, 1);
  if (!raw.pin.empty()) o.pin = raw.pin;
  if (!raw.like.empty()) o.like = raw.like;
  if (!raw.tuning_cache.empty()) o.tuning_cache = raw.tuning_cache;
  if (!raw.out.empty()) o.out = raw.out;
  if (!raw.json.empty()) o.json = raw.json;
  if (!raw.junit.empty()) o.junit = raw.junit;
  if (!raw.csv.empty()) o.csv = raw.csv;
  if (!raw.markdown.empty()) o.markdown = raw.markdown;
  if (!raw.resume.empty()) o.resume = raw.resume;
  o.own_words = given.own_words;
  o.anonymize = raw.anonymize;
  if (!raw.anonymize_key.empty()) o.anonymize_key = raw.anonymize_key;
  if (o.anonymize_key && !o.anonymize)
    throw UsageError(fmt::format("{}: nothing is made anonymous; add --anonymize", from("--anonymize-key")));
  o.writing.replace = raw.force;
  if (!raw.mode.empty()) o.writing.mode = mode_of(from("--mode"), raw.mode);
  o.github = choose(from("--github"), raw.github, github_words);
  o.color = choose(from("--color"), raw.color, color_words);
  o.progress = choose(from("--progress"), raw.progress, progress_words);
  o.quiet = raw.quiet;
  o.verbosity = raw.verbose ? 1 : 0;
  if (!raw.worker_input.empty()) o.worker_input = whole<int>("--worker-input", raw.worker_input, 0);
  if (!raw.worker_output.empty()) o.worker_output = whole<int>("--worker-output", raw.worker_output, 0);
  check_worker(o);
  o.subject = raw.subject;
  o.list_json = choose(from("--format"), raw.format, list_format_words);
  o.compare = checked_compare(verb, raw.compare);
  o.files = raw.files;
  o.output = raw.output;
  o.svg = raw.svg;
  if (!raw.price.empty()) o.price_per_hour = price_of(from("--price-per-hour"), raw.price);
  for (const std::string& word : raw.labels) add_label(o, word);
  if (verb == Verb::export_report) o.export_format = export_format(from("--format"), raw.export_format);
  if (verb == Verb::completion) o.shell = choose("completion", raw.subject, shell_words);
  check_files(o);
  return o;
}

using Names = std::span<const std::string>;

bool is_suite(const std::string& word, Names suites) {
  return word == "all" || std::find(suites.begin(), suites.end(), word) != suites.end();
}

// Where a word that is no verb belongs; "" where that is not known. `words`: it and those after it.
std::string flag_for(Names words, Names suites) {
  const std::string& word = words.front();
  if (is_suite(word, suites)) {
    std::vector<std::string> named;
    for (const std::string& one : words) {
      if (!is_suite(one, suites)) break;
      named.push_back(one);
    }
    return fmt::format("it is a suite: gpubench --suite {}", joined(named, ","));
  }
  for (const auto& [text, tier] : tier_words) {
    if (word == text) return fmt::format("it is a tier: gpubench --tier {}", word);
  }
  if (is_suite(word.substr(0, word.find('/')), suites))
    return fmt::format("of cases: gpubench --filter '{}', or gpubench list {}", visible(word), visible(word));
  return "";
}

const VerbInfo& verb_named(Names words, Names suites) {
  const std::string& word = words.front();
  std::vector<std::string> names;
  for (const VerbInfo& verb : verbs()) {
    if (verb.name == word) return verb;
    if (!verb.hidden) names.emplace_back(verb.name);
  }
  if (const std::string belongs = flag_for(words, suites); !belongs.empty())
    throw UsageError(fmt::format("'{}' is no verb; {}", visible(word), belongs));
  throw UsageError(
      fmt::format("unknown verb '{}'; verbs: {}{}", visible(word), joined(names), did_you_mean(word, names)));
}

[[noreturn]] void refuse_extra(const CLI::App& app, const RawOptions& raw, const std::string& word, Verb verb,
                               Names suites) {
  if (!word.starts_with("-")) {
    if (!raw.suites.empty() && is_suite(word, suites)) {
      throw UsageError(fmt::format("unexpected argument '{}': commas stand between suites: --suite {},{}",
                                   visible(word), visible(joined(raw.suites, ",")), visible(word)));
    }
    throw UsageError(fmt::format("unexpected argument '{}': {} takes {}", visible(word), name(verb),
                                 verb == Verb::run ? "flags only; a verb comes first" : "no such argument"));
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& flag : option->get_lnames()) flags.push_back("--" + flag);
  }
  const std::string flag = word.substr(0, word.find('='));
  throw UsageError(fmt::format("unknown flag '{}' of {}{}; see gpubench help {}", visible(flag), name(verb),
                               did_you_mean(flag, flags), name(verb)));
}

// An empty value is what a script passes for a variable that is not set: never a wish.
void refuse_empty_values(const CLI::App& app, Verb verb, const Given& given) {
  for (const CLI::Option* option : app.get_options()) {
    const bool is_list = option->get_type_name().ends_with(",...");
    const bool is_flag = !option->get_lnames().empty();
    for (const std::string& value : option->results()) {
      const bool gap = is_list && ("," + value + ",").find(",,") != std::string::npos;
      if (!value.empty() && !gap) continue;
      if (!is_flag)
        throw UsageError(fmt::format("{}: an argument is empty; expected {}", name(verb),
                                     option->get_type_name().empty() ? "a word" : option->get_type_name()));
      throw UsageError(fmt::format("{}: '{}' has an empty value; expected {}, or leave the flag out",
                                   given.source("--" + option->get_lnames().front()), visible(value),
                                   option->get_type_name()));
    }
  }
}

// What a run that goes on needs of the command line before: not where it writes, nor what is remembered where.
std::vector<std::string> own_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (option->get_lnames().empty()) continue;
    const std::string flag = "--" + option->get_lnames().front();
    const bool measures = group == "select" || group == "measure" || group == "check";
    if (!measures && flag != "--anonymize") continue;  // what is half in names stays so
    if (flag == "--dry-run" || flag == "--tuning-cache") continue;
    for (const std::string& value : option->results()) {
      words.push_back(flag);
      if (option->get_expected_min() > 0) words.push_back(value);
    }
  }
  return words;
}

// CLI11 would take the next word for the value of "--json=".
void refuse_empty_assignments(const CLI::App& app, Names words) {
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word.find('=') + 1 != word.size()) continue;
    const std::string flag = word.substr(0, word.size() - 1);
    if (const CLI::Option* option = app.get_option_no_throw(flag); option != nullptr)
      throw UsageError(fmt::format("{}: '' has an empty value; expected {}, or leave the flag out", flag,
                                   option->get_expected_min() == 0 ? "no value" : option->get_type_name()));
  }
}

// CLI11's own sentences are kept; its many exit codes all mean "usage" here.
Given parse_flags(Verb verb, Names words, const Variables& variables, Names suites) {
  Given given;
  CLI::App app;
  add_flags(app, verb, given.raw);
  app.allow_extras();
  refuse_empty_assignments(app, words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
    given.own_words = own_words(app);
    given.from_environment = apply_variables(app, variables);
  } catch (const CLI::ParseError& e) {
    throw UsageError(visible(e.what()));
  }
  if (const std::vector<std::string> extra = app.remaining(); !extra.empty())
    refuse_extra(app, given.raw, extra.front(), verb, suites);
  refuse_empty_values(app, verb, given);
  return given;
}

bool contains(std::span<const std::string> words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  });
}

}  // namespace

Options parse_options(std::span<const std::string> words, const Variables& variables,
                      std::span<const std::string> suites) {
  const bool has_verb = !words.empty() && !words.front().starts_with("-");
  if (contains(words, {"--help", "-h"})) {
    Options help;
    help.verb = Verb::help;
    if (has_verb) help.subject = words.front();
    return help;
  }
  if (contains(words, {"--version"})) {
    Options version;
    version.verb = Verb::version;
    return version;
  }
  const Verb verb = has_verb ? verb_named(words, suites).verb : Verb::run;
  const Given given = parse_flags(verb, words.subspan(has_verb ? 1 : 0), variables, suites);
  Options options = checked(verb, given);
  options.asks_for_nothing = words.empty() && given.from_environment.empty();
  return options;
}

std::string_view name(Verb verb) {
  const auto found =
      std::find_if(verbs().begin(), verbs().end(), [&](const VerbInfo& info) { return info.verb == verb; });
  return found == verbs().end() ? "?" : found->name;
}

std::string_view name(CheckMode mode) {
  switch (mode) {
    case CheckMode::off: return "off";
    case CheckMode::sample: return "sample";
    case CheckMode::full: return "full";
  }
  return "?";
}

}  // namespace gpubench
