#include "harness/cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/cli/device.h"
#include "harness/cli/estimate.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "harness/report/json.h"
#include "harness/report/quantity.h"
#include "harness/report/record_text.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"
#include "harness/run/case_record.h"
#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

// The recipes that a run with these flags takes; empty: all.
std::vector<std::string> default_recipes(const Options& options, const Environment& environment) {
  if (!options.selection.precisions.empty()) return options.selection.precisions;
  return selection_for(options, choose_device(options.device, environment, options.for_driver_s())).default_precisions;
}

// The number of ranks at the end of a case's id; none where there is none.
std::vector<int> ranks_named(const std::string& subject) {
  const std::size_t mark = subject.rfind("/x");
  if (mark == std::string::npos) return {};
  int ranks = 0;
  const char* const end = subject.data() + subject.size();
  const auto [stop, error] = std::from_chars(subject.data() + mark + 2, end, ranks);
  const bool named = error == std::errc() && stop == end && ranks > 0 && ranks < 100;
  return named ? std::vector{ranks} : std::vector<int>();
}

// How the ranks share the work, by the modes in a case's id.
RankLayout layout_named(const std::string& subject) {
  const std::vector<std::string_view> parts = split(subject, '/');
  try {
    return rank_layout_of({parts.begin(), parts.end()});
  } catch (const ProgramError&) {
    return {};  // no case has such a name
  }
}

struct SuiteFacts {
  const Suite* suite;
  int by_tier[4] = {0, 0, 0, 0};  // cases that each tier runs
};

std::vector<SuiteFacts> suite_facts(const Options& options, const Environment& environment) {
  Selection everything;
  everything.tier = Tier::large;
  everything.default_precisions = default_recipes(options, environment);
  everything.ranks = options.selection.ranks;
  const std::vector<PlannedCase> cases = declared_cases(environment.suites, everything);
  std::vector<SuiteFacts> all;
  for (const Suite& suite : environment.suites) {
    SuiteFacts facts{&suite};
    for (const PlannedCase& declared : cases) {
      if (declared.c.suite != suite.name) continue;
      for (int tier = static_cast<int>(declared.c.tier); tier < 4; ++tier) ++facts.by_tier[tier];
    }
    all.push_back(facts);
  }
  return all;
}

// Whose shape a label says it is: "gpt2-124m" of "gpt2-124m qkv, 256 tokens". A model's name is the first word with a
// letter in front that has a digit or a dash in it, a list's one of these; sizes alone are nobody's.
std::string model_of(const std::string& label) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz", marks = "0123456789-";
  constexpr std::string_view lists[] = {"deepbench", "stream"};
  for (std::size_t at = 0; at < label.size();) {
    const std::size_t end = std::min(label.find_first_of(" ,:", at), label.size());
    const std::string word = label.substr(at, end - at);
    const bool is_model = letters.find(label[at]) != letters.npos && word.find_first_of(marks) != word.npos;
    if (is_model || std::find(std::begin(lists), std::end(lists), word) != std::end(lists)) return word;
    at = end + 1;
  }
  return "";
}

// The models that a workload's shapes are from, each once, in the order of its grid.
std::vector<std::string> models_of(const Workload& workload) {
  std::vector<std::string> models;
  for (const Point& point : workload.grid().points) {
    std::string model = model_of(point.label);
    if (!model.empty() && std::find(models.begin(), models.end(), model) == models.end())
      models.push_back(std::move(model));
  }
  return models;
}

std::string workload_names(const Suite& suite) {
  std::vector<std::string> names;
  for (const auto& workload : suite.workloads) names.push_back(workload->info().name);
  return joined(names);
}

int list_suites(const Options& options, const Environment& environment) {
  if (options.list_json) {
    Json suites = Json::array();
    for (const SuiteFacts& f : suite_facts(options, environment)) {
      Json workloads = Json::array();
      for (const auto& workload : f.suite->workloads) {
        workloads.push_back({{"name", workload->info().name},
                             {"description", workload->info().description},
                             {"models", models_of(*workload)}});
      }
      suites.push_back(
          {{"name", f.suite->name},
           {"description", f.suite->description},
           {"workloads", std::move(workloads)},
           {"cases",
            {{"smoke", f.by_tier[0]}, {"quick", f.by_tier[1]}, {"standard", f.by_tier[2]}, {"large", f.by_tier[3]}}}});
    }
    environment.out << dump({{"suites", std::move(suites)}}, 1) << "\n";
    return exit_codes::ok;
  }
  TextTable table({{"suite"},
                   {"smoke", Align::right},
                   {"quick", Align::right},
                   {"standard", Align::right},
                   {"large", Align::right},
                   {"what"}});
  for (const SuiteFacts& f : suite_facts(options, environment)) {
    std::vector<std::string> row{f.suite->name};
    for (const int cases : f.by_tier) row.push_back(fmt::format("{}", cases));
    row.push_back(f.suite->description);
    table.add(std::move(row));
  }
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  environment.out << table.text(style) << "\n";
  for (const Suite& suite : environment.suites) {
    environment.out << fmt::format("{:<12} {}\n", suite.name, wrap(workload_names(suite), width_up_to(100, style), 13));
  }
  return exit_codes::ok;
}

