#include "harness/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/cli/flags.h"
#include "harness/cli/verbs.h"
#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "harness/report/record_text.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr int widest = 100;

// How wide the text is, and where the right column begins: nearer to the left where there is little room.
struct Measure {
  int width = widest;
  int text_column = 26;
};

Measure measure_of(int width) { return {std::min(width, widest), width < 60 ? 8 : 26}; }

constexpr std::string_view gate_codes = R"(
exit codes
  0                       nothing regressed, and something was concluded
  1                       a case regressed, fails its check or is missing
  2                       usage, or a file that is no report
  4                       other set-ups, or nothing could be concluded; with --strict: not everything
)";

// Title and text side by side, the text wrapped in its own column; a long title stands on a line of its own.
std::string entry(std::string_view title, std::string_view text, const Measure& measure) {
  const std::string head = "  " + fitted(title, measure.width, 2);
  const int column = measure.text_column;
  const bool fits = columns(head) + 2 <= column;
  const std::string before =
      fits ? padded(head, column) : head + "\n" + std::string(static_cast<std::size_t>(column), ' ');
  return before + wrap(text, measure.width, column) + "\n";
}

// Lines of a command and what it does. A command stays in one piece; what it does goes below it where there is no room.
std::string examples(std::string_view text, const Measure& measure) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::size_t gap = line.find("  ", 2);
    if (columns(line) <= measure.width || gap == std::string_view::npos) {
      out += std::string(line) + "\n";
      continue;
    }
    const std::string_view what = line.substr(std::min(line.find_first_not_of(' ', gap), line.size()));
    out += fmt::format("{}\n      {}\n", line.substr(0, gap), wrap(what, measure.width, 6));
  }
  return out;
}

std::string groups_text(Verb verb, const Measure& measure) {
  std::string text;
  const std::vector<Flag> flags = flags_of(verb);
  for (const char* group : {"compare", "start", "select", "measure", "check", "output"}) {
    std::string entries;
    for (const Flag& flag : flags) {
      if (flag.group != group || !flag.is_visible()) continue;
      entries +=
          entry(joined(flag.names()) + (flag.type.empty() ? "" : fmt::format(" {}", flag.type)), flag.text, measure);
    }
    if (!entries.empty()) text += fmt::format("{}\n{}\n", group, entries);
  }
  return text;
}

std::string environment_text(const Measure& measure) {
  return "environment\n" +
         entry("GPUBENCH_<FLAG>",
               "stands in for any flag above that is not given: GPUBENCH_TIER=smoke, GPUBENCH_SUITE=gemm,conv; "
               "switches are on or off: GPUBENCH_DRY_RUN=on",
               measure) +
         entry("NO_COLOR, FORCE_COLOR", "colour off, colour on, unless --color says otherwise", measure);
}

std::string exit_codes_text(const Measure& measure) {
  std::string text = "exit codes\n";
  for (const int code : exit_codes::all) text += entry(fmt::format("{}", code), explain_exit_code(code), measure);
  return text;
}

std::string words_text(const Measure& measure) {
  std::string text = "words of the results\n" + entry("case", id_grammar, measure);
  for (const char* flag : {"noisy", "no interval", "severe", "drift"})
    text += entry(flag, meaning_of_flag(flag), measure);
  for (const Verdict verdict : {Verdict::downgraded, Verdict::not_proven, Verdict::unverified})
    text += entry(name(verdict), meaning_of(verdict), measure);
  return text;
}

std::string heading(const VerbInfo& verb, const Measure& measure) {
  constexpr int indent = 4;
  std::string text = fitted(fmt::format("usage: gpubench {} {}", verb.name, verb.arguments), measure.width, indent) +
                     "\n" + fitted(verb.summary, measure.width, 0) + "\n";
  if (!verb.description.empty()) text += fitted(verb.description, measure.width, 0) + "\n";
  return text + "\n";
}

std::string verb_text(const VerbInfo& verb, const Measure& measure) {
  std::string text = heading(verb, measure) + groups_text(verb.verb, measure);
  if (verb.verb == Verb::run || verb.verb == Verb::list) text += environment_text(measure) + "\n";
  text += "examples\n" + examples(examples_of(verb.verb), measure);
  if (verb.verb == Verb::run) text += "\n" + words_text(measure) + "\n" + exit_codes_text(measure);
  if (verb.verb == Verb::gate) text += examples(gate_codes, measure);
  return text;
}

