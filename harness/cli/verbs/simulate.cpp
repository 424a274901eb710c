#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/verb.h"
#include "harness/core/text/quantity.h"
#include "harness/simulate/simulate.h"

namespace gpubench {
namespace {

struct SimulateOptions {
  static constexpr int max_ranks = 4096;
  std::vector<int> ranks;  ///< empty: 8, or the next multiple that the layout needs
  std::string from;
  std::optional<double> rate{};  ///< TFLOP/s per device
  double memory_gb_per_s = 3000.0, node_gb_per_s = 450.0, network_gb_per_s = 50.0;
  std::int64_t per_node = 8;
  double oversubscription = 1.0;
  std::vector<std::pair<int, double>> slower;      ///< rank and factor on the time of its ops
  std::vector<std::pair<int, double>> stops;       ///< rank and time of its stop in seconds
  std::vector<std::pair<int, double>> slow_links;  ///< rank and factor on the time of its links
  std::vector<std::pair<int, double>> cuts;        ///< rank and time when its links are cut, in seconds
};

constexpr double nano = 1e-9;

Cluster cluster_of(const Options& options) {
  constexpr double giga = 1e9, tera = 1e12;
  const auto& given = options.of<SimulateOptions>();
  Cluster cluster;
  if (given.rate) cluster.flop_per_s = *given.rate * tera;
  cluster.bytes_per_s = given.memory_gb_per_s * giga;
  cluster.node_bytes_per_s = given.node_gb_per_s * giga;
  cluster.cluster_bytes_per_s = given.network_gb_per_s * giga;
  cluster.ranks_per_node = static_cast<int>(given.per_node);
  cluster.oversubscription = given.oversubscription;
  cluster.slower = {given.slower.begin(), given.slower.end()};
  cluster.stops = {given.stops.begin(), given.stops.end()};
  cluster.slow_links = {given.slow_links.begin(), given.slow_links.end()};
  cluster.cuts = {given.cuts.begin(), given.cuts.end()};
  return cluster;
}

// The first case that the subject names, of tier smoke if possible: declaring all tiers takes seconds.
PlannedCase chosen(const Options& options, const Environment& environment) {
  if (options.subject.empty())
    throw UsageError("simulate needs a case, such as transformer/gpt2_train_step; gpubench list names them");
  Options of_one_rank = options;
  of_one_rank.selection.layouts.clear();  // here with any number of ranks
  Options of_smoke = of_one_rank;
  of_smoke.tier = Tier::smoke;
  std::vector<PlannedCase> found;
  try {
    found = named_cases(of_smoke, environment);
  } catch (const UsageError&) {
    found = named_cases(of_one_rank, environment);
  }
  PlannedCase planned = std::move(found.front());
  if (planned.workload->info().max_ranks < 2) {
    throw UsageError(
        fmt::format("{} runs on one rank only; gpubench list suites names the workloads of several", planned.c.id()));
  }
  return planned;
}

// The times of a report's case on one rank: ops alone, scaled to the step. The time of a fused op goes to its first
// part; the other parts take 0.
MeasuredOps measured_in(const std::string& file, const PlannedCase& planned) {
  Report report;
  try {
    report = read_report(file);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  const auto record = std::ranges::find_if(report.cases, [&](const CaseRecord& one) {
    return one.c.id_without_ranks() == planned.c.id_without_ranks() && one.c.ranks == 1 &&
           one.verdict == Verdict::pass && !one.derived.breakdown.empty();
  });
  if (record == report.cases.end()) {
    throw UsageError(fmt::format(
        "--from: {} has no {}/x1 that passed with its ops timed alone; expected a report of gpubench --filter {}",
        visible(file), planned.c.id_without_ranks(), planned.c.id_without_ranks()));
  }
  double sum_ns = 0.0;
  for (const OpShare& op : record->derived.breakdown) sum_ns += op.median_ns;
  const double scale = sum_ns > 0.0 ? record->summary.median_ns / sum_ns : 1.0;
  MeasuredOps measured;
  for (const OpShare& op : record->derived.breakdown) {
    double left_s = scale * op.median_ns * nano;
    std::string_view labels = op.label;
    while (!labels.empty()) {
      const std::string_view label = labels.substr(0, labels.find('+'));
      measured.emplace(label, left_s);
      left_s = 0.0;
      labels.remove_prefix(std::min(labels.size(), label.size() + 1));
    }
  }
  return measured;
}

struct Sharing {
  int ranks = 1;
  RankLayout parallel;
};

std::string layout_text(const Sharing& sharing) {
  std::vector<std::string> parts = modes_of(sharing.parallel);
  const int replicas = sharing.ranks / sharing.parallel.ranks();
  if (replicas > 1 || parts.empty()) parts.insert(parts.begin(), fmt::format("dp={}", replicas));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<Sharing> sharings_of(const Options& options, const PlannedCase& planned) {
  std::vector<Selection::Layout> layouts = options.selection.layouts;
  const RankLayout named = planned.c.parallel();
  if (!layouts.empty() && named != RankLayout{})
    throw UsageError(
        fmt::format("--parallel: {} already has a layout; leave one of them out", visible(options.subject)));
  if (layouts.empty()) layouts = {{{}, named}};
  std::vector<Sharing> sharings;
  for (const Selection::Layout& layout : layouts) {
    const RankLayout& parallel = layout.parallel;
    const std::string text = fmt::format("{}", fmt::join(modes_of(parallel), ","));
    if (!can_share(planned.workload->info(), parallel))
      throw UsageError(fmt::format("--parallel {}: the ranks of {} cannot", text, planned.c.id_without_ranks()));
    if (!options.of<SimulateOptions>().from.empty() && (parallel.tp > 1 || parallel.cp > 1 || parallel.ep > 1))
      throw UsageError(
          fmt::format("--from: {} has the times of whole ops, but with --parallel {} ranks run parts of them; expected "
                      "dp, fsdp or pp alone",
                      visible(options.of<SimulateOptions>().from), text));
    constexpr int usual = 8;
    std::vector<int> counts = options.of<SimulateOptions>().ranks;
    if (counts.empty() && !layout.dp) counts = {(usual + parallel.ranks() - 1) / parallel.ranks() * parallel.ranks()};
    for (const int ranks : ranks_of(layout, std::move(counts))) {
      if (ranks > SimulateOptions::max_ranks)
        throw UsageError(
            fmt::format("--parallel {}: {} ranks; expected at most {}", text, ranks, SimulateOptions::max_ranks));
      sharings.push_back({ranks, parallel});
    }
  }
  return sharings;
}

struct Size {
  Sharing sharing;
  std::size_t steps = 0;
  int measured = 0;
  Simulated run;
};

Size simulated_on(PlannedCase planned, const Sharing& sharing, const Cluster& cluster, const MeasuredOps& measured) {
  const int ranks = sharing.ranks;
  planned.c.ranks = ranks;
  if (planned.c.parallel() == RankLayout{}) {
    for (std::string& mode : modes_of(sharing.parallel)) planned.c.modes.push_back(std::move(mode));
  }
  const Program program = planned.workload->build(planned.c);
  for (const auto& [flag, named] : {std::pair{"--slow", &cluster.slower},
                                    {"--stop", &cluster.stops},
                                    {"--slow-link", &cluster.slow_links},
                                    {"--cut", &cluster.cuts}}) {
    if (!named->empty() && named->rbegin()->first >= ranks)
      throw UsageError(fmt::format("{}: there is no rank {} of {}", flag, named->rbegin()->first, ranks));
  }
  const SimulatedProgram lanes = lanes_of(program, cluster, measured);
  return {sharing, lanes.launches.size(), lanes.measured, simulate(lanes, cluster)};
}

Json json_of(const Size& size) {
  Json stuck = Json::array(), ranks = Json::array();
  for (const StuckLane& lane : size.run.stuck)
    stuck.push_back({{"rank", lane.rank},
                     {"label", lane.label},
                     {"awaited", lane.awaited},
                     {"cut", lane.cut ? Json(lane.cut->first) : Json()}});
  for (const SimulatedRank& rank : size.run.ranks) {
    ranks.push_back({{"end_s", rank.end_s},
                     {"compute_s", rank.compute_s},
                     {"communication_s", rank.communication_s},
                     {"contention_s", rank.contention_s},
                     {"waiting_s", rank.waiting_s}});
  }
  return {{"ranks", size.sharing.ranks},
          {"steps", size.steps},
          {"measured_ops", size.measured},
          {"end_s", size.run.end_s},
          {"exposed", size.run.exposed()},
          {"stuck", stuck},
          {"stopped", size.run.stopped},
          {"by_rank", ranks},
          {"modes", modes_of(size.sharing.parallel)}};
}

// Exit code 1 if ranks get stuck.
int simulate_command(const Options& options, const Environment& environment) {
  const ResultFile file("--json", options.json.value_or(""), options.writing, environment);
  const PlannedCase planned = chosen(options, environment);
  const Cluster cluster = cluster_of(options);
  const MeasuredOps measured = options.of<SimulateOptions>().from.empty()
                                   ? MeasuredOps{}
                                   : measured_in(options.of<SimulateOptions>().from, planned);
  TextTable table(columns_titled({"ranks>", "parallel", "steps>", "measured>", "end>", "computing>", "in collectives>",
                                  "contention>", "waiting>", "exposed>", ""}));
  Json sizes = Json::array();
  bool any_stuck = false;
  for (const Sharing& sharing : sharings_of(options, planned)) {
    Size size;
    try {
      size = simulated_on(planned, sharing, cluster, measured);
    } catch (const ProgramError& e) {
      throw UsageError(
          fmt::format("{} on {} ranks: {}", planned.c.id_without_ranks(), sharing.ranks, visible(e.what())));
    }
    const auto most = [&](double SimulatedRank::*part) {
      double largest = 0.0;
      for (const SimulatedRank& rank : size.run.ranks) largest = std::max(largest, rank.*part);
      return format_time_ns(largest / nano);
    };
    const std::string stuck = size.run.stuck_reason();
    any_stuck = any_stuck || !stuck.empty();
    table.add(
        {format_count(sharing.ranks), layout_text(sharing), format_count(static_cast<std::int64_t>(size.steps)),
         format_count(size.measured), format_time_ns(size.run.end_s / nano), most(&SimulatedRank::compute_s),
         most(&SimulatedRank::communication_s), most(&SimulatedRank::contention_s), most(&SimulatedRank::waiting_s),
         fmt::format("{:.1f}%", 100.0 * size.run.exposed()), stuck.empty() ? "" : "STUCK: " + stuck},
        stuck.empty() ? Tone::plain : Tone::bad);
    sizes.push_back(json_of(size));
  }
  std::ostream& out = file.prose();
  out << fmt::format("{} in virtual time: {} and {} of a device, {} to its node, {} to others, {} devices a node{}\n\n",
                     planned.c.id_without_ranks(), format_quantity(cluster.flop_per_s, "FLOP/s"),
                     format_quantity(cluster.bytes_per_s, "B/s"), format_quantity(cluster.node_bytes_per_s, "B/s"),
                     format_quantity(cluster.cluster_bytes_per_s, "B/s"), cluster.ranks_per_node,
                     cluster.oversubscription > 1.0
                         ? fmt::format(" with 1/{:g} of their links to others together", cluster.oversubscription)
                         : "")
      << table.text(console_style(options, Stream::out, environment))
      << "\nof the rank with most of each; contention: extra time of its collectives over running alone on their "
         "links;\nexposed: the part of the end that the busiest rank's ops don't explain\n";
  file.write(Json{{"case", planned.c.id_without_ranks()}, {"sizes", sizes}});
  return any_stuck ? exit_codes::verdict_failed : exit_codes::ok;
}

std::vector<Flag> simulate_flags(std::span<const std::string> /*suites*/) {
  return together(
      shared_flags({"--parallel", "--axis", "--force", "--mode", "--color", "--json"}),
      under("select",
            common("numbers of ranks, up to 4096 (default: 8)",
                   row("--ranks", "N,...", "numbers of ranks, up to 4096 (default: 8)",
                       several(Takes::list, own(&SimulateOptions::ranks), whole_from(1, SimulateOptions::max_ranks)))),
            common("ranks whose ops take FACTOR times as long",
                   row("--slow", "RANK=FACTOR,...", "ranks whose ops take FACTOR times as long",
                       several(Takes::list, own(&SimulateOptions::slower), of_rank))),
            common("ranks that stop at this time", row("--stop", "RANK=SECONDS,...", "ranks that stop at this time",
                                                       several(Takes::list, own(&SimulateOptions::stops), of_rank))),
            row("--slow-link", "RANK=FACTOR,...",
                "ranks whose links, in their node and to others, take FACTOR times as long",
                several(Takes::list, own(&SimulateOptions::slow_links), of_rank)),
            common(
                "ranks whose links are cut at this time",
                row("--cut", "RANK=SECONDS,...", "ranks whose links are cut at this time: no collective over them ends",
                    several(Takes::list, own(&SimulateOptions::cuts), of_rank)))),
      under("measure",
            common("a report of the case on one rank, for the times of its ops",
                   row("--from", "FILE",
                       "a report of the case on one rank: each op takes its time alone, scaled so that they add up to "
                       "the step's time",
                       text(own(&SimulateOptions::from)))),
            common("TFLOP/s of a device, without --from (default: 500)",
                   row("--rate", "TFLOPS", "rate of a device for all ops (default: 500)",
                       converted(own(&SimulateOptions::rate), positive_of))),
            row("--memory", "GB/S", "bandwidth of a device's memory (default: 3000)",
                converted(own(&SimulateOptions::memory_gb_per_s), positive_of)),
            common("GB/s of each device to other nodes, one way (default: 50)",
                   row("--network", "GB/S", "bandwidth of each device to other nodes, one way (default: 50)",
                       converted(own(&SimulateOptions::network_gb_per_s), positive_of)))),
      node_flags<SimulateOptions>(),
      under("measure", row("--oversubscribe", "FACTOR",
                           "factor by which links between nodes are slower than the links of a node's devices "
                           "together; all their collectives get fair shares (default: 1)",
                           converted(own(&SimulateOptions::oversubscription), oversubscription_of))),
      subject_argument("CASE"));
}

}  // namespace

Verb simulate_verb() {
  return {.name = "simulate",
          .arguments = "CASE [--ranks N,... flags]",
          .summary = "simulate the ranks of a step in virtual time",
          .description = "Prints when each step ends, exposed communication, and what gets stuck.",
          .examples = R"(  gpubench simulate transformer/gpt2_train_step --ranks 8,64,1024
  gpubench simulate transformer/gpt2_train_step --ranks 8,64 --from report.json
  gpubench simulate transformer/llama_train_step --axis layers=8 --axis micro=16 --parallel dp=8,pp=8 --parallel dp=32,tp=2
  gpubench simulate transformer/gpt2_train_step --ranks 64 --slow 5=1.1 --network 25
  gpubench simulate transformer/gpt2_train_step --ranks 64 --stop 5=0.0001
  gpubench simulate transformer/gpt2_train_step --ranks 64 --slow-link 5=2
  gpubench simulate transformer/gpt2_train_step --ranks 64 --cut 5=0.0001
  gpubench simulate transformer/llama_train_step --parallel dp=16,tp=2 --oversubscribe 4
)",
          .flags = simulate_flags,
          .act = simulate_command,
          .options = SimulateOptions{}};
}

}  // namespace gpubench
