#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/plan/names.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

constexpr int widest = 100;

// Width of the text, and start of the right column: further left on narrow terminals.
struct Measure {
  int width = widest;
  int text_column = 26;
};

Measure measure_of(int width) { return {std::min(width, widest), width < 60 ? 8 : 26}; }

// Title and text in two columns, the text wrapped; a long title gets a separate line.
std::string entry(std::string_view title, std::string_view text, const Measure& measure) {
  const std::string head = "  " + fitted(title, measure.width, 2);
  const int column = measure.text_column;
  const bool fits = columns(head) + 2 <= column;
  const std::string before =
      fits ? padded(head, column) : head + "\n" + std::string(static_cast<std::size_t>(column), ' ');
  return before + wrap(text, measure.width, column) + "\n";
}

// Lines of a command and its explanation. Commands are never broken; the explanation moves below if it does not fit.
std::string examples(std::string_view text, const Measure& measure) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::size_t gap = line.find("  ", 2);
    if (columns(line) <= measure.width || gap == std::string_view::npos) {
      out += std::string(line) + "\n";
      continue;
    }
    const std::string_view what = line.substr(std::min(line.find_first_not_of(' ', gap), line.size()));
    out += fmt::format("{}\n      {}\n", line.substr(0, gap), wrap(what, measure.width, 6));
  }
  return out;
}

std::string groups_text(const Verb& verb, const Measure& measure) {
  std::string text;
  const std::vector<Flag> flags = verb.flags({});
  for (const char* group : {"compare", "start", "select", "measure", "check", "output"}) {
    std::string entries;
    for (const Flag& flag : flags) {
      if (flag.group != group || !flag.is_visible()) continue;
      entries +=
          entry(joined(flag.names()) + (flag.type.empty() ? "" : fmt::format(" {}", flag.type)), flag.text, measure);
    }
    if (!entries.empty()) text += fmt::format("{}\n{}\n", group, entries);
  }
  return text;
}

std::string environment_text(const Verb& verb, const Measure& measure) {
  const bool has_colors =
      std::ranges::any_of(verb.flags({}), [](const Flag& one) { return one.long_name == "--color"; });
  return "environment\n" +
         entry("GPUBENCH_<FLAG>",
               "replaces a flag above that is not given: GPUBENCH_TIER=smoke, GPUBENCH_SUITE=gemm,conv; switches are "
               "on or off: GPUBENCH_DRY_RUN=on",
               measure) +
         (has_colors ? entry("NO_COLOR, FORCE_COLOR", "colour off, colour on, unless --color says otherwise", measure)
                     : std::string());
}

std::string exit_codes_text(const Measure& measure) {
  std::string text = "exit codes\n";
  for (const int code : exit_codes::all) text += entry(fmt::format("{}", code), explain_exit_code(code), measure);
  return text;
}

std::string words_text(const Measure& measure) {
  std::string text = "words of the results\n" + entry("case", id_grammar, measure);
  for (const char* flag : {"noisy", "no interval", "severe", "drift"})
    text += entry(flag, meaning_of_flag(flag), measure);
  for (const Verdict verdict : {Verdict::downgraded, Verdict::not_proven, Verdict::unverified})
    text += entry(name(verdict), meaning_of(verdict), measure);
  return text;
}

std::string heading(const Verb& verb, const Measure& measure) {
  constexpr int indent = 4;
  std::string text = fitted(fmt::format("usage: gpubench {} {}", verb.name, verb.arguments), measure.width, indent) +
                     "\n" + fitted(verb.summary, measure.width, 0) + "\n";
  if (!verb.description.empty()) text += fitted(verb.description, measure.width, 0) + "\n";
  return text + "\n";
}

std::string verb_text(const Verb& verb, const Measure& measure) {
  std::string text = heading(verb, measure) + groups_text(verb, measure);
  if (verb.shows_variables) text += environment_text(verb, measure) + "\n";
  text += "examples\n" + examples(verb.examples, measure);
  if (&verb == &default_verb()) text += "\n" + words_text(measure) + "\n" + exit_codes_text(measure);
  return text + examples(verb.notes, measure);
}

// The flag's brief text, or the first clause of its text.
std::string_view brief_text(const Flag& flag) {
  if (!flag.brief.empty()) return flag.brief;
  const std::string_view text = flag.text;
  return text.substr(0, std::min({text.find("; "), text.find(": "), text.find(" (default")}));
}

