#include "harness/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/plan/names.h"

namespace gpubench {

std::vector<std::string> Flag::names() const {
  std::vector<std::string> all{long_name};
  for (const std::string& other : others) all.insert(other.starts_with("--") ? all.end() : all.begin(), other);
  return all;
}

PartedWords parted(std::string_view verb, const std::vector<std::string>& own_words, bool (*taken)(const Flag&)) {
  const std::vector<Flag> flags = flags_of(verb);
  PartedWords all;
  for (std::size_t i = 0; i < own_words.size(); ++i) {
    const auto flag = std::ranges::find(flags, own_words[i], &Flag::long_name);
    std::vector<std::string>& place = flag != flags.end() && taken(*flag) ? all.taken : all.others;
    place.push_back(own_words[i]);
    if (flag != flags.end() && flag->takes != Takes::nothing && i + 1 < own_words.size())
      place.push_back(own_words[++i]);
  }
  return all;
}

namespace {

// "gemm=25%": the text on both sides of the sign; the first part must not be empty.
std::pair<std::string, std::string> assignment(std::string_view flag, const std::string& word, const char* expected) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(fmt::format("{}: '{}' is not {}", flag, visible(word), expected));
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace

std::size_t choose(std::string_view flag, const std::string& word, const std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw UsageError(
      fmt::format("{}: '{}' is not one of {}{}", flag, visible(word), joined(known), did_you_mean(word, known)));
}

std::vector<std::string> split_at_commas(std::string_view list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

double share_of(std::string_view flag, const std::string& word) {
  const bool percent = word.ends_with("%");
  const std::optional<double> typed = number<double>(std::string_view(word).substr(0, word.size() - (percent ? 1 : 0)));
  if (typed && !percent && *typed >= 1.0 && std::isfinite(*typed))
    throw UsageError(fmt::format("{0}: '{1}' would be {2:.6g}%: write {1}% or {3:.6g}", flag, visible(word),
                                 100.0 * *typed, *typed / 100.0));
  const double share = typed.value_or(0.0) / (percent ? 100.0 : 1.0);
  if (!(share > 0.0 && share < 10.0))
    throw UsageError(fmt::format("{}: '{}' is not a share such as 3% or 0.03", flag, visible(word)));
  return share;
}

std::pair<std::string, std::vector<std::int64_t>> axis_of(std::string_view flag, const std::string& word) {
  const auto [name, values] = assignment(flag, word, "NAME=N,... as in --axis k=256,512");
  std::pair<std::string, std::vector<std::int64_t>> axis{name, {}};
  for (const std::string& value : split_at_commas(values))
    axis.second.push_back(whole<std::int64_t>(fmt::format("{} {}", flag, name), value, 0));
  return axis;
}

Selection::Layout layout_of(std::string_view flag, const std::string& word) {
  Selection::Layout layout;
  double parts = 1.0;
  for (const std::string& part : split_at_commas(word)) {
    if (bool* const option = option_of_ranks(layout.parallel, part)) {
      *option = true;
      continue;
    }
    const auto [axis, ranks] =
        assignment(flag, part, "tp=N, fsdp=N, ep=N, cp=N, pp=N, vp=N, dp=N, sp or ring, as in --parallel dp=2,tp=4");
    const int count = whole<int>(fmt::format("{} {}", flag, axis), ranks, 1);
    parts *= count;
    if (int* const along = ranks_along(layout.parallel, axis)) {
      *along = count;
    } else if (axis == "dp") {
      layout.dp = count;
    } else {
      throw UsageError(
          fmt::format("{}: axis '{}' is not known; known: tp (tensors), fsdp (weights), ep (experts), cp (sequences), "
                      "pp (layers), vp "
                      "(parts of each pp), dp (batches)",
                      flag, visible(axis)));
    }
  }
  if (parts > Mesh::max_ranks)
    throw UsageError(fmt::format("{}: '{}' makes {:.6g} ranks and parts; expected at most {}", flag, visible(word),
                                 parts, Mesh::max_ranks));
  if (layout.parallel.scatters_tokens && layout.parallel.tp == 1)
    throw UsageError(fmt::format("{}: sp scatters tokens over the ranks of tp; give tp=N as well", flag));
  if (layout.parallel.passes_keys && layout.parallel.cp == 1)
    throw UsageError(fmt::format("{}: ring passes keys round the ranks of cp; give cp=N as well", flag));
  if (layout.parallel.vp > 1 && layout.parallel.pp == 1)
    throw UsageError(fmt::format("{}: vp cuts the stages of pp into parts; give pp=N as well", flag));
  return layout;
}

Slowdown slowdown_of(std::string_view flag, const std::string& word) {
  const auto [op, share] = assignment(flag, word, "OP=PERCENT as in gemm=25%");
  return {op, share_of(flag, share)};
}

InjectedError error_of(std::string_view flag, const std::string& word) {
  const auto [op, kind] = assignment(flag, word, "OP=KIND as in gemm=bit");
  return {op, choose<ErrorKind>(flag, kind)};
}

namespace {

// From `least` (0: above it) to `most`.
double number_between(std::string_view flag, const std::string& word, double least, double most,
                      std::string_view what) {
  const double value = number<double>(word).value_or(0.0);
  if (!(value > 0.0 && value >= least && value <= most))
    throw UsageError(fmt::format("{}: '{}' is no {}", flag, visible(word), what));
  return value;
}

}  // namespace

constexpr double min_positive = 1e-9;  // values divided by smaller numbers overflow

double price_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, min_positive, 1e9, "price such as 2.49");
}

double positive_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, min_positive, 1e9, "number from 1e-9 to 1e9 such as 12.5");
}

