// gpubench learn: judges training step by step against fp64, in each recipe.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "harness/cli/finding_records.h"
#include "harness/cli/learn.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"
#include "harness/cli/verb_work.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

struct LearnOptions {
  std::optional<int> steps{};  ///< of free training
  bool brief = false;          ///< one model, fewer steps
};

constexpr int brief_steps = 16;
/// Longest judging of a step without a sign of life: about twenty runs of the textbook, each at most one second
/// (not_judged_reason()), on a slow or busy machine.
constexpr double judging_s = 600.0;

/// A model of the suites, narrower than at tier smoke, since the textbook runs each step twenty times per recipe.
struct SmallModel {
  std::string_view suite, workload;
  Dims dims;
};

const std::vector<SmallModel>& small_models() {
  static const std::vector<SmallModel> models{
      {"transformer", "gpt2_train_step", {{"b", 2}, {"s", 16}, {"layers", 2}, {"h", 32}, {"heads", 2}, {"vocab", 64}}},
      {"transformer",
       "llama_train_step",
       {{"b", 2}, {"s", 16}, {"layers", 2}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}, {"vocab", 64}}},
      {"transformer",
       "vit_train_step",
       {{"n", 8}, {"image", 8}, {"patch", 4}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"classes", 10}}},
      {"moe",
       "mixtral_train_step",
       {{"b", 2},
        {"s", 16},
        {"layers", 1},
        {"h", 32},
        {"heads", 4},
        {"kv", 2},
        {"f", 16},
        {"experts", 4},
        {"k", 2},
        {"vocab", 64}}},
  };
  return models;
}

// Equal for all recipes of a model: the id without precision and without the mode of f16.
std::string model_key(const Case& c) {
  std::string key = fmt::format("{}/{}/{}", c.suite, c.workload, to_string(c.dims));
  for (const std::string& mode : c.modes) {
    if (mode != suites::loss_scaling_mode) key += "/" + mode;
  }
  return key;
}

bool chooses(const Options& options) {
  const Selection& s = options.selection;
  return !options.subject.empty() || options.tier || !s.suites.empty() || !s.filters.empty() || !s.excludes.empty() ||
         !s.batches.empty() || !s.axes.empty();
}

// The declared cases of each small model: those of its workload's first point, with other extents.
std::vector<PlannedCase> small_cases(const Environment& environment, Selection selection) {
  std::vector<PlannedCase> cases;
  for (const SmallModel& model : small_models()) {
    selection.filters = {fmt::format("^{}/{}/", model.suite, model.workload)};
    std::string first;
    for (PlannedCase& planned : declared_cases(environment.suites, selection)) {
      const std::string key = model_key(planned.c);
      if (first.empty()) first = key;
      if (key != first) continue;
      planned.c.dims = model.dims;
      planned.c.label = "a small model";
      cases.push_back(std::move(planned));
    }
  }
  return cases;
}

// Orders by decreasing precision.
std::ptrdiff_t place_of(std::string_view name) {
  return std::ranges::find(recipes(), name, &Recipe::name) - recipes().begin();
}

struct Model {
  std::string key;
  std::vector<PlannedCase> recipes;
};

// The selected training steps, by model. Prints which are left out, and why.
std::vector<Model> models_of(const Options& options, const Selection& selection, const Environment& environment) {
  std::vector<PlannedCase> declared;
  if (!chooses(options)) {
    declared = small_cases(environment, selection);
  } else {
    declared = declared_cases(environment.suites, selection);
    if (!options.subject.empty()) declared = named_by(options.subject, declared);
    if (!options.subject.empty() && declared.empty()) refuse_subject("learn", options.subject, environment);
  }
  std::vector<Model> models;
  std::map<std::string, std::string> left_out;
  for (PlannedCase& one : declared) {
    if (one.c.ranks > 1) continue;
    const Program program = one.workload->build(one.c);
    if (!is_training_step(program)) continue;
    const std::string key = model_key(one.c);
    if (const std::string why = not_judged_reason(program); !why.empty()) {
      left_out.emplace(key, why);
      continue;
    }
    auto found = std::ranges::find(models, key, &Model::key);
    if (found == models.end()) found = models.insert(models.end(), {key, {}});
    found->recipes.push_back(with_program(std::move(one)));
  }
  for (Model& model : models)
    std::ranges::sort(model.recipes, {}, [](const PlannedCase& one) { return place_of(one.c.recipe); });
  if (is_working_child(options)) return models;  // its parent has printed it
  for (const auto& [key, why] : left_out) environment.err << fmt::format("note: {} is left out: {}\n", key, why);
  return models;
}

void write_drawings(const Options& options, std::span<const ModelLearning> models, const Completion& completion,
                    const std::string& device, const Environment& environment) {
  const WriteRules rules{true, options.writing.mode};
  const auto write = [&](const std::string& path, const std::string& text) {
    write_listed(path, text, rules, environment);
  };
  try {
    if (!options.svg.empty()) {
      std::error_code failed;
      std::filesystem::create_directories(options.svg, failed);
      if (failed) throw CannotMeasure(fmt::format("--svg: {}: {}", visible(options.svg), failed.message()));
      for (const page::Drawing& drawing : learning_drawings(models))
        write((std::filesystem::path(options.svg) / (drawing.name + ".svg")).string(), drawing.svg + "\n");
    }
    if (!options.output.empty()) write(options.output, learning_page(models, completion, device));
  } catch (const WriteError& e) {
    throw CannotMeasure(e.what());
  }
}

