#include "harness/cli/verb.h"

#include <algorithm>
#include <stdexcept>

namespace gpubench {

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) names.emplace_back(verb.name);
  }
  return names;
}

const Verb* find_verb(std::string_view name) {
  const auto found = std::ranges::find(verbs(), name, &Verb::name);
  return found == verbs().end() ? nullptr : &*found;
}

std::vector<Flag> flags_of(std::string_view verb, std::span<const std::string> suites) {
  const Verb* const found = find_verb(verb);
  if (found == nullptr) throw std::logic_error("no verb '" + std::string(verb) + "'");
  return found->flags(suites);
}

}  // namespace gpubench
