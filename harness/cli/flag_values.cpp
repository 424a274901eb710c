#include "harness/cli/flag_values.h"

#include <algorithm>
#include <cmath>

namespace gpubench {
namespace {

// "gemm=25%": the words on both sides of the sign, of which the first may not be empty.
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
    throw UsageError(fmt::format("{}: '{}' is no share such as 3% or 0.03", flag, visible(word)));
  return share;
}

std::pair<std::string, std::vector<std::int64_t>> axis_of(std::string_view flag, const std::string& word) {
  const auto [name, values] = assignment(flag, word, "NAME=N,... as in --axis k=256,512");
  std::pair<std::string, std::vector<std::int64_t>> axis{name, {}};
  for (const std::string& value : split_at_commas(values))
    axis.second.push_back(whole<std::int64_t>(fmt::format("{} {}", flag, name), value, 0));
  return axis;
}

Slowdown slowdown_of(std::string_view flag, const std::string& word) {
  const auto [op, share] = assignment(flag, word, "OP=PERCENT as in gemm=25%");
  return {op, share_of(flag, share)};
}

InjectedError error_of(std::string_view flag, const std::string& word) {
  const auto [op, kind] = assignment(flag, word, "OP=KIND as in gemm=bit");
  return {op, choose(flag, kind, error_kinds())};
}

double price_of(std::string_view flag, const std::string& word) {
  constexpr double most = 1e9;
  const double price = number<double>(word).value_or(0.0);
  if (!(price > 0.0 && price <= most))
    throw UsageError(fmt::format("{}: '{}' is no price such as 2.49", flag, visible(word)));
  return price;
}

std::optional<double> deadline_of(std::string_view flag, const std::string& word) {
  constexpr double most_s = 30.0 * 24.0 * 3600.0;
  if (word == "auto") return std::nullopt;
  if (word == "off") return 0.0;
  const double seconds = number<double>(word).value_or(0.0);
  if (!(seconds > 0.0 && seconds <= most_s))
    throw UsageError(fmt::format("{}: '{}' is not auto, off or a number of seconds such as 120", flag, visible(word)));
  return seconds;
}

unsigned mode_of(std::string_view flag, const std::string& word) {
  constexpr unsigned owner_reads_and_writes = 0600, most = 0777;
  const unsigned mode = number<unsigned>(word, 8).value_or(0);
  if (mode > most || (mode & owner_reads_and_writes) != owner_reads_and_writes)
    throw UsageError(fmt::format("{}: '{}' is no mode from 0600 to 0777 such as 0644", flag, visible(word)));
  return mode;
}

}  // namespace gpubench