void learn_in_process(const Options& options, const WorkPlan& plan, std::span<const Model> models,
                      LearningEffort effort, const Environment& environment, const WorkFindings& findings) {
  const std::unique_ptr<Backend> backend = open_for_work(plan.device, findings);
  RunOptions run = run_options(options, plan.selection.tier, environment, plan.device);
  run.alive = effort.alive = findings.alive;
  effort.learned = [&](const ModelLearning& model) { findings.found({{"model", to_json(model)}}); };
  for (const Model& model : models) {
    if (environment.stop != 0) break;
    (void)learn(*backend, model.recipes, run, effort, findings.now, environment.stop);
    effort.broken = false;  // one model is enough
  }
  findings.now("the end");
}

// Exit code 1 if a step was rejected, the fp64 loss did not fall, or a recipe with an injected fault passed; 3 if the
// child crashed or hung.
int learn_command(const Options& options, const Environment& environment) {
  WorkPlan plan = work_place(options, environment);
  plan.silence_s = judging_s;
  plan.selection.default_precisions.clear();  // recipes that the device lacks are emulated
  std::vector<Model> models = models_of(options, plan.selection, environment);
  if (models.empty()) return refuse_empty(plan.selection, environment);
  const auto& own = options.of<LearnOptions>();
  if (own.brief) models.resize(1);
  LearningEffort effort;
  effort.steps = own.steps.value_or(own.brief ? brief_steps : effort.steps);
  effort.judged_steps = std::min(effort.judged_steps, effort.steps);
  const auto work = [&](const WorkFindings& findings) {
    learn_in_process(options, plan, models, effort, environment, findings);
  };
  if (is_working_child(options)) return work_as_child(options, environment, work);
  for (const Model& model : models) plan.cases.insert(plan.cases.end(), model.recipes.begin(), model.recipes.end());
  announce_injections(options, plan.cases, environment);
  const WriteRules replacing{true, options.writing.mode};
  const ResultFile json("--json", options.json.value_or(""), replacing, environment);
  environment.catch_signals();
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  StatusLine status(environment);
  std::vector<ModelLearning> found;
  const auto is_done = [&](std::size_t i) { return found[i].recipes.size() == models[i].recipes.size(); };
  const auto show_last = [&] {
    status.erase();
    json.prose() << table_of(found.back(), style) << "\n" << std::flush;
  };
  const auto [info, trouble] = do_work(options, plan, environment, status, work, [&](const WorkFinding& finding) {
    if (finding.kind != "model") return;
    if (found.empty() || is_done(found.size() - 1)) found.emplace_back();
    found.back() = learning_from_json(finding.content);
    if (is_done(found.size() - 1)) show_last();
  });
  status.erase();
  std::size_t done = found.size();
  if (done > 0 && !is_done(done - 1)) {
    show_last();
    --done;
  }
  const int signal = environment.stop.load();
  const Completion completion{signal == 0 && trouble.empty(), static_cast<double>(done),
                              static_cast<double>(models.size()), "models", trouble};
  json.prose() << summary_of(found, completion, style);
  Json document = {{"schema", "gpubench-learn"},  {"schema_version", 1},
                   {"version", version()},        {"device", info.name},
                   {"seed", options.run.seed},    {"steps", effort.steps},
                   {"batches", training_batches}, {"verdict", name(verdict_of(found, completion))},
                   {"models", Json::array()}};
  completion.add_to(document);
  for (const ModelLearning& model : found) document["models"].push_back(json_of(model));
  json.write(document);
  write_drawings(options, found, completion, info.name, environment);
  if (signal != 0) return exit_code({{}, signal, false});
  Totals totals;
  if (!trouble.empty()) ++totals.by_verdict[Verdict::error];
  for (const ModelLearning& model : found) {
    for (const RecipeLearning& recipe : model.recipes)
      totals.by_verdict[recipe.verdict] += recipe.lacking.empty() ? 1 : 0;
    if (model.verdict() != Verdict::pass) ++totals.by_verdict[model.verdict()];
  }
  return exit_code({totals, 0, false});
}

std::vector<Flag> learn_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--device", "--deadline", "--seed", "--isolate", "--inject-error", "--mode",
                    "--worker-output", "--worker-page", "--worker-share", "--color"},
                   suites),
      under(
          "output",
          row("--json", "FILE", "steps, curves and verdicts as JSON; -: to standard output only", text(&Options::json)),
          row("--svg", "DIR", "each chart in a separate file", text(&Options::svg)),
          row("-o,--output", "FILE", "a page with tables and charts", text(&Options::output))),
      under("check",
            row("--steps", "N", "steps of training by itself; the first ten are also judged one by one (default: 32)",
                converted(own(&LearnOptions::steps), whole_from(8, 10'000))),
            row("--quick", "", "one model and 16 steps, in seconds", turn_on(own(&LearnOptions::brief)))),
      subject_argument("WORKLOAD"));
}

}  // namespace

Verb learn_verb() {
  return {.name = "learn",
          .arguments = "[WORKLOAD] [flags]",
          .summary = "train small models and judge single steps against fp64",
          .description = "In each recipe; draws loss curves.",
          .examples = R"(  gpubench learn
  gpubench learn --quick --precision bf16
  gpubench learn -o learn.html --svg charts --json learn.json
  gpubench learn gpt2_train_step --steps 100           its sizes of tier smoke, in minutes
)",
          .flags = learn_flags,
          .act = learn_command,
          .options = LearnOptions{}};
}

}  // namespace gpubench
