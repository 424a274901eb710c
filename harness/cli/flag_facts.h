// The flags of a verb as data, from the same table as the parser: for help, completion and the manual page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace gpubench {

/// What may stand after a flag, as far as a shell can complete it.
enum class ValueKind { none, text, file, folder };

struct FlagFacts {
  std::string long_name;            ///< "--tier"
  std::vector<std::string> others;  ///< "-q", "--gpus"
  std::string type;                 ///< "TIER"; empty for a switch
  std::string description;
  std::string group;
  ValueKind value = ValueKind::none;
  std::vector<std::string> words;  ///< of a choice among a few
  bool is_list = false;            ///< several words, with commas between them
};

/// The visible flags, in the order of help. `suites`: names that --suite takes.
[[nodiscard]] std::vector<FlagFacts> flag_facts(Verb verb, std::span<const std::string> suites);

/// What stands after a verb without a flag: words, or files.
struct ArgumentFacts {
  std::vector<std::string> words;
  bool files = false;
};
[[nodiscard]] ArgumentFacts argument_facts(Verb verb);

}  // namespace gpubench
