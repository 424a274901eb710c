#include "harness/cli/variables.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "harness/cli/flags.h"
#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::string_view prefix = "GPUBENCH_";

bool has_variable(const CLI::Option& option) { return !option.get_group().empty() && !option.get_lnames().empty(); }

bool is_switch(const CLI::Option& option) { return option.get_expected_min() == 0; }

// As CLI11 reads the value of a flag.
bool switched_on(const std::string& variable, const std::string& value) {
  if (value == "on" || value == "1") return true;
  if (value == "off" || value == "0") return false;
  throw UsageError(fmt::format("{}: '{}' is not one of on, off, 1, 0", variable, visible(value)));
}

std::vector<std::string> known_variables() {
  std::vector<std::string> known;
  for (const VerbInfo& verb : verbs()) {
    for (const Flag& flag : flags_of(verb.verb)) {
      if (flag.is_visible()) known.push_back(variable_of(flag.long_name));
    }
  }
  return known;
}

}  // namespace

std::string variable_of(const std::string& flag) {
  std::string text(prefix);
  for (const char c : flag.substr(std::min(flag.find_first_not_of('-'), flag.size()))) {
    text += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> apply_variables(CLI::App& app, const Variables& variables) {
  std::vector<std::pair<std::string, std::string>> applied;
  if (!variables) return applied;
  for (CLI::Option* option : app.get_options()) {
    if (!has_variable(*option) || option->count() > 0) continue;
    const std::string variable = variable_of(option->get_lnames().front());
    const std::string value = variables(variable.c_str());
    if (value.empty()) continue;
    applied.emplace_back(variable, value);
    if (is_switch(*option) && !switched_on(variable, value)) continue;
    option->add_result(is_switch(*option) ? "true" : value);
    option->run_callback();
  }
  return applied;
}

std::vector<std::string> unknown_variables(std::span<const std::string> names) {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> words;  // without the prefix, which would make any two of them alike
  for (const std::string& one : known) words.push_back(one.substr(prefix.size()));
  std::vector<std::string> sentences;
  for (const std::string& one : names) {
    if (!one.starts_with(prefix) || std::find(known.begin(), known.end(), one) != known.end()) continue;
    const std::string close = nearest(one.substr(prefix.size()), words);
    sentences.push_back(fmt::format("{} is set, but no flag is called so{}", visible(one),
                                    close.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, close)));
  }
  return sentences;
}

std::string variables_text(std::span<const std::pair<std::string, std::string>> variables) {
  std::vector<std::string> words;
  for (const auto& [variable, value] : variables) words.push_back(fmt::format("{}={}", variable, visible(value)));
  return joined(words, " ");
}

}  // namespace gpubench
