#include "harness/cli/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>

#include "harness/cli/verb.h"

namespace gpubench {
namespace {

void check(Options& o) {
  if (o.run.check == CheckMode::own && o.implementations.empty())
    throw UsageError("--check own: own means the ops of an implementation under test; add --impl FILE");
  if (o.anonymize_key && !o.anonymize) throw UsageError("--anonymize-key: has no effect alone; add --anonymize");
  o.verb->check(o);
}

using Names = std::span<const std::string>;

bool is_suite(const std::string& word, Names suites) {
  return word == "all" || std::find(suites.begin(), suites.end(), word) != suites.end();
}

// The flag that a word, which is not a verb, was probably meant for; "" if unknown. `words`: it and those after it.
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
  if (std::ranges::count(enum_names<Tier>, word) > 0) return fmt::format("it is a tier: gpubench --tier {}", word);
  if (is_suite(word.substr(0, word.find('/')), suites))
    return fmt::format("of cases: gpubench --filter '{}', or gpubench list {}", visible(word), visible(word));
  return "";
}

const Verb& verb_named(Names words, Names suites) {
  const std::string& word = words.front();
  if (const Verb* verb = find_verb(word)) return *verb;
  if (const std::string belongs = flag_for(words, suites); !belongs.empty())
    throw UsageError(fmt::format("'{}' is not a verb; {}", visible(word), belongs));
  const std::vector<std::string> names = verb_names();
  throw UsageError(
      fmt::format("unknown verb '{}'; verbs: {}{}", visible(word), joined(names), did_you_mean(word, names)));
}

// A command line parsed by CLI11: each flag of the verb with its words.
class CommandLine {
 public:
  explicit CommandLine(const Verb& verb) : verb_(verb), flags_(verb.flags({})), values_(flags_.size()) {
    app_.set_help_flag();  // --help and -h are handled for all verbs at once, also without a verb
    app_.allow_extras();
    for (const Flag& flag : flags_) options_.push_back(add(flag));
  }

  // Keeps CLI11's messages; all its exit codes become "usage".
  Options parse(Names words, const Variables& variables, Names suites) {
    refuse_empty_assignments(words);
    Options options;
    options.verb = &verb_;
    options.own = verb_.options;
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      app_.parse(std::move(reversed));
      for (std::size_t i = 0; i < flags_.size(); ++i) values_[i] = given(flags_[i], *options_[i]);
      options.own_words = words_in(use::journal);
      // --tuning-cache DIR is dropped, but off is kept.
      if (was_given("--tuning-cache", "off"))
        options.own_words.insert(options.own_words.end(), no_tuning_cache.begin(), no_tuning_cache.end());
      options.run_flags = words_in(use::runs);
      options.shared_settings = shared_settings();
      options.from_environment = apply(variables);
      options.rerun_words = words_in(use::rerun);
    } catch (const CLI::ParseError& e) {
      throw UsageError(visible(e.what()));
    }
    if (const std::vector<std::string> extra = app_.remaining(); !extra.empty()) refuse_extra(extra.front(), suites);
    refuse_empty_values(options);
    for (std::size_t i = 0; i < flags_.size(); ++i) set(options, flags_[i], values_[i]);
    return options;
  }

 private:
  CLI::Option* add(const Flag& flag) {
    const std::string names = joined(flag.names(), ",");
    CLI::Option* option = nullptr;
    if (flag.takes == Takes::nothing)
      option = app_.add_flag(names, switches_.emplace_back(), flag.text);
    else if (flag.takes == Takes::one)
      option = app_.add_option(names, single_.emplace_back(), flag.text)
                   ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    else
      option = app_.add_option(names, several_.emplace_back(), flag.text);
    if (flag.takes == Takes::each || flag.takes == Takes::list) option->allow_extra_args(false);
    if (flag.takes != Takes::nothing) option->type_name(std::string(flag.type));
    return option->group(flag.is_visible() ? std::string(flag.group) : "");
  }

