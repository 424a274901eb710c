// Flags from the environment: GPUBENCH_TIER=smoke stands for --tier smoke where that flag is not given. The environment
// is input like any other: its values are checked as the flags' are, and told before anything runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace gpubench {

/// The value of a variable; "" where unset. An empty function: there is no environment.
using Variables = std::function<std::string(const char*)>;

/// "--dry-run" -> "GPUBENCH_DRY_RUN".
[[nodiscard]] std::string variable_of(const std::string& flag);

/// Gives every flag of `app` that was not given, and is not hidden, the value of its variable where that is set; a
/// switch takes on or off, 1 or 0. Call it after app.parse(). Returns the variables that counted, with their values.
/// Throws UsageError for a switch with another value, and CLI::ParseError.
std::vector<std::pair<std::string, std::string>> apply_variables(CLI::App& app, const Variables& variables);

/// Of `names`, those that begin with GPUBENCH_ but stand for no flag of any verb: one sentence each, with the nearest
/// that does.
[[nodiscard]] std::vector<std::string> unknown_variables(std::span<const std::string> names);

/// "GPUBENCH_TIER=smoke GPUBENCH_SEED=1", made visible.
[[nodiscard]] std::string variables_text(std::span<const std::pair<std::string, std::string>> variables);

}  // namespace gpubench
