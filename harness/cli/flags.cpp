#include "harness/cli/flags.h"

#include <algorithm>
#include <array>

#include "harness/cli/flag_rows.h"

namespace gpubench {
namespace {

constexpr std::array verb_table{
    VerbInfo{Verb::run, "run", "[flags]", "run cases: check every op, time, check again, report (the default verb)"},
    VerbInfo{Verb::list, "list", "[suites | CASE] [flags]",
             "list cases or suites; one case in detail: tensors, ops, work, memory"},
    VerbInfo{Verb::doctor, "doctor", "[flags]", "what this machine is, what disturbs measuring on it, how to fix that"},
    VerbInfo{Verb::compare, "compare", "A.json B.json... [flags]", "how much faster one side is, with intervals"},
    VerbInfo{Verb::gate, "gate", "--baseline FILE... --candidate FILE... [flags]",
             "whether the candidate became slower or wrong: exit 0 or 1, 4 where that cannot be told"},
    VerbInfo{Verb::calibrate, "calibrate", "[flags, and those of run]",
             "measure the noise from run to run, which gate and compare use (--noise)"},
    VerbInfo{Verb::baseline, "baseline", "save NAME REPORT... | list | show NAME | merge NAME FROM...",
             "keep the runs that later ones are held against"},
    VerbInfo{Verb::validate, "validate", "FILE...", "whether reports hold: their schema, and that what they say fits"},
    VerbInfo{Verb::report_page, "report", "R.json... [flags]",
             "one HTML page with charts and tables, and the charts as files; several reports are compared"},
    VerbInfo{Verb::export_report, "export", "--format FORMAT FILE [flags]", "a report in the format of another tool"},
    VerbInfo{Verb::completion, "completion", "bash|zsh|fish", "a script that completes this command line in a shell"},
    VerbInfo{Verb::help, "help", "[VERB]", "this text, or the flags of one verb"},
    VerbInfo{Verb::version, "version", "", "the version and how it was built"},
    VerbInfo{Verb::man, "man", "", "", true},
    VerbInfo{Verb::probe, "probe", "", "", true},
    VerbInfo{Verb::describe_device, "describe-device", "", "", true},
};

constexpr Word<Shell> shell_words[] = {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};

std::vector<std::string> verb_words() {
  std::vector<std::string> words;
  for (const VerbInfo& verb : verb_table) {
    if (!verb.hidden) words.emplace_back(verb.name);
  }
  return words;
}

// What stands after a verb without a flag.
std::vector<FlagSection> argument_sections() {
  using enum Verb;
  const auto files = [](std::string_view type) { return row("files", type, "", all_of(Takes::many, &Options::files)); };
  const auto words = [](ValueKind value, std::vector<std::string> known) {
    Flag flag = row("words", "", "", all_of(Takes::many, in_compare(&CompareOptions::words), std::move(known)));
    flag.value = value;
    return flag;
  };
  const auto subject = [](std::string_view type, std::vector<std::string> known = {}) {
    return row("subject", type, "", text(&Options::subject, std::move(known)));
  };
  return {
      {{compare}, "", {words(ValueKind::file, {})}},
      {{baseline}, "", {words(ValueKind::file, {"save", "list", "show", "merge"})}},
      {{validate}, "", {files("FILE...")}},
      {{export_report}, "", {files("FILE")}},
      {{report_page}, "", {files("REPORT...")}},
      {{probe}, "", {subject("driver|gpus|libraries")}},
      {{list}, "", {subject("suites|CASE", {"suites"})}},
      {{help}, "", {subject("VERB", verb_words())}},
      {{completion}, "", {row("subject", "bash|zsh|fish", "", choice(&Options::shell, shell_words))}},
  };
}

}  // namespace

std::span<const VerbInfo> verbs() { return verb_table; }

std::vector<std::string> Flag::names() const {
  std::vector<std::string> all{long_name};
  for (const std::string& other : others) all.insert(other.starts_with("--") ? all.end() : all.begin(), other);
  return all;
}

std::vector<Flag> flags_of(Verb verb, std::span<const std::string> suites) {
  std::vector<Flag> all;
  for (const auto& sections : {compare_sections(), run_sections(suites), output_sections(), argument_sections()}) {
    for (const FlagSection& section : sections) {
      if (std::find(section.verbs.begin(), section.verbs.end(), verb) == section.verbs.end()) continue;
      for (const Flag& flag : section.flags) all.emplace_back(flag).group = section.group;
    }
  }
  return all;
}

std::vector<std::string> words_for_runs(const std::vector<std::string>& words) {
  std::vector<std::string> own;  // flags, all with a value
  for (const Flag& flag : flags_of(Verb::calibrate)) {
    if (flag.group != "compare" && flag.long_name != "--mode") continue;
    for (std::string& name : flag.names()) own.push_back(std::move(name));
  }
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string flag = word.substr(0, word.find('='));
    if (i == 0 && word == "calibrate") continue;
    if (word.starts_with("-o") && word.size() > 2) continue;  // its value stands in the same word
    if (std::find(own.begin(), own.end(), flag) == own.end()) {
      kept.push_back(word);
    } else if (flag == word) {
      ++i;  // its value is the next word
    }
  }
  return kept;
}

}  // namespace gpubench