  // The source of a value in messages: the flag, or the variable that replaced it.
  static std::string source(const Options& options, const Flag& flag) {
    const std::string variable = variable_of(flag.long_name);
    const bool from_variable = std::any_of(options.from_environment.begin(), options.from_environment.end(),
                                           [&variable](const auto& one) { return one.first == variable; });
    return from_variable ? variable : flag.is_argument() ? std::string(options.verb->name) : flag.long_name;
  }

  // The words of a flag; a switch has none.
  // Of a repeated flag with one value the last counts, as when a worker's --device follows the user's.
  static std::vector<std::string> given(const Flag& flag, const CLI::Option& option) {
    if (flag.takes == Takes::one && option.count() > 0) return {option.results().back()};
    if (flag.takes != Takes::nothing || option.count() == 0) return option.results();
    return option.as<bool>() ? std::vector<std::string>{"on"} : std::vector<std::string>{};
  }

  // Sets flags that were not given from variables. Returns the variables used.
  std::vector<std::pair<std::string, std::string>> apply(const Variables& variables) {
    std::vector<std::pair<std::string, std::string>> applied;
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      const Flag& flag = flags_[i];
      if (!variables || !flag.is_visible() || options_[i]->count() > 0) continue;
      const std::string variable = variable_of(flag.long_name);
      const std::string value = variables(variable.c_str());
      if (value.empty()) continue;
      applied.emplace_back(variable, value);
      if (flag.takes != Takes::nothing || switched_on(variable, value)) values_[i] = {value};
    }
    return applied;
  }

  static void set(Options& options, const Flag& flag, const std::vector<std::string>& given) {
    if (given.empty()) return;
    const std::string from = source(options, flag);
    const auto words = std::span(given).last(flag.takes == Takes::one ? 1 : given.size());
    for (const std::string& word : words) {
      if (flag.takes != Takes::list) {
        flag.set(options, from, word);
        continue;
      }
      for (const std::string& one : split_at_commas(word)) flag.set(options, from, one);
    }
  }

  // An empty value is usually an unset variable in a script, so it is an error.
  void refuse_empty_values(const Options& options) const {
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      const Flag& flag = flags_[i];
      for (const std::string& value : values_[i]) {
        const bool gap = flag.type.ends_with(",...") && ("," + value + ",").find(",,") != std::string::npos;
        if (!value.empty() && !gap) continue;
        if (flag.is_argument())
          throw UsageError(fmt::format("{}: an argument is empty; expected {}", verb_.name,
                                       flag.type.empty() ? "a word" : flag.type));
        throw UsageError(fmt::format("{}: '{}' has an empty value; expected {}, or leave the flag out",
                                     source(options, flag), visible(value), flag.type));
      }
    }
  }

  // CLI11 would take the next word as the value of "--json=".
  void refuse_empty_assignments(Names words) const {
    for (const std::string& word : words) {
      for (const Flag& flag : flags_) {
        const std::vector<std::string> names = flag.names();
        if (word.starts_with("--") && word.ends_with("=") &&
            std::find(names.begin(), names.end(), word.substr(0, word.size() - 1)) != names.end())
          throw UsageError(fmt::format("{}: '' has an empty value; expected {}, or leave the flag out",
                                       word.substr(0, word.size() - 1),
                                       flag.takes == Takes::nothing ? "no value" : flag.type));
      }
    }
  }

  [[nodiscard]] bool was_given(std::string_view flag, std::string_view value) const {
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (flags_[i].long_name == flag) return !values_[i].empty() && values_[i].back() == value;
    }
    return false;
  }

  [[nodiscard]] std::vector<std::string> words_in(unsigned use) const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (!flags_[i].has(use)) continue;
      // The new run inherits the variables, so a switch that was turned off must be repeated.
      const bool is_off = flags_[i].takes == Takes::nothing && values_[i].empty() && options_[i]->count() > 0;
      if (use == use::runs && is_off) words.push_back(flags_[i].long_name + "=false");
      for (const std::string& value : values_[i]) {
        words.push_back(flags_[i].long_name);
        if (flags_[i].takes != Takes::nothing) words.push_back(value);
      }
    }
    return words;
  }

  [[nodiscard]] std::map<std::string, std::string> shared_settings() const {
    std::map<std::string, std::string> settings;
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      const Flag& flag = flags_[i];
      if (!flag.has(use::processes) || values_[i].empty()) continue;
      settings[flag.long_name] = flag.takes == Takes::nothing ? ""
                                 : flag.takes == Takes::one   ? values_[i].back()
                                                              : joined(values_[i], ",");
    }
    return settings;
  }

  static std::string verbs_with(const std::string& flag, Names suites) {
    std::vector<std::string> having;
    for (const Verb& verb : verbs()) {
      const std::vector<Flag> flags = verb.flags(suites);
      const bool has = std::any_of(flags.begin(), flags.end(), [&](const Flag& one) {
        const std::vector<std::string> names = one.names();
        return one.is_visible() && std::find(names.begin(), names.end(), flag) != names.end();
      });
      if (has && !verb.hidden) having.emplace_back(verb.name);
    }
    return having.empty() ? "" : fmt::format("; {} {} it", joined(having), having.size() == 1 ? "has" : "have");
  }

  [[noreturn]] void refuse_extra(const std::string& word, Names suites) const {
    if (!word.starts_with("-")) {
      const CLI::Option* chosen = app_.get_option_no_throw("--suite");
      if (chosen != nullptr && chosen->count() > 0 && is_suite(word, suites)) {
        throw UsageError(fmt::format("unexpected argument '{}': separate suites with commas: --suite {},{}",
                                     visible(word), visible(joined(chosen->results(), ",")), visible(word)));
      }
      throw UsageError(fmt::format("unexpected argument '{}': {} takes {}", visible(word), verb_.name,
                                   &verb_ == &default_verb() ? "flags only; a verb comes first" : "no such argument"));
    }
    std::vector<std::string> known;
    for (const Flag& flag : flags_) {
      if (!flag.is_visible()) continue;
      for (const std::string& one : flag.names()) {
        if (one.starts_with("--")) known.push_back(one);
      }
    }
    const std::string flag = word.substr(0, word.find('='));
    std::string hint = did_you_mean(flag, known);
    if (hint.empty()) hint = verbs_with(flag, suites);
    throw UsageError(fmt::format("unknown flag '{}' of {}{}; see gpubench {} --help-all", visible(flag), verb_.name,
                                 hint, verb_.name));
  }

  const Verb& verb_;
  std::vector<Flag> flags_;
  CLI::App app_;
  std::vector<CLI::Option*> options_;
  std::vector<std::vector<std::string>> values_;  // per flag, from the command line or its variable
  // CLI11 writes values here; they are read from its options.
  std::deque<bool> switches_;
  std::deque<std::string> single_;
  std::deque<std::vector<std::string>> several_;
};

bool contains(std::span<const std::string> words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
  });
}

}  // namespace

Options parse_options(std::span<const std::string> words, const Variables& variables,
                      std::span<const std::string> suites) {
  const bool has_verb = !words.empty() && !words.front().starts_with("-");
  if (contains(words, {"--help", "-h", "--help-all"})) {
    Options help;
    help.verb = find_verb("help");
    help.own = HelpOptions{contains(words, {"--help-all"})};
    if (has_verb) help.subject = words.front();
    return help;
  }
  if (contains(words, {"--version"})) {
    Options version;
    version.verb = find_verb("version");
    return version;
  }
  const Verb& verb = has_verb ? verb_named(words, suites) : default_verb();
  Options options = CommandLine(verb).parse(words.subspan(has_verb ? 1 : 0), variables, suites);
  check(options);
  options.words.assign(words.begin(), words.end());
  options.is_empty_command = words.empty() && options.from_environment.empty();
  return options;
}

}  // namespace gpubench
