#include "harness/cli/flag_facts.h"

#include <CLI/CLI.hpp>

#include "harness/cli/choice_words.h"
#include "harness/cli/flags.h"
#include "harness/core/recipe.h"

namespace gpubench {
namespace {

template <class T, std::size_t count>
std::vector<std::string> texts(const Word<T> (&words)[count]) {
  std::vector<std::string> all;
  for (const auto& word : words) all.emplace_back(word.text);
  return all;
}

std::vector<std::string> formats_of(Verb verb) {
  if (verb == Verb::list) return texts(list_format_words);
  if (verb == Verb::compare) return texts(compare_format_words);
  std::vector<std::string> names;
  for (const ExportFormat format : export_formats()) names.emplace_back(name(format));
  return names;
}

std::vector<std::string> words_of(Verb verb, const CLI::Option& option, std::span<const std::string> suites) {
  const std::string& flag = option.get_lnames().front();
  if (option.get_expected_min() == 0) return {};
  if (flag == "tier") return texts(tier_words);
  if (flag == "preset") return texts(preset_words);
  if (flag == "check") return texts(check_words);
  if (flag == "launch") return texts(launch_words);
  if (flag == "color") return texts(color_words);
  if (flag == "progress") return texts(progress_words);
  if (flag == "github") return texts(github_words);
  if (flag == "breakdown" || flag == "fuse" || flag == "isolate") return texts(switch_words);
  if (flag == "device") return {"auto", "cpu", "cuda"};
  if (flag == "tuning-cache") return {"off"};
  if (flag == "deadline") return {"auto", "off"};
  if (flag == "format") return formats_of(verb);
  if (flag == "suite") {
    std::vector<std::string> names(suites.begin(), suites.end());
    names.emplace_back("all");
    return names;
  }
  std::vector<std::string> names;
  if (flag == "precision") {
    for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  }
  return names;
}

ValueKind kind_of(const CLI::Option& option) {
  if (option.get_expected_min() == 0) return ValueKind::none;
  const std::string type = option.get_type_name();
  if (type.starts_with("DIR")) return ValueKind::folder;
  return type.starts_with("FILE") || type.starts_with("REPORT") ? ValueKind::file : ValueKind::text;
}

}  // namespace

std::vector<FlagFacts> flag_facts(Verb verb, std::span<const std::string> suites) {
  RawOptions raw;
  CLI::App app;
  add_flags(app, verb, raw);
  std::vector<FlagFacts> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_lnames().empty()) continue;
    FlagFacts flag;
    flag.long_name = "--" + option->get_lnames().front();
    for (const std::string& name : option->get_snames()) flag.others.push_back("-" + name);
    for (std::size_t i = 1; i < option->get_lnames().size(); ++i) flag.others.push_back("--" + option->get_lnames()[i]);
    flag.type = option->get_expected_min() == 0 ? "" : option->get_type_name();
    flag.description = option->get_description();
    flag.group = option->get_group();
    flag.value = kind_of(*option);
    flag.words = words_of(verb, *option, suites);
    flag.is_list = flag.type.ends_with(",...");
    all.push_back(std::move(flag));
  }
  return all;
}

ArgumentFacts argument_facts(Verb verb) {
  switch (verb) {
    case Verb::compare:
    case Verb::validate:
    case Verb::report_page:
    case Verb::export_report: return {{}, true};
    case Verb::list: return {{"suites"}, false};
    case Verb::baseline: return {{"save", "list", "show", "merge"}, true};
    case Verb::completion: return {texts(shell_words), false};
    case Verb::help: {
      ArgumentFacts facts;
      for (const VerbInfo& info : verbs()) {
        if (!info.hidden) facts.words.emplace_back(info.name);
      }
      return facts;
    }
    default: return {};
  }
}

}  // namespace gpubench
