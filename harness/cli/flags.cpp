#include "harness/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "harness/predict/transformer_model.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

constexpr std::array verb_table{
    VerbInfo{Verb::run, "run", "[flags]", "check, time and report cases (the default verb)"},
    VerbInfo{Verb::list, "list", "[suites | CASE] [flags]", "list suites and cases, or show one case in detail",
             "One case in detail: tensors, ops, work, memory."},
    VerbInfo{Verb::explain, "explain", "[OP | CASE] [flags]",
             "show what an op computes: formula, operands, error bound",
             "Also attributes and gradient, or the ops of a case."},
    VerbInfo{Verb::doctor, "doctor", "[flags]", "report the state of this machine and what disturbs measurements"},
    VerbInfo{Verb::compare, "compare", "A.json B.json... [flags]", "compare reports: speed ratios with 95% intervals"},
    VerbInfo{Verb::gate, "gate", "--baseline FILE... --candidate FILE... [flags]",
             "fail if a candidate is slower than its baseline, or wrong",
             "Exit code 0 or 1; 4 where nothing can be concluded."},
    VerbInfo{Verb::calibrate, "calibrate", "[flags, and those of run]",
             "measure run-to-run noise, for compare and gate",
             "compare and gate read the noise file that it writes (--noise)."},
    VerbInfo{Verb::tune_batch, "tune-batch", "WORKLOAD [flags, and those of run]",
             "find the largest batch that fits, and the fastest",
             "The largest by plan, then by trial; prints the rates of the batches between."},
    VerbInfo{Verb::baseline, "baseline", "save NAME REPORT... | list | show NAME | merge NAME FROM...",
             "keep reports that later runs are compared with"},
    VerbInfo{Verb::impl, "impl", "new NAME --op OP | list FILE | check FILE [flags that select]",
             "start, list or check your own implementation of an op", "gpubench run --impl runs it."},
    VerbInfo{Verb::selftest, "selftest", "[flags]", "inject faults and verify that the check finds them",
             "Faults of the catalogue in every op, and correct launches, which must raise no alarm."},
    VerbInfo{Verb::determinism, "determinism", "[flags]", "test whether results are bitwise reproducible",
             "From run to run, op by op, as a graph, in another batch, and with other numbers of ranks and threads."},
    VerbInfo{Verb::soak, "soak", "[flags]", "repeat launches for hours and report any that differs",
             "Compares the bits of each launch with those of a launch that was judged."},
    VerbInfo{Verb::learn, "learn", "[WORKLOAD] [flags]", "train small models and judge single steps against fp64",
             "In each recipe; draws loss curves."},
    VerbInfo{Verb::predict, "predict", "[--model NAME --gpus N... flags]", "predict step time and cost on more devices",
             "Without a model, prints how well it predicts published results."},
    VerbInfo{Verb::simulate, "simulate", "CASE [--ranks N,... flags]", "simulate the ranks of a step in virtual time",
             "Prints when each step ends, what communication is exposed, and what gets stuck."},
    VerbInfo{Verb::validate, "validate", "FILE...", "verify the schema and the consistency of reports"},
    VerbInfo{Verb::report_page, "report", "R.json... [flags]",
             "write an HTML page with charts of one report or several", "Also the charts as files."},
    VerbInfo{Verb::export_report, "export", "--format FORMAT FILE [flags]",
             "convert a report to another tool's format"},
    VerbInfo{Verb::completion, "completion", "bash|zsh|fish", "print a completion script for a shell"},
    VerbInfo{Verb::help, "help", "[VERB]", "show the help of a verb"},
    VerbInfo{Verb::version, "version", "", "print the version and how it was built"},
    VerbInfo{Verb::man, "man", "", "", "", true},
    VerbInfo{Verb::probe, "probe", "", "", "", true},
    VerbInfo{Verb::describe_device, "describe-device", "", "", "", true},
};

std::vector<std::string> verb_words() {
  std::vector<std::string> words;
  for (const VerbInfo& verb : verb_table) {
    if (!verb.hidden) words.emplace_back(verb.name);
  }
  return words;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const TransformerModel& model : transformer_models()) names.emplace_back(model.name);
  return names;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDefinition* op : definitions()) names.emplace_back(op->kind().name);
  return names;
}

