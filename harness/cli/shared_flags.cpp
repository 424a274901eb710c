#include <fmt/ranges.h>

#include <stdexcept>

#include "harness/cli/verb.h"
#include "harness/core/recipe.h"
#include "harness/parity/lower_precision.h"

namespace gpubench {
namespace {

// Names of presets before report schema 1.5, as in rerun lines of older reports.
constexpr Word<std::string_view> preset_aliases[] = {{"smoke", "minimal"}, {"quick", "brief"}, {"standard", "normal"}};
// Names of other frameworks. "fp8" alone is the hybrid: e4m3 forward, e5m2 for gradients.
constexpr Word<std::string_view> precision_aliases[] = {
    {"fp64", "f64"},      {"float64", "f64"}, {"double", "f64"},    {"fp32", "f32"},     {"float32", "f32"},
    {"float", "f32"},     {"single", "f32"},  {"fp16", "f16"},      {"float16", "f16"},  {"half", "f16"},
    {"bfloat16", "bf16"}, {"bfloat", "bf16"}, {"fp8", "f8_hybrid"}, {"f8", "f8_hybrid"}, {"float8", "f8_hybrid"}};
constexpr Word<LaunchMode> launch_words[] = {{"graph", LaunchMode::graph}, {"stream", LaunchMode::stream}};
constexpr unsigned chooses_case = use::everywhere & ~use::rerun;
constexpr Word<bool> switch_words[] = {{"on", true}, {"off", false}};

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

std::vector<std::string> arithmetic_names() {
  std::vector<std::string> names;
  for (const LowerArithmetic& one : lower_arithmetic::all) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> suite_words(std::span<const std::string> suites) {
  std::vector<std::string> words(suites.begin(), suites.end());
  words.emplace_back("all");
  return words;
}

// "gpu" and "gpu:1" are aliases of "cuda".
std::string device_value(const std::string&, const std::string& word) {
  const bool is_gpu = word == "gpu" || word.starts_with("gpu:");
  return is_gpu ? "cuda" + word.substr(3) : word;
}

std::vector<Flag> shared_rows() {
  const auto precision = [](const std::string&, const std::string& word) { return unaliased(word, precision_aliases); };
  const auto launch = [](const std::string& flag, const std::string& word) { return choose(flag, word, launch_words); };
  const auto preset = [](const std::string& flag, const std::string& word) {
    return choose<Preset>(flag, unaliased(word, preset_aliases));
  };
  const auto arithmetic = [names = arithmetic_names()](const std::string& flag, const std::string& word) {
    return names[choose(flag, word, names)];
  };
  return together(
      under(
          "select",
          common("suites to run (default: all)",
                 row("--suite", "NAME,...", "suites to run; all: every suite except variants (default: all)",
                     all_of(Takes::list, in_selection(&Selection::suites), {}), chooses_case)),
          common("smoke (seconds), quick (minutes), standard or large",
                 row("--tier", "TIER",
                     "smoke, quick, standard or large; each contains the ones before it (default: smoke in selftest, "
                     "determinism, soak and learn; else quick, or standard on a GPU)",
                     choice<Tier>(&Options::tier), chooses_case)),
          common("only cases whose id matches",
                 row("--filter", "REGEX", "only cases whose id matches; may be repeated",
                     all_of(Takes::each, in_selection(&Selection::filters)), chooses_case)),
          row("--exclude", "REGEX", "no cases whose id matches",
              all_of(Takes::each, in_selection(&Selection::excludes)), chooses_case),
          common(
              "f64, f32, tf32, f16, bf16, f8_hybrid, ... (default: all that the device has)",
              row("--precision", "NAME,...",
                  fmt::format("recipes to run: {} (default: those of the device)", fmt::join(recipe_names(), ", ")),
                  several(Takes::list, in_selection(&Selection::precisions), precision, recipe_names()), chooses_case)),
          row("--batch", "N,...", "batch sizes instead of the suites' own",
              several(Takes::list, in_selection(&Selection::batches), whole_from<std::int64_t>(1))),
          row("--launch", "MODE,...",
              "graph (default on a GPU): the program is recorded once and replayed; stream: launch by launch; "
              "graph,stream: each case twice",
              several(Takes::list, in_selection(&Selection::launches), launch, texts(launch_words))),
          row("--fuse", "on|off",
              "on (default): run chains of ops as the fused ops of the device; off: run each op as declared",
              choice(in_selection(&Selection::fuse), switch_words)),
          common("numbers of ranks: a GPU each, or a share of the processors",
                 row("--ranks,--gpus", "N,...",
                     "numbers of ranks for the suites that run on several: one device each, or a share of the "
                     "processors (default: the fewest that a suite needs; with several processes, their number)",
                     several(Takes::list, in_selection(&Selection::ranks), whole_from(1)), chooses_case)),
          row("--virtual-ranks", "",
              "several ranks share one GPU: programs run and are checked as on several, but the figures say nothing "
              "about several",
              turn_on(in_selection(&Selection::virtual_ranks))),
          row("--parallel", "AXIS=N,...",
              "how the ranks of a training step share it: tp=N ranks share tensors (with sp also the tokens between "
              "layers); fsdp=N share weights and ep=N experts, each rank with a separate batch; cp=N share sequences "
              "(with ring, keys are passed on, not gathered); pp=N share layers (with vp=N, in N parts each), through "
              "which --axis micro=N micro-batches pass; dp=N such groups have separate batches (default: dp alone, as "
              "many as --ranks says); may be repeated",
              several(Takes::each, in_selection(&Selection::layouts), layout_of), chooses_case),
          row("--axis", "NAME=N,...", "values of one dimension instead of the suites' own",
              several(Takes::each, in_selection(&Selection::axes), axis_of)),
          row("--shapes", "FILE",
              "the shapes of a list instead of the suites' own: gpubench's JSON, benchdnn problems, ONEDNN_VERBOSE, "
              "cuBLAS, cuBLASLt and rocBLAS logs, DeepBench lists; adds the total time of its calls",
              text(&Options::shapes), use::everywhere | use::file)),
      under("measure",
            common("cuda, cuda:N, cpu or auto (default)",
                   row("--device", "NAME",
                       "cuda (or gpu), cuda:N, cpu or auto (default): the GPU if a driver is there, else the CPU",
                       converted(&Options::device, device_value, {"auto", "cpu", "cuda"}))),
            row("--deadline", "auto|off|S",
                "longest silence of a case or a driver, in seconds (default: auto: three times the expected time of "
                "the case, 30 s to 30 min; a driver 10 s, opening the device 60 s); off: for debuggers and sanitizers",
                converted(&Options::deadline_s, deadline_of, {"auto", "off"}), use::journal | use::runs),
            row("--trust-libraries", "",
                "as root, also load NVIDIA's libraries from folders that other users can change (a user's Python "
                "packages)",
                turn_on(&Options::trust_libraries), use::everywhere | use::code),
            row("--python", "PROGRAM",
                "interpreter for Python files of --impl, in a worker; it needs the package gpubench (default: python3, "
                "from the PATH)",
                text(&Options::python), use::everywhere | use::code | use::file),
            row("--seed", "N", "of inputs, samples and order (default: 42)",
                converted(in_run(&RunOptions::seed), whole_from<std::uint64_t>(0)), chooses_case),
            row("--deterministic", "",
                "use only implementations with reproducible bits; cases without one are unsupported",
                turn_on(in_run(&RunOptions::deterministic))),
            row("--isolate", "on|off",
                "run cases in a worker process that may crash (default: on); off: in this process, for debuggers and "
                "profilers",
                choice(&Options::isolate, switch_words), use::journal | use::runs),
            row("--dry-run", "", "show the plan with estimates of time and memory; run nothing",
                turn_on(&Options::dry_run), use::runs),
            row("--preset", "PRESET",
                "how long each case is measured: minimal, brief (3 to 10 rounds), normal (10 to 20), gate (5 to 10, to "
                "be repeated) or thorough (20 to 40) (default: that of the tier)",
                converted(in_run(&RunOptions::preset), preset, texts<Preset>())),
            row("--energy", "",
                "run each case 2 s longer on a GPU with an energy counter: joules per run and per FLOP, byte or token",
                turn_on(in_run(&RunOptions::energy))),
            row("--breakdown", "on|off",
                "on (default): also time the ops of a composite case one by one; off: only the whole, for races",
                choice(in_run(&RunOptions::breakdown), switch_words)),
            row("--locked-clock", "MHZ",
                "SM clock that the GPU is locked at (nvidia-smi -lgc MHZ,MHZ): rounds more than 1% off it are invalid",
                converted(in_run(&RunOptions::locked_clock_mhz), whole_from(1))),
            row("--inject-slowdown", "OP=25%",
                "multiply the recorded times of cases that run this kind of op, to test gates; unlike a real slowdown "
                "this does not change the batch; the report records it and is refused as a baseline",
                {Takes::each,
                 [](Options& o, const std::string& flag, const std::string& word) {
                   if (o.run.slowdown) throw UsageError(flag + " is given twice; a run takes one");
                   o.run.slowdown = slowdown_of(flag, word);
                 }}),
            row("--inject-error", "OP=KIND",
                fmt::format("corrupt the output of this kind of op, to see how a failure is reported: {}; the report "
                            "records it and is refused as a baseline",
                            fmt::join(enum_names<ErrorKind>, ", ")),
                converted(in_run(&RunOptions::error), error_of)),
            row("--impl", "FILE,...",
                "run these implementations of ops, shared libraries with gpubench's C interface or Python files with "
                "@gpubench.implements; the device's libraries run all other ops",
                all_of(
                    Takes::list, [](Options & o) -> auto& { return o.implementations; }),
                use::everywhere | use::code | use::file),
            row("--versus", "reference|NAME",
                "with --impl: also run the device's libraries, in the same interleaved rounds, and compare the speed "
                "of each implementation with them (or with the implementation of this name)",
                text(&Options::versus)),
            row("--pin", "REPORT",
                "use the implementations that this report names, instead of choosing; cases are unsupported if one is "
                "not offered",
                text(&Options::pin), use::everywhere | use::file),
            row("--like", "REPORT",
                "use the runs per sample of this report's cases, so that both spread fixed costs alike",
                text(&Options::like), use::everywhere | use::file),
            row("--tuning-cache", "DIR|off",
                "folder that stores the fastest implementations for later runs on this device (default: "
                "$XDG_CACHE_HOME/gpubench or ~/.cache/gpubench); off: time them again",
                text(&Options::tuning_cache, {"off"}), use::rerun | use::runs)),
      under("check",
            common(
                "sample (default), bitwise, own, full or off",
                row("--check", "MODE",
                    "sample (default): small outputs whole, large ones by a seeded sample, products and convolutions "
                    "also by sums of all elements and on exact data; bitwise: also every element of outputs with one "
                    "correct value, bit for bit (moves, collectives, casts, sums on exact data); own: every element of "
                    "ops that --impl runs, others by a sample; full: every element of all outputs; off: verify nothing",
                    choice<CheckMode>(in_run(&RunOptions::check)))),
            row("--arithmetic", "NAME,...",
                fmt::format("accept this arithmetic although ops declare a higher one, instead of the verdict "
                            "downgraded: {}; reports with and without it are not comparable",
                            fmt::join(arithmetic_names(), ", ")),
                several(Takes::list, in_run(&RunOptions::arithmetic), arithmetic, arithmetic_names())),
            row("--recheck", "N",
                "N more launches of each case after its rounds, each compared bit for bit with the checked output, to "
                "find intermittent faults: 1000 detect one in 1 of 1,000 launches with probability 63%",
                converted(in_run(&RunOptions::rechecks), whole_from(0, 100'000)))),
      under("output",
            row("--force", "", "replace existing files", turn_on(in(&Options::writing, &WriteRules::replace))),
            row("--mode", "OCTAL",
                "permissions of written files, whatever the umask: 0644 lets every user read them (default: 0600, only "
                "you)",
                converted(in(&Options::writing, &WriteRules::mode), mode_of)),
            row("--detail", "brief|full",
                "detail of each case in the report: brief (the worst op of each phase, counts, failures, samples, "
                "every implementation) or full (the check of every op)",
                choice<Detail>(&Options::detail)),
            row("--anonymize", "",
                "write nothing that identifies this machine or its user: names and paths become keyed hashes",
                turn_on(&Options::anonymize), use::journal | use::runs),
            row("--anonymize-key", "FILE",
                "key file of these hashes, created if missing; one key gives a machine the same name in all reports "
                "(default: $XDG_CONFIG_HOME/gpubench/anonymize.key or ~/.config/gpubench/anonymize.key)",
                text(&Options::anonymize_key)),
            row("--color", "MODE", "auto, always or never (default: auto: on a terminal, unless NO_COLOR is set)",
                choice<ColorMode>(&Options::color)),
            row("--json", "FILE", "everything as JSON; -: to standard output only", text(&Options::json)),
            row("-v,--verbose", "", "list all cases", turn_on(&Options::verbose))),
      // For workers, children that answer on descriptors, and children that do a verb's work.
      under("", row("--worker-input", "FD", "", converted(&Options::worker_input, whole_from(0))),
            row("--worker-output", "FD", "", converted(&Options::worker_output, whole_from(0))),
            row("--worker-page", "FD", "", converted(&Options::worker_page, whole_from(0))),
            row("--worker-share", "N", "", converted(&Options::worker_share, whole_from(0)))));
}

}  // namespace

std::vector<Flag> shared_flags(std::initializer_list<std::string_view> names, std::span<const std::string> suites) {
  static const std::vector<Flag> rows = shared_rows();
  std::vector<Flag> chosen;
  for (const std::string_view name : names) {
    const std::size_t before = chosen.size();
    for (const Flag& flag : rows) {
      const bool is_of_group = flag.group == name && flag.long_name != "--shapes";
      if (flag.long_name != name && !is_of_group) continue;
      chosen.push_back(flag);
      if (flag.long_name == "--suite") chosen.back().words = suite_words(suites);
    }
    if (chosen.size() == before) throw std::logic_error("no shared flag '" + std::string(name) + "'");
  }
  return chosen;
}

std::vector<Flag> subject_argument(std::string_view type, std::vector<std::string> known) {
  return under("", row("subject", type, "", text(&Options::subject, std::move(known))));
}

std::vector<Flag> several_arguments(std::string_view type, ValueKind value, std::vector<std::string> known) {
  Flag flag = row("arguments", type, "", all_of(Takes::many, &Options::arguments, std::move(known)));
  flag.value = value;
  return under("", std::move(flag));
}

void set_tau(Tau& tau, const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  const double share = share_of(flag, equals == word.npos ? word : word.substr(equals + 1));
  (equals == word.npos ? tau.all : tau.by_suite[word.substr(0, equals)]) = share;
}

}  // namespace gpubench