// At most eight: the verb's own flags (only those with a brief text, if any has one), then those of run with a brief
// text. A flag with another brief text than run's counts as own.
std::vector<Flag> common_flags(const Verb& verb) {
  constexpr std::size_t most = 8;
  std::vector<Flag> flags = verb.flags({});
  std::erase_if(flags, [](const Flag& flag) { return !flag.is_visible(); });
  if (flags.size() <= most) return flags;
  const Verb& run = default_verb();
  const std::vector<Flag> of_run = run.flags({});
  const auto is_own = [&](const Flag& flag) {
    return &verb != &run && std::ranges::none_of(of_run, [&flag](const Flag& one) {
      return one.long_name == flag.long_name && one.brief == flag.brief;
    });
  };
  const auto is_brief = [](const Flag& flag) { return !flag.brief.empty(); };
  const bool chosen = std::ranges::any_of(flags, [&](const Flag& flag) { return is_own(flag) && is_brief(flag); });
  std::vector<Flag> common;
  std::ranges::copy_if(flags, std::back_inserter(common),
                       [&](const Flag& flag) { return is_own(flag) && (is_brief(flag) || !chosen); });
  std::ranges::copy_if(flags, std::back_inserter(common),
                       [&](const Flag& flag) { return is_brief(flag) && !is_own(flag); });
  common.resize(std::min(common.size(), most));
  return common;
}

std::string short_verb_text(const Verb& verb, const Measure& measure) {
  std::string text = heading(verb, measure) + "flags\n";
  for (const Flag& flag : common_flags(verb))
    text += entry(joined(flag.names()) + (flag.type.empty() ? "" : fmt::format(" {}", flag.type)), brief_text(flag),
                  measure);
  std::string_view lines = verb.examples;
  const std::size_t second = lines.find('\n', lines.find('\n') + 1);
  text += "\nexamples\n" + examples(lines.substr(0, second == std::string_view::npos ? second : second + 1), measure);
  return text + "\n" +
         fitted(fmt::format("gpubench {} --help-all shows all flags and examples", verb.name), measure.width, 0) + "\n";
}

constexpr std::string_view one_line_description =
    "gpubench: a benchmark and conformance suite for GPU training. No number without a verdict.";
constexpr std::string_view how_to_call = "usage: gpubench [VERB] [flags]        without a verb: run";

std::string full_overview(const Measure& measure) {
  std::string text =
      fitted(one_line_description, measure.width, 0) + "\n" + fitted(how_to_call, measure.width, 4) + "\n\nverbs\n";
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) text += entry(fmt::format("{} {}", verb.name, verb.arguments), verb.summary, measure);
  }
  return text + "\nflags of run\n\n" + groups_text(default_verb(), measure) +
         environment_text(default_verb(), measure) + "\n" + "examples\n" + examples(default_verb().examples, measure) +
         "\n" + words_text(measure) + "\n" + exit_codes_text(measure);
}

std::string overview(const Measure& measure) {
  const Measure narrow{measure.width, std::min(measure.text_column, 15)};  // the longest verb and two blanks
  std::string text =
      fitted(one_line_description, measure.width, 0) + "\n" + fitted(how_to_call, measure.width, 4) + "\n\nverbs\n";
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) text += entry(verb.name, verb.summary, narrow);
  }
  return text + "\nexamples\n" + examples(first_examples(), measure) + "\n" +
         fitted("gpubench VERB --help shows the flags of a verb, gpubench --help-all everything", measure.width, 0) +
         "\n";
}

const Verb& shown_verb(std::string_view verb) {
  if (const Verb* found = find_verb(verb); found != nullptr && !found->hidden) return *found;
  const std::vector<std::string> names = verb_names();
  throw UsageError(
      fmt::format("help: unknown verb '{}'; verbs: {}{}", visible(verb), joined(names), did_you_mean(verb, names)));
}

}  // namespace

std::string short_help(int width) {
  const Measure measure = measure_of(width);
  return fitted(one_line_description, measure.width, 0) + "\n\n" + examples(first_examples(), measure) + "\n" +
         fitted("gpubench --help lists the verbs; without any argument nothing runs (exit 2)", measure.width, 0) + "\n";
}

std::string help_text(std::string_view verb, int width) {
  constexpr std::ptrdiff_t screen = 40;
  const Measure measure = measure_of(width);
  if (verb.empty()) return overview(measure);
  const Verb& info = shown_verb(verb);
  std::string all = verb_text(info, measure);
  return std::ranges::count(all, '\n') <= screen ? all : short_verb_text(info, measure);
}

std::string full_help_text(std::string_view verb, int width) {
  const Measure measure = measure_of(width);
  return verb.empty() ? full_overview(measure) : verb_text(shown_verb(verb), measure);
}

std::string_view first_examples() {
  return R"(  gpubench --suite all --tier smoke   every suite, in seconds: are results correct?
  gpubench --suite all                the default tier, in minutes: results to keep
  gpubench list suites                suites and workloads
)";
}

}  // namespace gpubench