// What stands after a verb without a flag.
std::vector<FlagSection> argument_sections() {
  using enum Verb;
  const auto files = [](std::string_view type) { return row("files", type, "", all_of(Takes::many, &Options::files)); };
  const auto words = [](ValueKind value, std::vector<std::string> known) {
    Flag flag = row("words", "", "", all_of(Takes::many, in_compare(&CompareOptions::words), std::move(known)));
    flag.value = value;
    return flag;
  };
  const auto subject = [](std::string_view type, std::vector<std::string> known = {}) {
    return row("subject", type, "", text(&Options::subject, std::move(known)));
  };
  return {
      {{compare}, "", {words(ValueKind::file, {})}},
      {{baseline}, "", {words(ValueKind::file, {"save", "list", "show", "merge"})}},
      {{impl}, "", {words(ValueKind::file, {"new", "list", "check"})}},
      {{impl},
       "start",
       {
           row("--op", "OP", "the op of the new file (impl new)", text(&Options::impl_op)),
           row("--lang", "c|cuda|python", "language of the new file (default: c)",
               one_of(&Options::impl_language, {"c", "cuda", "python"})),
           row("--strict", "", "exit 1 if calls are left untried (impl check)",
               turn_on(in_compare(&CompareOptions::strict))),
       }},
      {{selftest},
       "check",
       {
           row("--quick", "", "small ops and 10,000 clean launches, in less than a minute (default)",
               {Takes::nothing, [](Options& o, const std::string&, const std::string&) { o.full = false; }}),
           row("--full", "", "every op, and a million clean launches", turn_on(&Options::full)),
           row("--clean-launches", "N", "number of correct launches, which must raise no alarm",
               converted(&Options::clean_launches, whole_from<std::int64_t>(1))),
       }},
      {{determinism},
       "check",
       {
           row("--runs", "N", "how often each case is run (default: 5)",
               converted(&Options::repetitions, whole_from(2))),
           row("--threads", "N,...",
               "on the CPU, compare with runs of N threads (default: 1); 0 in the list: compare with none",
               several(Takes::list, &Options::other_threads, whole_from(0))),
           row("--save", "FILE", "keep what every case left, as hashes", text(&Options::save_bits)),
           row("--against", "FILE", "compare with hashes that were kept: of another library, driver or device",
               text(&Options::bits_before)),
       }},
      {{soak},
       "check",
       {
           row("--minutes", "N", "how long (default: 5)", converted(&Options::minutes, minutes_of)),
           row("--devices", "N|NAME,...",
               "several devices at once, which vote: the first N GPUs, those of these names (cuda:0,cuda:2), or N "
               "equal shares of the processors",
               all_of(Takes::list, &Options::devices)),
           row("--journal", "FILE", "what happens, line by line, on the disk at once: it survives a kill",
               text(&Options::journal)),
           row("--read", "FILE", "sum up the journal of a soak that ended or was killed; runs nothing",
               text(&Options::read_journal)),
           row("--svg", "FILE", "a chart of speed, clocks and temperature over time, with what went wrong",
               text(&Options::svg)),
       }},
      {{learn},
       "check",
       {
           row("--steps", "N", "steps of training by itself; the first ten are also judged one by one (default: 32)",
               converted(&Options::learning_steps, whole_from(8, 10'000))),
           row("--quick", "", "one model and 16 steps, in seconds", turn_on(&Options::brief_learning)),
       }},
      {{predict},
       "select",
       {
           common("llama3-70b, gpt3-175b, ...",
                  row("--model", "NAME", fmt::format("the model: {}", joined(model_names())),
                      one_of(in_predict(&PredictOptions::model), model_names()))),
           common("numbers of devices: 512, 64..16384:x2, 100..1000:+100",
                  row("--gpus", "N|A..B:xF,...", "how many devices: 512, 64..16384:x2, 100..1000:+100",
                      all_of(Takes::list, in_predict(&PredictOptions::sizes)))),
           common("layout of a replica: tp, pp, vp, cp, ep, mbs (default: tp=1)",
                  row("--parallel", "AXIS=N,...",
                      "how a replica lies on them: tensor tp, pipeline pp in vp parts a stage, context cp, expert ep, "
                      "and sequences of a micro-batch mbs (default: tp=1); what is left is data-parallel",
                      text(in_predict(&PredictOptions::layout)))),
           row("--optimizer", "sharded|replicated",
               "sharded: each replica updates a part, gradients are scattered and weights gathered (default); "
               "replicated: each updates all, gradients are all-reduced",
               one_of(in_predict(&PredictOptions::optimizer), {"sharded", "replicated"})),
           common("sequences per step",
                  row("--global-batch", "N", "sequences of a step, whatever the size",
                      converted(in_predict(&PredictOptions::global_batch), whole_from<std::int64_t>(1, 1 << 30)))),
           row("--micro-batches", "N", "of each replica, without --global-batch (default: 32)",
               converted(in_predict(&PredictOptions::micro_batches), whole_from<std::int64_t>(1, 1 << 20))),
           row("--sequence", "N", "positions of a sequence (default: 8192)",
               converted(in_predict(&PredictOptions::sequence), whole_from<std::int64_t>(1, 1 << 26))),
       }},
      {{predict},
       "measure",
       {
           common("one or two measured steps", row("--measured", "GPUS[:BATCH]=SECONDS,...",
                                                   "one or two measured steps of this model in this layout",
                                                   all_of(Takes::list, in_predict(&PredictOptions::measured)))),
           common("or: model TFLOP/s of a device",
                  row("--rate", "TFLOPS", "or: the model TFLOP/s of a device while it works",
                      converted(in_predict(&PredictOptions::rate), positive_of))),
           common("or: a report with a training step",
                  row("--from", "FILE", "or: a report, of which the fastest training step of one device gives the rate",
                      text(in_predict(&PredictOptions::from)))),
       }},
      {{simulate},
       "select",
       {
           common("numbers of ranks, up to 4096 (default: 8)",
                  row("--ranks", "N,...", "numbers of ranks, up to 4096 (default: 8)",
                      several(Takes::list, in_simulate(&SimulateOptions::ranks),
                              whole_from(1, SimulateOptions::most_ranks)))),
           common("ranks whose ops take FACTOR times as long",
                  row("--slow", "RANK=FACTOR,...", "ranks whose ops take FACTOR times as long",
                      several(Takes::list, in_simulate(&SimulateOptions::slower), of_rank))),
           common("ranks that stop at this time",
                  row("--stop", "RANK=SECONDS,...", "ranks that stop at this time",
                      several(Takes::list, in_simulate(&SimulateOptions::stops), of_rank))),
           row("--slow-link", "RANK=FACTOR,...",
               "ranks whose links, in their node and to others, take FACTOR times as long",
               several(Takes::list, in_simulate(&SimulateOptions::slow_links), of_rank)),
           common(
               "ranks whose links are cut at this time",
               row("--cut", "RANK=SECONDS,...", "ranks whose links are cut at this time: no collective over them ends",
                   several(Takes::list, in_simulate(&SimulateOptions::cuts), of_rank))),
       }},
      {{simulate},
       "measure",
       {
           common("a report of the case on one rank, for the times of its ops",
                  row("--from", "FILE",
                      "a report of the case on one rank: ops take what each took alone, scaled so that together they "
                      "take what the step did",
                      text(in_simulate(&SimulateOptions::from)))),
           common("TFLOP/s of a device, without --from (default: 500)",
                  row("--rate", "TFLOPS", "of a device, whatever it computes (default: 500)",
                      converted(in_predict(&PredictOptions::rate), positive_of))),
           row("--memory", "GB/S", "of a device's memory (default: 3000)",
               converted(in_simulate(&SimulateOptions::memory_gb_per_s), positive_of)),
           common("GB/s of each device to other nodes, one way (default: 50)",
                  row("--network", "GB/S", "of each device to other nodes, one way (default: 50)",
                      converted(in_simulate(&SimulateOptions::network_gb_per_s), positive_of))),
       }},
      {{predict, simulate},
       "measure",
       {
           row("--nvlink", "GB/S", "of each device to others of its node, one way (default: 450)",
               converted(in_predict(&PredictOptions::node_gb_per_s), positive_of)),
           row("--gpus-per-node", "N", "that NVLink joins (default: 8)",
               converted(in_predict(&PredictOptions::per_node), whole_from<std::int64_t>(1, 1 << 20))),
       }},
      {{simulate},
       "measure",
       {
           row("--oversubscribe", "FACTOR",
               "links between nodes reach so many times less than the links of a node's devices together, of which all "
               "their collectives get fair shares (default: 1)",
               converted(in_simulate(&SimulateOptions::oversubscription), oversubscription_of)),
       }},
      {{predict},
       "measure",
       {
           row("--network", "[GPUS:]GB/S,...",
               "of each device beyond its node, one way, while all send (default: 50); by how many GPUs a switch "
               "or pod joins, then beyond: 256:50,25",
               all_of(Takes::list, in_predict(&PredictOptions::network))),
           row("--memory-size", "GB", "of a device (default: 80): what a step needs beyond it is told",
               converted(in_predict(&PredictOptions::memory_gb), positive_of)),
       }},
      {{predict},
       "output",
       {
           row("--svg", "FILE", "a chart of the rate of a device", text(&Options::svg)),
           row("--tokens", "N", "to train on: 15e12; gives days",
               converted(in_predict(&PredictOptions::tokens), tokens_of)),
           row("--price-per-hour", "PRICE", "of one device, in any currency; with --tokens: what the training costs",
               converted(&Options::price_per_hour, price_of)),
       }},
      {{validate}, "", {files("FILE...")}},
      {{export_report}, "", {files("FILE")}},
      {{report_page}, "", {files("REPORT...")}},
      {{probe}, "", {subject("driver|gpus|libraries")}},
      {{list}, "", {subject("suites|CASE", {"suites"})}},
      {{explain}, "", {subject("OP|CASE", op_names())}},
      {{tune_batch, learn}, "", {subject("WORKLOAD")}},
      {{simulate}, "", {subject("CASE")}},
      {{help}, "", {subject("VERB", verb_words())}},
      {{completion}, "", {row("subject", "bash|zsh|fish", "", choice<Shell>(&Options::shell))}},
  };
}

}  // namespace

std::span<const VerbInfo> verbs() { return verb_table; }

std::vector<std::string> Flag::names() const {
  std::vector<std::string> all{long_name};
  for (const std::string& other : others) all.insert(other.starts_with("--") ? all.end() : all.begin(), other);
  return all;
}

std::vector<Flag> flags_of(Verb verb, std::span<const std::string> suites) {
  std::vector<Flag> all;
  for (const auto& sections : {compare_sections(), run_sections(suites), output_sections(), argument_sections()}) {
    for (const FlagSection& section : sections) {
      if (std::find(section.verbs.begin(), section.verbs.end(), verb) == section.verbs.end()) continue;
      for (const Flag& flag : section.flags) all.emplace_back(flag).group = section.group;
    }
  }
  return all;
}

std::vector<std::string> words_for_runs(const std::vector<std::string>& words) {
  std::vector<std::string> own;  // flags, all with a value
  for (const Flag& flag : flags_of(Verb::calibrate)) {
    if (flag.group != "compare" && flag.long_name != "--mode") continue;
    for (std::string& name : flag.names()) own.push_back(std::move(name));
  }
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string flag = word.substr(0, word.find('='));
    if (i == 0 && word == "calibrate") continue;
    if (word.starts_with("-o") && word.size() > 2) continue;  // its value is in the same word
    if (std::find(own.begin(), own.end(), flag) == own.end()) {
      kept.push_back(word);
    } else if (flag == word) {
      ++i;  // its value is the next word
    }
  }
  return kept;
}

PartedWords parted(Verb verb, const std::vector<std::string>& own_words, std::span<const std::string_view> names) {
  const std::vector<Flag> flags = flags_of(verb);
  PartedWords all;
  for (std::size_t i = 0; i < own_words.size(); ++i) {
    std::vector<std::string>& place = std::ranges::find(names, own_words[i]) != names.end() ? all.taken : all.others;
    const auto flag = std::ranges::find(flags, own_words[i], &Flag::long_name);
    place.push_back(own_words[i]);
    if (flag != flags.end() && flag->takes != Takes::nothing && i + 1 < own_words.size())
      place.push_back(own_words[++i]);
  }
  return all;
}

namespace {

// "gemm=25%": the words on both sides of the sign, of which the first may not be empty.
std::pair<std::string, std::string> assignment(std::string_view flag, const std::string& word, const char* expected) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw UsageError(fmt::format("{}: '{}' is not {}", flag, visible(word), expected));
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace

std::size_t choose(std::string_view flag, const std::string& word, const std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw UsageError(
      fmt::format("{}: '{}' is not one of {}{}", flag, visible(word), joined(known), did_you_mean(word, known)));
}

std::vector<std::string> split_at_commas(std::string_view list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

double share_of(std::string_view flag, const std::string& word) {
  const bool percent = word.ends_with("%");
  const std::optional<double> typed = number<double>(std::string_view(word).substr(0, word.size() - (percent ? 1 : 0)));
  if (typed && !percent && *typed >= 1.0 && std::isfinite(*typed))
    throw UsageError(fmt::format("{0}: '{1}' would be {2:.6g}%: write {1}% or {3:.6g}", flag, visible(word),
                                 100.0 * *typed, *typed / 100.0));
  const double share = typed.value_or(0.0) / (percent ? 100.0 : 1.0);
  if (!(share > 0.0 && share < 10.0))
    throw UsageError(fmt::format("{}: '{}' is no share such as 3% or 0.03", flag, visible(word)));
  return share;
}

std::pair<std::string, std::vector<std::int64_t>> axis_of(std::string_view flag, const std::string& word) {
  const auto [name, values] = assignment(flag, word, "NAME=N,... as in --axis k=256,512");
  std::pair<std::string, std::vector<std::int64_t>> axis{name, {}};
  for (const std::string& value : split_at_commas(values))
    axis.second.push_back(whole<std::int64_t>(fmt::format("{} {}", flag, name), value, 0));
  return axis;
}

Selection::Layout layout_of(std::string_view flag, const std::string& word) {
  Selection::Layout layout;
  double parts = 1.0;
  for (const std::string& part : split_at_commas(word)) {
    if (bool* const option = option_of_ranks(layout.parallel, part)) {
      *option = true;
      continue;
    }
    const auto [axis, ranks] =
        assignment(flag, part, "tp=N, fsdp=N, ep=N, cp=N, pp=N, vp=N, dp=N, sp or ring, as in --parallel dp=2,tp=4");
    const int count = whole<int>(fmt::format("{} {}", flag, axis), ranks, 1);
    parts *= count;
    if (int* const along = ranks_along(layout.parallel, axis)) {
      *along = count;
    } else if (axis == "dp") {
      layout.dp = count;
    } else {
      throw UsageError(
          fmt::format("{}: axis '{}' is not known; known: tp (tensors), fsdp (weights), ep (experts), cp (sequences), "
                      "pp (layers), vp "
                      "(parts of each pp), dp (batches)",
                      flag, visible(axis)));
    }
  }
  if (parts > Mesh::most_ranks)
    throw UsageError(fmt::format("{}: '{}' makes {:.6g} ranks and parts; expected at most {}", flag, visible(word),
                                 parts, Mesh::most_ranks));
  if (layout.parallel.scatters_tokens && layout.parallel.tp == 1)
    throw UsageError(fmt::format("{}: sp scatters tokens over the ranks of tp; give tp=N as well", flag));
  if (layout.parallel.passes_keys && layout.parallel.cp == 1)
    throw UsageError(fmt::format("{}: ring passes keys round the ranks of cp; give cp=N as well", flag));
  if (layout.parallel.vp > 1 && layout.parallel.pp == 1)
    throw UsageError(fmt::format("{}: vp cuts the stages of pp into parts; give pp=N as well", flag));
  return layout;
}

Slowdown slowdown_of(std::string_view flag, const std::string& word) {
  const auto [op, share] = assignment(flag, word, "OP=PERCENT as in gemm=25%");
  return {op, share_of(flag, share)};
}

InjectedError error_of(std::string_view flag, const std::string& word) {
  const auto [op, kind] = assignment(flag, word, "OP=KIND as in gemm=bit");
  return {op, choose<ErrorKind>(flag, kind)};
}

namespace {

// From `least` (0: above it) to `most`.
double number_between(std::string_view flag, const std::string& word, double least, double most,
                      std::string_view what) {
  const double value = number<double>(word).value_or(0.0);
  if (!(value > 0.0 && value >= least && value <= most))
    throw UsageError(fmt::format("{}: '{}' is no {}", flag, visible(word), what));
  return value;
}

}  // namespace

constexpr double least_positive = 1e-9;  // smaller ones overflow what is divided by them

double price_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, least_positive, 1e9, "price such as 2.49");
}

double positive_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, least_positive, 1e9, "number from 1e-9 to 1e9 such as 12.5");
}

