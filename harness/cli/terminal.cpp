#include "harness/cli/terminal.h"

#include <algorithm>
#include <charconv>

namespace gpubench {
namespace {

bool forces(const std::string& value) { return !value.empty() && value != "0"; }

}  // namespace

bool use_color(ColorMode mode, bool is_terminal, const Environment& environment) {
  if (mode != ColorMode::automatic) return mode == ColorMode::always;
  if (!environment.variable("NO_COLOR").empty()) return false;
  if (forces(environment.variable("CLICOLOR_FORCE")) || forces(environment.variable("FORCE_COLOR"))) return true;
  return is_terminal && environment.variable("TERM") != "dumb";
}

bool use_utf8(const Environment& environment) {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment.variable(variable);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int columns_of(Stream stream, const Environment& environment) {
  constexpr int none = 100;
  constexpr int most = 10000;
  const std::string wish = environment.variable("COLUMNS");
  int columns = 0;
  const auto [end, error] = std::from_chars(wish.data(), wish.data() + wish.size(), columns);
  if (error == std::errc() && end == wish.data() + wish.size() && columns > 0 && columns <= most) return columns;
  const bool out = stream == Stream::out;
  if (!(out ? environment.out_is_terminal : environment.err_is_terminal)) return none;
  return out ? environment.out_columns : environment.columns;
}

ConsoleStyle console_style(const Options& options, Stream stream, const Environment& environment) {
  const bool is_terminal = stream == Stream::out ? environment.out_is_terminal : environment.err_is_terminal;
  return {use_color(options.color, is_terminal, environment), use_utf8(environment), options.quiet,
          options.verbose ? 1 : 0, is_terminal ? columns_of(stream, environment) : 0};
}

}  // namespace gpubench