// What short help shows of a flag: its own brief text, or the first clause of the whole.
std::string_view brief_text(const Flag& flag) {
  if (!flag.brief.empty()) return flag.brief;
  const std::string_view text = flag.text;
  return text.substr(0, std::min({text.find("; "), text.find(": "), text.find(" (default")}));
}

// Of a verb with many flags eight: its own first (all of them unless some have a brief text), then those of run that
// have one. A flag that run has under the same name with another brief text counts as own.
std::vector<Flag> common_flags(Verb verb) {
  constexpr std::size_t most = 8;
  std::vector<Flag> flags = flags_of(verb);
  std::erase_if(flags, [](const Flag& flag) { return !flag.is_visible(); });
  if (flags.size() <= most) return flags;
  const std::vector<Flag> of_run = flags_of(Verb::run);
  const auto is_own = [&of_run, verb](const Flag& flag) {
    return verb != Verb::run && std::ranges::none_of(of_run, [&flag](const Flag& one) {
             return one.long_name == flag.long_name && one.brief == flag.brief;
           });
  };
  const auto is_brief = [](const Flag& flag) { return !flag.brief.empty(); };
  const bool chosen = std::ranges::any_of(flags, [&](const Flag& flag) { return is_own(flag) && is_brief(flag); });
  std::vector<Flag> common;
  std::ranges::copy_if(flags, std::back_inserter(common),
                       [&](const Flag& flag) { return is_own(flag) && (is_brief(flag) || !chosen); });
  std::ranges::copy_if(flags, std::back_inserter(common),
                       [&](const Flag& flag) { return is_brief(flag) && !is_own(flag); });
  common.resize(std::min(common.size(), most));
  return common;
}

std::string short_verb_text(const VerbInfo& verb, const Measure& measure) {
  std::string text = heading(verb, measure) + "flags\n";
  for (const Flag& flag : common_flags(verb.verb))
    text += entry(joined(flag.names()) + (flag.type.empty() ? "" : fmt::format(" {}", flag.type)), brief_text(flag),
                  measure);
  std::string_view lines = examples_of(verb.verb);
  const std::size_t second = lines.find('\n', lines.find('\n') + 1);
  text += "\nexamples\n" + examples(lines.substr(0, second == std::string_view::npos ? second : second + 1), measure);
  return text + "\n" +
         fitted(fmt::format("gpubench {} --help-all shows all flags and examples", verb.name), measure.width, 0) + "\n";
}

constexpr std::string_view what_it_is =
    "gpubench: a benchmark and conformance suite for GPU training. No number without a verdict.";
constexpr std::string_view how_to_call = "usage: gpubench [VERB] [flags]        without a verb: run";

std::string full_overview(const Measure& measure) {
  std::string text =
      fitted(what_it_is, measure.width, 0) + "\n" + fitted(how_to_call, measure.width, 4) + "\n\nverbs\n";
  for (const VerbInfo& verb : verbs()) {
    if (!verb.hidden) text += entry(fmt::format("{} {}", verb.name, verb.arguments), verb.summary, measure);
  }
  return text + "\nflags of run\n\n" + groups_text(Verb::run, measure) + environment_text(measure) + "\n" +
         "examples\n" + examples(examples_of(Verb::run), measure) + "\n" + words_text(measure) + "\n" +
         exit_codes_text(measure);
}

std::string overview(const Measure& measure) {
  const Measure narrow{measure.width, std::min(measure.text_column, 15)};  // the longest verb, with two blanks
  std::string text =
      fitted(what_it_is, measure.width, 0) + "\n" + fitted(how_to_call, measure.width, 4) + "\n\nverbs\n";
  for (const VerbInfo& verb : verbs()) {
    if (!verb.hidden) text += entry(verb.name, verb.summary, narrow);
  }
  return text + "\nexamples\n" + examples(first_examples(), measure) + "\n" +
         fitted("gpubench VERB --help shows the flags of a verb, gpubench --help-all everything", measure.width, 0) +
         "\n";
}

const VerbInfo& verb_info(std::string_view verb) {
  std::vector<std::string> names;
  for (const VerbInfo& info : verbs()) {
    if (info.hidden) continue;
    if (info.name == verb) return info;
    names.emplace_back(info.name);
  }
  throw UsageError(
      fmt::format("help: unknown verb '{}'; verbs: {}{}", visible(verb), joined(names), did_you_mean(verb, names)));
}

}  // namespace

std::string short_help(int width) {
  const Measure measure = measure_of(width);
  return fitted(what_it_is, measure.width, 0) + "\n\n" + examples(first_examples(), measure) + "\n" +
         fitted("gpubench --help lists the verbs; without any argument nothing runs (exit 2)", measure.width, 0) + "\n";
}

