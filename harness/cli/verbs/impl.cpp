// gpubench impl: templates for implementations, the ops that one accepts, and a first check.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "harness/cli/explain.h"
#include "harness/cli/implementations.h"
#include "harness/cli/verb.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

struct ImplOptions {
  std::string op, language = "c";  ///< of new
  bool strict = false;             ///< of check
};

namespace fs = std::filesystem;

struct Language {
  std::string_view name, ending, skeleton, build;
};
constexpr std::array languages{
    Language{"c", "c", "skeleton.c", "cc -O3 -march=native -shared -fPIC -I. {0}.c -o lib{0}.so -lm"},
    Language{"cuda", "cu", "skeleton.c", "nvcc -O3 -shared -Xcompiler -fPIC -I. {0}.cu -o lib{0}.so"},
    Language{"python", "py", "skeleton.py", ""}};

void replace(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string listed(std::string_view operands) {
  std::string text(operands);
  replace(text, " ", ", ");
  return text;
}

// Source for an op: a working example, or a skeleton with its operands.
std::string source_for(const OpKind& kind, const Language& language) {
  const std::string file = fmt::format("{}.{}", kind.name, language.ending);
  if (const std::string* ready = starting_point(file)) return *ready;
  std::string text = *starting_point(std::string(language.skeleton));
  std::string parameters = listed(kind.inputs);
  std::erase_if(parameters, [](char c) { return c == '?' || c == '*' || c == '\''; });
  replace(text, "@OP@", std::string(kind.name));
  replace(text, "@INPUTS@", listed(kind.inputs));
  replace(text, "@OUTPUTS@", listed(kind.outputs));
  replace(text, "@PARAMETERS@", parameters);
  return text;
}

// Throws UsageError if the file exists.
void write_new(const fs::path& file, const std::string& text) {
  if (fs::exists(fs::symlink_status(file)))
    throw UsageError(fmt::format("{}: is there already", visible(file.string())));
  write_atomically(file.string(), text, {.mode = 0644});
}

int new_implementation(const Options& options, const Environment& environment) {
  const std::string& name = options.arguments[1];
  if (!is_contender_name(name) || name == reference_name)
    throw UsageError(
        fmt::format("impl new: '{}' is not a name for an implementation; expected 1 to 40 characters of A-Z a-z 0-9 . "
                    "_ + -, the first a letter or digit",
                    visible(name)));
  if (options.of<ImplOptions>().op.empty())
    throw UsageError("impl new: which op? add --op OP, as gpubench explain lists them");
  const OpDefinition* definition = find_definition(options.of<ImplOptions>().op);
  if (definition == nullptr) {
    throw UsageError(fmt::format("--op: there is no op '{}'{}; gpubench explain lists them",
                                 visible(options.of<ImplOptions>().op),
                                 did_you_mean(options.of<ImplOptions>().op, op_names())));
  }
  const auto language = std::ranges::find(languages, options.of<ImplOptions>().language, &Language::name);
  const fs::path folder(name);
  if (fs::exists(folder)) throw UsageError(fmt::format("impl new: {} is there already", visible(folder.string())));
  const std::string source = source_for(definition->kind(), *language);
  try {
    make_folder((folder / (language->build.empty() ? "" : "gpubench")).string());
    write_new(folder / fmt::format("{}.{}", name, language->ending), source);
    if (!language->build.empty()) write_new(folder / "gpubench/implementation.h", *starting_point("implementation.h"));
  } catch (const WriteError& e) {
    fail_to_write("impl new", e);
  }
  const std::string file = language->build.empty() ? name + ".py" : fmt::format("lib{}.so", name);
  environment.out << fmt::format("cd {}\n", name);
  if (!language->build.empty()) environment.out << fmt::format(fmt::runtime(language->build), name) << "\n";
  environment.out << fmt::format("gpubench impl check ./{}\ngpubench run --impl ./{} --versus reference\n", file, file);
  return exit_codes::ok;
}

// The words of the command line that the verb's run repeats.
std::vector<std::string> words_of_run(const Options& options, std::vector<std::string> run) {
  std::vector<std::string> own = options.arguments;
  own.insert(own.begin(), "impl");
  if (options.of<ImplOptions>().strict) own.emplace_back("--strict");
  for (const std::string& word : options.words) {
    const auto found = std::ranges::find(own, word);
    found == own.end() ? run.push_back(word) : void(own.erase(found));
  }
  return run;
}

int list_claims(const Options& options, const Environment& environment) {
  const std::string& file = options.arguments[1];
  const std::vector<NamedImplementation> named = named_implementations({&file, 1}, options.python);
  const DeviceChoice device = choose_device(options.device, environment, options.for_driver_s());
  const Claims claims = query_claims(named, words_of_run(options, {"run", "--impl", file}), device.word(), environment,
                                     options.for_opening_s())
                            .front();
  if (!claims.cases) throw CannotMeasure(fmt::format("{} does not say what it takes", visible(file)));
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  environment.out << fmt::format("{}{}{}, digest {}: takes {} of the selected cases\n\n", claims.file.name,
                                 claims.file.version.empty() ? "" : " ", visible(claims.file.version),
                                 claims.file.digest, claims.cases->size());
  TextTable table({{"op"}, {"type"}, {"calls", Align::right}, {"taken", Align::right}, {"why not the others"}});
  for (const bool taken : {true, false}) {
    for (const OpClaim& one : claims.ops) {
      if ((one.taken > 0) != taken) continue;
      table.add({one.op, one.type, fmt::format("{}", one.taken + one.declined), fmt::format("{}", one.taken),
                 visible(one.reason)});
    }
  }
  environment.out << table.text(style);
  return exit_codes::ok;
}

// All suites, also those only for the check, without those that repeat steps of others.
std::vector<std::string_view> suites_of_check(std::span<const Suite> suites) {
  std::vector<std::string_view> names;
  for (const Suite& suite : suites) {
    if (!suite.repeats_steps) names.push_back(suite.name);
  }
  return names;
}

int check_implementation(const Options& options, const Environment& environment) {
  std::vector<std::string> run{"run",    "--impl",    options.arguments[1],
                               "--tier", "smoke",     "--check",
                               "own",    "--untried", options.of<ImplOptions>().strict ? "fail" : "list"};
  const Selection& asked = options.selection;
  const bool is_usual = asked.suites.empty() && asked.filters.empty() && asked.batches.empty() && asked.axes.empty();
  if (is_usual)
    run.insert(run.end(), {"--suite", fmt::format("{}", fmt::join(suites_of_check(environment.suites), ","))});
  run = words_of_run(options, std::move(run));
  const Options as_run = parse_options(run, environment.variable, suite_names(environment.suites));
  return as_run.verb->act(as_run, environment);
}

int impl_command(const Options& options, const Environment& environment) {
  const std::vector<std::string>& own = options.arguments;
  if (own.size() == 2 && own[0] == "new") return new_implementation(options, environment);
  if (own.size() == 2 && own[0] == "list") return list_claims(options, environment);
  if (own.size() == 2 && own[0] == "check") return check_implementation(options, environment);
  throw UsageError("impl takes one of: new NAME --op OP, list FILE, check FILE");
}

std::vector<Flag> impl_flags(std::span<const std::string> suites) {
  return together(
      shared_flags({"select", "--device", "--python"}, suites),
      several_arguments("", ValueKind::file, {"new", "list", "check"}),
      under("start", row("--op", "OP", "the op of the new file (impl new)", text(own(&ImplOptions::op))),
            row("--lang", "c|cuda|python", "language of the new file (default: c)",
                one_of(own(&ImplOptions::language), {"c", "cuda", "python"})),
            row("--strict", "", "exit 1 if calls are left untried (impl check)", turn_on(own(&ImplOptions::strict)))));
}

}  // namespace

Verb impl_verb() {
  return {.name = "impl",
          .arguments = "new NAME --op OP | list FILE | check FILE [flags that select]",
          .summary = "start, list or check your own implementation of an op",
          .description = "gpubench run --impl runs it.",
          .examples = R"(  gpubench impl new my_norm --op rms_norm_forward
  gpubench impl new my_gemm --op gemm --lang cuda
  gpubench impl list ./libmy_norm.so --suite norm
  gpubench impl check ./libmy_norm.so
  gpubench run --impl ./libmy_norm.so --versus reference --suite norm
)",
          .flags = impl_flags,
          .act = impl_command,
          .options = ImplOptions{}};
}

}  // namespace gpubench
