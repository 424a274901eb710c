#include "harness/cli/terminal.h"

#include <algorithm>

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

ConsoleStyle console_style(const Options& options, bool is_terminal, const Environment& environment) {
  return {use_color(options.color, is_terminal, environment), use_utf8(environment), options.quiet, options.verbosity};
}

}  // namespace gpubench