std::string help_text(std::string_view verb, int width) {
  constexpr std::ptrdiff_t screen = 40;
  const Measure measure = measure_of(width);
  if (verb.empty()) return overview(measure);
  const VerbInfo& info = verb_info(verb);
  std::string all = verb_text(info, measure);
  return std::ranges::count(all, '\n') <= screen ? all : short_verb_text(info, measure);
}

std::string full_help_text(std::string_view verb, int width) {
  const Measure measure = measure_of(width);
  return verb.empty() ? full_overview(measure) : verb_text(verb_info(verb), measure);
}

namespace {

constexpr std::string_view of_run = R"(  gpubench --suite all                         every suite at the default tier
  gpubench --suite gemm,conv --tier smoke      a few cases, seconds
  gpubench --suite transformer --precision bf16 -v
  gpubench --suite transformer --gpus 1,2,4,8  scaling: each case on that many GPUs
  gpubench --suite collectives --ranks 2       on a CPU: two ranks, each with a share of the processors
  gpubench --filter '^gemm/matmul/' --axis m=768,1536 --check full
  gpubench --suite all --dry-run               what would run, how long, how much memory
  gpubench --suite gemm --inject-error gemm=bit  what a failure looks like
  gpubench --suite memory --json - | jq .gpubench.totals
)";

constexpr std::string_view of_list = R"(  gpubench list suites
  gpubench list --suite attention --tier standard
  gpubench list gemm/matmul/m=512,n=512,k=512/f32/x1
  gpubench list --format json
)";

constexpr std::string_view of_explain = R"(  gpubench explain                             every op, in a line
  gpubench explain layer_norm_backward
  gpubench explain gemm/matmul/m=512,n=512,k=512/f32/x1
  gpubench explain --html ops                  a page of each op, for a browser
)";

constexpr std::string_view of_doctor = R"(  gpubench doctor
  gpubench doctor --color always | less -R
)";

constexpr std::string_view of_compare = R"(  gpubench compare old/report.json new/report.json
  gpubench compare --a old*.json --b new*.json --noise .     several runs a side, and the noise between runs
  gpubench compare a100.json h200.json --format markdown
)";

constexpr std::string_view of_gate =
    R"(  gpubench gate --baseline a*.json --candidate b*.json            three reports a side or more
  gpubench gate --baseline a.json --candidate b.json --noise .    one each, after gpubench calibrate
  gpubench gate --baseline gpubench-baselines/main.json --candidate b*.json --github
)";