double oversubscription_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 1.0, 1e9, "number from 1 such as 2");
}

double tokens_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 1.0, 1e18, "number of tokens such as 15e12");
}

double minutes_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 0.0, 365.0 * 24.0 * 60.0, "number of minutes such as 5 or 0.5");
}

std::pair<int, double> of_rank(std::string_view flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  const auto rank = number<int>(word.substr(0, equals));
  const auto value = equals == std::string::npos ? std::nullopt : number<double>(word.substr(equals + 1));
  if (!rank || *rank < 0 || !value || !(*value == 0.0 || (*value >= min_positive && *value <= 1e9)))
    throw UsageError(fmt::format("{}: '{}' is not RANK=NUMBER such as 3=1.5", flag, visible(word)));
  return {*rank, *value};
}

std::optional<double> deadline_of(std::string_view flag, const std::string& word) {
  constexpr double max_s = 30.0 * 24.0 * 3600.0;
  if (word == "auto") return std::nullopt;
  if (word == "off") return 0.0;
  const double seconds = number<double>(word).value_or(0.0);
  if (!(seconds > 0.0 && seconds <= max_s))
    throw UsageError(fmt::format("{}: '{}' is not auto, off or a number of seconds such as 120", flag, visible(word)));
  return seconds;
}

unsigned mode_of(std::string_view flag, const std::string& word) {
  constexpr unsigned owner_reads_and_writes = 0600, most = 0777;
  const unsigned mode = number<unsigned>(word, 8).value_or(0);
  if (mode > most || (mode & owner_reads_and_writes) != owner_reads_and_writes)
    throw UsageError(fmt::format("{}: '{}' is not a mode from 0600 to 0777 such as 0644", flag, visible(word)));
  return mode;
}

namespace {

constexpr std::string_view prefix = "GPUBENCH_";

std::vector<std::string> known_variables() {
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) {
    for (const Flag& flag : verb.flags({})) {
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

bool switched_on(const std::string& variable, const std::string& value) {
  if (value == "on" || value == "1") return true;
  if (value == "off" || value == "0") return false;
  throw UsageError(fmt::format("{}: '{}' is not one of on, off, 1, 0", variable, visible(value)));
}

std::vector<std::string> unknown_variables(std::span<const std::string> names) {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> words;  // without the prefix, which would make any two similar
  for (const std::string& one : known) words.push_back(one.substr(prefix.size()));
  std::vector<std::string> sentences;
  for (const std::string& one : names) {
    if (!one.starts_with(prefix) || std::find(known.begin(), known.end(), one) != known.end()) continue;
    const std::string close = nearest(one.substr(prefix.size()), words);
    sentences.push_back(fmt::format("{} is set, but matches no flag{}", visible(one),
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
