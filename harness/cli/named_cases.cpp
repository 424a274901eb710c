#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/cli/selection.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/plan/names.h"
#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

// The number of ranks at the end of a case id; empty if there is none.
std::vector<int> ranks_named(const std::string& subject) {
  const std::size_t mark = subject.rfind("/x");
  if (mark == std::string::npos) return {};
  int ranks = 0;
  const char* const end = subject.data() + subject.size();
  const auto [stop, error] = std::from_chars(subject.data() + mark + 2, end, ranks);
  const bool named = error == std::errc() && stop == end && ranks > 0 && ranks < 100;
  return named ? std::vector{ranks} : std::vector<int>();
}

// The layout of the ranks from the modes in a case id.
RankLayout layout_named(const std::string& subject) {
  const std::vector<std::string_view> parts = split(subject, '/');
  try {
    return rank_layout_of({parts.begin(), parts.end()});
  } catch (const ProgramError&) {
    return {};
  }
}

// The ids equal to `wanted`, else those that contain it, else those that match it as a regular expression.
std::vector<std::string> matching(const std::vector<std::string>& ids, const std::string& wanted) {
  const auto keep = [&](auto wants) {
    std::vector<std::string> kept;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(kept), wants);
    return kept;
  };
  if (auto exact = keep([&](const std::string& id) { return id == wanted; }); !exact.empty()) return exact;
  if (auto part = keep([&](const std::string& id) { return id.find(wanted) != std::string::npos; }); !part.empty())
    return part;
  try {
    const Pattern pattern("CASE", wanted);
    return keep([&](const std::string& id) { return pattern.found_in(id); });
  } catch (const UsageError&) {
    return {};
  }
}

// Candidates for the nearest match: of each id its suite, its workload, and all of it.
std::vector<std::string> beginnings_of(const std::vector<std::string>& ids) {
  std::set<std::string> all;
  for (const std::string& id : ids) {
    const std::size_t suite = id.find('/');
    all.insert(id.substr(0, suite));
    if (suite != std::string::npos) all.insert(id.substr(0, id.find('/', suite + 1)));
    all.insert(id);
  }
  return {all.begin(), all.end()};
}

}  // namespace

std::vector<std::string> default_recipes(const Options& options, const Environment& environment) {
  if (!options.selection.precisions.empty()) return options.selection.precisions;
  return selection_for(options, choose_device(options.device, environment, options.for_driver_s())).default_precisions;
}

std::vector<PlannedCase> named_cases(const Options& options, const Environment& environment,
                                     std::vector<std::string> also_known) {
  Selection selection = selection_for(options, choose_device(options.device, environment, options.for_driver_s()));
  selection.tier = options.tier.value_or(Tier::large);  // a name is searched in all tiers
  if (selection.ranks.empty()) selection.ranks = ranks_named(options.subject);
  if (options.subject.find("/virtual/") != std::string::npos) selection.virtual_ranks = true;
  if (const RankLayout named = layout_named(options.subject); selection.layouts.empty() && named != RankLayout{})
    selection.layouts = {{{}, named}};
  std::vector<std::string> ids, found;
  // A name outside the device's recipes may belong to another recipe.
  for (const std::vector<std::string>& recipes : {default_recipes(options, environment), {}}) {
    selection.default_precisions = recipes;
    ids.clear();
    for (const PlannedCase& declared : declared_cases(environment.suites, selection)) ids.push_back(declared.id());
    if (found = matching(ids, options.subject); !found.empty()) break;
  }
  if (found.empty()) {
    const bool is_list = also_known.empty();
    for (std::string& beginning : beginnings_of(ids)) also_known.push_back(std::move(beginning));
    throw UsageError(fmt::format("{} is named or matches '{}'{}; see gpubench {}",
                                 is_list ? "list: no case" : "explain: no op or case", visible(options.subject),
                                 did_you_mean(options.subject, also_known), is_list ? "list" : "explain"));
  }
  selection.filters.clear();
  for (const std::string& id : found) selection.filters.push_back(id_pattern(id));
  return plan_cases(environment.suites, selection);
}

}  // namespace gpubench