double oversubscription_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 1.0, 1e9, "number from 1 such as 2");
}

double tokens_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 1.0, 1e18, "number of tokens such as 15e12");
}

double minutes_of(std::string_view flag, const std::string& word) {
  return number_between(flag, word, 0.0, 365.0 * 24.0 * 60.0, "number of minutes such as 5 or 0.5");
}

std::pair<int, double> of_rank(std::string_view flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  const auto rank = number<int>(word.substr(0, equals));
  const auto value = equals == std::string::npos ? std::nullopt : number<double>(word.substr(equals + 1));
  if (!rank || *rank < 0 || !value || !(*value == 0.0 || (*value >= least_positive && *value <= 1e9)))
    throw UsageError(fmt::format("{}: '{}' is not RANK=NUMBER such as 3=1.5", flag, visible(word)));
  return {*rank, *value};
}

std::optional<double> deadline_of(std::string_view flag, const std::string& word) {
  constexpr double most_s = 30.0 * 24.0 * 3600.0;
  if (word == "auto") return std::nullopt;
  if (word == "off") return 0.0;
  const double seconds = number<double>(word).value_or(0.0);
  if (!(seconds > 0.0 && seconds <= most_s))
    throw UsageError(fmt::format("{}: '{}' is not auto, off or a number of seconds such as 120", flag, visible(word)));
  return seconds;
}

