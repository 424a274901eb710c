#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/case_listing.h"
#include "harness/cli/verb.h"
#include "harness/report/json.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

struct ListOptions {
  bool json = false;
};

constexpr Word<bool> list_format_words[] = {{"table", false}, {"json", true}};

struct SuiteFacts {
  const Suite* suite;
  int by_tier[4] = {0, 0, 0, 0};
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

// The model in a label: "gpt2-124m" of "gpt2-124m qkv, 256 tokens". It is the first word that starts with a letter and
// has a digit or a dash, or a name from a list; labels with only sizes have none.
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

// The models of a workload's shapes, each once, in the order of its grid.
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
  if (options.of<ListOptions>().json) {
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
  TextTable table(columns_titled({"suite", "smoke>", "quick>", "standard>", "large>", "what"}));
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

void print_cases(std::span<const PlannedCase> cases, const Options& options, const Environment& environment) {
  if (options.of<ListOptions>().json) {
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
  if (options.of<ListOptions>().json) {
    environment.out << dump(case_detail_json(found.front(), rerun), 1) << "\n";
  } else {
    environment.out << case_detail(found.front(), rerun, console_style(options, Stream::out, environment));
  }
  return exit_codes::ok;
}

int list_command(const Options& options, const Environment& outer) {
  const SelectedSuites suites = selected_suites(options, outer);
  const Environment environment = suites.in(outer);
  note_variables(options, environment);
  if (options.subject == "suites") return list_suites(options, environment);
  if (!options.subject.empty()) return list_case(options, environment);
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Selection selection = selection_for(options, device);
  const std::vector<PlannedCase> cases = plan_cases(environment.suites, selection);
  note_missing_recipes(selection, device, environment);
  note_exceptions(suites, environment);
  if (cases.empty()) return refuse_empty(selection, environment);
  print_cases(cases, options, environment);
  if (!options.of<ListOptions>().json) {
    environment.err << fmt::format("{} cases at tier {}\n", cases.size(), name(selection.tier))
                    << fitted(id_grammar, console_style(options, Stream::err, environment).width, 0) << "\n";
  }
  return exit_codes::ok;
}

std::vector<Flag> list_flags(std::span<const std::string> suites) {
  return together(shared_flags({"select", "--shapes", "--device", "--deadline"}, suites),
                  under("output", row("--format", "table|json", "output format (default: table)",
                                      choice(own(&ListOptions::json), list_format_words))),
                  subject_argument("suites|CASE", {"suites"}));
}

}  // namespace

Verb list_verb() {
  return {.name = "list",
          .arguments = "[suites | CASE] [flags]",
          .summary = "list suites and cases, or show one case in detail",
          .description = "One case in detail: tensors, ops, work, memory.",
          .examples = R"(  gpubench list suites
  gpubench list --suite attention --tier standard
  gpubench list gemm/matmul/m=512,n=512,k=512/f32/x1
  gpubench list --format json
)",
          .flags = list_flags,
          .act = list_command,
          .options = ListOptions{},
          .shows_variables = true};
}

}  // namespace gpubench
