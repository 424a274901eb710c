#include "harness/cli/anonymity.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/core/error.h"
#include "harness/report/anonymize_key.h"
#include "harness/report/atomic_file.h"
#include "harness/report/reader.h"

namespace gpubench {

std::optional<HashKey> key_for(const Options& options, const Environment& environment) {
  if (!options.anonymize) return std::nullopt;
  const std::string file = options.anonymize_key.value_or(
      default_key_file(environment.variable("XDG_CONFIG_HOME"), environment.variable("HOME")));
  if (file.empty())
    throw UsageError("--anonymize: there is no home folder to keep the key in; say where: --anonymize-key FILE");
  try {
    return anonymize_key(file);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--anonymize: {}", e.what()));
  } catch (const WriteError& e) {
    throw UsageError(fmt::format("--anonymize: {}; say where the key is kept: --anonymize-key FILE", e.what()));
  }
}

std::vector<std::string> users_of(const Environment& environment) {
  return {environment.variable("USER"), environment.variable("LOGNAME"),
          std::filesystem::path(environment.variable("HOME")).filename().string()};
}

std::vector<std::string> without_files(const std::vector<std::string>& own_words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < own_words.size(); ++i) {
    if (own_words[i] == "--pin" || own_words[i] == "--like") {
      ++i;
    } else {
      kept.push_back(own_words[i]);
    }
  }
  return kept;
}

}  // namespace gpubench