constexpr std::string_view of_calibrate =
    R"(  gpubench calibrate --suite gemm --preset gate        ten runs, noise-FINGERPRINT.json
  gpubench calibrate --runs 5 --suite all --tier standard --keep runs
  gpubench calibrate --from runs/*.json                of reports that are there already
)";

constexpr std::string_view of_tune_batch =
    R"(  gpubench tune-batch gpt2_train_step --precision bf16
  gpubench tune-batch conv2d_forward --axis h=56 --axis w=56 --dry-run   by plan alone
  gpubench tune-batch llama_block --tier standard --budget 600 --json tuned.json --svg curve.svg -o tuned.html
)";

constexpr std::string_view of_baseline = R"(  gpubench baseline save main run1.json run2.json run3.json
  gpubench baseline list
  gpubench baseline show main
  gpubench baseline merge both main other
)";

constexpr std::string_view of_impl = R"(  gpubench impl new my_norm --op rms_norm_forward
  gpubench impl new my_gemm --op gemm --lang cuda
  gpubench impl list ./libmy_norm.so --suite norm
  gpubench impl check ./libmy_norm.so
  gpubench run --impl ./libmy_norm.so --versus reference --suite norm
)";

constexpr std::string_view of_selftest = R"(  gpubench selftest
  gpubench selftest --full --json selftest.json
  gpubench selftest --suite gemm --precision bf16 -v
)";

constexpr std::string_view of_determinism = R"(  gpubench determinism
  gpubench determinism --deterministic --suite conv,attention
  gpubench determinism --suite transformer --ranks 1,2,4
  gpubench determinism --save before.json      and after an update of a library or driver:
  gpubench determinism --against before.json
)";

constexpr std::string_view of_soak = R"(  gpubench soak
  gpubench soak --minutes 480 --journal night.jsonl --json night.json
  gpubench soak --read night.jsonl --svg night.svg      sums up a soak that ended or was killed
  gpubench soak --suite gemm,attention --tier quick --minutes 60
  gpubench soak --devices 8 --minutes 60
)";

constexpr std::string_view of_learn = R"(  gpubench learn
  gpubench learn --quick --precision bf16
  gpubench learn -o learn.html --svg charts --json learn.json
  gpubench learn gpt2_train_step --steps 100           its sizes of tier smoke, in minutes
)";

constexpr std::string_view of_predict = R"(  gpubench predict
  gpubench predict --model llama3-8b --gpus 8..128:x2 --from report.json
  gpubench predict --model llama3-405b --gpus 512..16384:x2 --parallel tp=8,pp=8,cp=2,vp=8 --global-batch 2048 --measured 512:1152=55.1,2048:1152=14.2
  gpubench predict --model llama3-70b --gpus 64..2048:x2 --parallel tp=4,pp=4,vp=5 --rate 520 --tokens 15e12 --price-per-hour 2.49
  gpubench predict --model llama3-70b --gpus 512..32768:x4 --parallel tp=8,pp=2 --rate 400 --network 3072:50,7.1
)";

constexpr std::string_view of_simulate = R"(  gpubench simulate transformer/gpt2_train_step --ranks 8,64,1024
  gpubench simulate transformer/gpt2_train_step --ranks 8,64 --from report.json
  gpubench simulate transformer/llama_train_step --axis layers=8 --axis micro=16 --parallel dp=8,pp=8 --parallel dp=32,tp=2
  gpubench simulate transformer/gpt2_train_step --ranks 64 --slow 5=1.1 --network 25
  gpubench simulate transformer/gpt2_train_step --ranks 64 --stop 5=0.001
  gpubench simulate transformer/gpt2_train_step --ranks 64 --slow-link 5=2
  gpubench simulate transformer/gpt2_train_step --ranks 64 --cut 5=0.0001
  gpubench simulate transformer/llama_train_step --parallel dp=16,tp=2 --oversubscribe 4
)";

constexpr std::string_view of_validate = R"(  gpubench validate gpubench-out/20261121T042311Z/report.json
  gpubench validate results/*.json
)";

constexpr std::string_view of_report =
    R"(  gpubench report gpubench-out/20261121T042311Z/report.json      report.html beside it
  gpubench report a100/report.json h200/report.json -o both.html
  gpubench report old.json new.json --label A=before --label B=after
  gpubench report report.json --svg charts --price-per-hour 2.49
)";

constexpr std::string_view of_export = R"(  gpubench export --format csv report.json > report.csv
  gpubench export --format gbench report.json -o new.json      for compare.py benchmarks old.json new.json
  gpubench export --format report --anonymize report.json -o shared.json
  gpubench export --format prometheus report.json -o gpubench.prom      for node_exporter
)";

constexpr std::string_view of_completion =
    R"(  gpubench completion bash > ~/.local/share/bash-completion/completions/gpubench
  gpubench completion fish > ~/.config/fish/completions/gpubench.fish
)";

constexpr std::string_view of_help = R"(  gpubench help run
  gpubench gate --help
)";

constexpr std::string_view of_version = R"(  gpubench version
  gpubench --version
)";

}  // namespace

std::string_view examples_of(Verb verb) {
  switch (verb) {
    case Verb::run: return of_run;
    case Verb::list: return of_list;
    case Verb::explain: return of_explain;
    case Verb::doctor: return of_doctor;
    case Verb::compare: return of_compare;
    case Verb::gate: return of_gate;
    case Verb::calibrate: return of_calibrate;
    case Verb::tune_batch: return of_tune_batch;
    case Verb::baseline: return of_baseline;
    case Verb::impl: return of_impl;
    case Verb::selftest: return of_selftest;
    case Verb::determinism: return of_determinism;
    case Verb::soak: return of_soak;
    case Verb::learn: return of_learn;
    case Verb::predict: return of_predict;
    case Verb::simulate: return of_simulate;
    case Verb::validate: return of_validate;
    case Verb::report_page: return of_report;
    case Verb::export_report: return of_export;
    case Verb::completion: return of_completion;
    case Verb::help: return of_help;
    case Verb::version: return of_version;
    case Verb::man:
    case Verb::probe:
    case Verb::describe_device: break;
  }
  return "";
}

std::string_view first_examples() {
  return R"(  gpubench --suite all --tier smoke   every suite, in seconds: is it right here?
  gpubench --suite all                the default tier, minutes: numbers to keep
  gpubench list suites                what there is to run
)";
}

}  // namespace gpubench