// The ids that are `wanted`, else those that contain it, else those that match it as a regular expression.
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
    return {};  // no such name: the caller lists the nearest ones
  }
}

// Of each id what a user may have meant to write: its suite, its workload, all of it.
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

std::vector<PlannedCase> named_cases(const Options& options, const Environment& environment,
                                     std::vector<std::string> also_known) {
  Selection selection = selection_for(options, choose_device(options.device, environment, options.for_driver_s()));
  selection.tier = options.tier.value_or(Tier::large);  // a name is looked for everywhere
  if (selection.ranks.empty()) selection.ranks = ranks_named(options.subject);
  if (options.subject.find("/virtual/") != std::string::npos) selection.virtual_ranks = true;
  if (const RankLayout named = layout_named(options.subject); selection.layouts.empty() && named != RankLayout{})
    selection.layouts = {{{}, named}};
  std::vector<std::string> ids, found;
  // A name that no case of the device's recipes has may be one of another recipe.
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
  selection.filters.clear();  // the subject takes their place
  for (const std::string& id : found) selection.filters.push_back(id_pattern(id));
  return plan_cases(environment.suites, selection);
}

namespace {

void print_cases(std::span<const PlannedCase> cases, const Options& options, const Environment& environment) {
  if (options.list_json) {
    environment.out << dump(cases_json(cases), 1) << "\n";
  } else {
    environment.out << cases_table(cases, console_style(options, Stream::out, environment));
  }
}

int list_case(const Options& options, const Environment& environment) {
  const std::vector<PlannedCase> found = named_cases(options, environment);
  if (found.empty()) return refuse_empty(options.selection, environment);
  if (found.size() > 1) {
    print_cases(found, options, environment);
    environment.err << fmt::format("{} cases match; give a longer part of the id to see one in detail\n", found.size())
                    << fitted(id_grammar, console_style(options, Stream::err, environment).width, 0) << "\n";
    return exit_codes::ok;
  }
  const std::string rerun = rerun_line(options, found.front());
  if (options.list_json) {
    environment.out << dump(case_detail_json(found.front(), rerun), 1) << "\n";
  } else {
    environment.out << case_detail(found.front(), rerun, console_style(options, Stream::out, environment));
  }
  return exit_codes::ok;
}

}  // namespace

std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style) {
  TextTable table(
      {{"case"}, {"tier"}, {"work", Align::right}, {"moves", Align::right}, {"memory", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    table.add({planned.id(), std::string(name(planned.c.tier)), format_quantity(planned.cost.flop, "FLOP"),
               format_quantity(planned.cost.bytes, "B"), format_quantity(static_cast<double>(planned.bytes), "B"),
               planned.c.label});
  }
  return table.text(style);
}

Json cases_json(std::span<const PlannedCase> cases) {
  Json list = Json::array();
  for (const PlannedCase& planned : cases) {
    list.push_back({{"id", planned.id()},
                    {"suite", planned.c.suite},
                    {"workload", planned.c.workload},
                    {"recipe", planned.c.recipe},
                    {"tier", name(planned.c.tier)},
                    {"label", planned.c.label},
                    {"def_hash", definition_hash(planned)},
                    {"flop", planned.cost.flop},
                    {"bytes", planned.cost.bytes},
                    {"memory_bytes", planned.bytes}});
    if (planned.c.calls) list.back()["calls"] = *planned.c.calls;
  }
  return {{"cases", std::move(list)}};
}

std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores, const ConsoleStyle& style) {
  TextTable table({{"case"}, {"about", Align::right}, {"memory", Align::right}, {"work", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    const Estimate e = estimate(planned, effort, cores);
    table.add({planned.id(), format_duration(e.seconds), format_quantity(static_cast<double>(e.bytes), "B"),
               format_quantity(planned.cost.flop, "FLOP"), planned.c.label});
  }
  const Estimate all = estimate(cases, effort, cores);
  const std::string sum =
      fmt::format("{} cases, about {}, largest {}; nothing was run (--dry-run)", cases.size(),
                  format_duration(all.seconds), format_quantity(static_cast<double>(all.bytes), "B"));
  return table.text(style) + "\n" + fitted(sum, style.width, 0) + "\n";
}

int list_verb(const Options& options, const Environment& outer) {
  const SelectedSuites suites = selected_suites(options, outer);
  const Environment environment = suites.in(outer);
  tell_variables(options, environment);
  if (options.subject == "suites") return list_suites(options, environment);
  if (!options.subject.empty()) return list_case(options, environment);
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Selection selection = selection_for(options, device);
  const std::vector<PlannedCase> cases = plan_cases(environment.suites, selection);
  tell_lacking(selection, device, environment);
  tell_excepts(suites, environment);
  if (cases.empty()) return refuse_empty(selection, environment);
  print_cases(cases, options, environment);
  if (!options.list_json) {
    environment.err << fmt::format("{} cases at tier {}\n", cases.size(), name(selection.tier))
                    << fitted(id_grammar, console_style(options, Stream::err, environment).width, 0) << "\n";
  }
  return exit_codes::ok;
}

}  // namespace gpubench