unsigned mode_of(std::string_view flag, const std::string& word) {
  constexpr unsigned owner_reads_and_writes = 0600, most = 0777;
  const unsigned mode = number<unsigned>(word, 8).value_or(0);
  if (mode > most || (mode & owner_reads_and_writes) != owner_reads_and_writes)
    throw UsageError(fmt::format("{}: '{}' is no mode from 0600 to 0777 such as 0644", flag, visible(word)));
  return mode;
}

namespace {

constexpr std::string_view prefix = "GPUBENCH_";

std::vector<std::string> known_variables() {
  std::vector<std::string> known;
  for (const VerbInfo& verb : verbs()) {
    for (const Flag& flag : flags_of(verb.verb)) {
      if (flag.is_visible()) known.push_back(variable_of(flag.long_name));
    }
  }
  return known;
}

}  // namespace

std::string variable_of(const std::string& flag) {
  std::string text(prefix);
  for (const char c : flag.substr(std::min(flag.find_first_not_of('-'), flag.size()))) {
    text += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

bool switched_on(const std::string& variable, const std::string& value) {
  if (value == "on" || value == "1") return true;
  if (value == "off" || value == "0") return false;
  throw UsageError(fmt::format("{}: '{}' is not one of on, off, 1, 0", variable, visible(value)));
}

std::vector<std::string> unknown_variables(std::span<const std::string> names) {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> words;  // without the prefix, which would make any two of them alike
  for (const std::string& one : known) words.push_back(one.substr(prefix.size()));
  std::vector<std::string> sentences;
  for (const std::string& one : names) {
    if (!one.starts_with(prefix) || std::find(known.begin(), known.end(), one) != known.end()) continue;
    const std::string close = nearest(one.substr(prefix.size()), words);
    sentences.push_back(fmt::format("{} is set, but no flag is called so{}", visible(one),
                                    close.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, close)));
  }
  return sentences;
}

std::string variables_text(std::span<const std::pair<std::string, std::string>> variables) {
  std::vector<std::string> words;
  for (const auto& [variable, value] : variables) words.push_back(fmt::format("{}={}", variable, visible(value)));
  return joined(words, " ");
}

}  // namespace gpubench
