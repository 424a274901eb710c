// Suite collectives: sizes as in nccl-tests, the message's bytes (defined in reference/ops/collective.h); token
// exchanges by number and width of tokens. Each rank has different data, its part of one tensor over all ranks.
// Sums are of whole numbers small enough that 64 of them add up exactly, in any order, and are judged bitwise. Mode
// "normal" has data as in training, which round.
#include "reference/ops/collective.h"

#include <algorithm>

#include "reference/ops/routing.h"
#include "reference/ops/token_exchange.h"
#include "reference/ops/token_groups.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

constexpr int max_ranks = 64;

/// Whole numbers, `max_ranks` of which add up without rounding.
Fill whole_numbers(DType type) {
  const auto exact = static_cast<std::int64_t>(1.0 / unit_roundoff(type)) / max_ranks;
  const std::int64_t limit = std::clamp<std::int64_t>(exact, 1, std::int64_t{1} << 20);
  return Fill::integers(-limit, limit);
}

/// Elements of a message of the case's size, at least one.
std::int64_t elements(const Case& c, const Recipe& r) {
  return std::max<std::int64_t>(c.dim("bytes") * 8 / bits_of(r.tensor), 1);
}
/// Elements per rank of a message of the case's size, at least one.
std::int64_t elements_of_each(const Case& c, const Recipe& r) {
  return std::max<std::int64_t>(elements(c, r) / c.ranks, 1);
}

/// `count(rank)` elements on each rank, different on each.
template <class Count>
std::vector<ValueId> on_each(Program& p, const Case& c, const Recipe& r, const Count& count, Fill fill) {
  std::vector<ValueId> x;
  for (int rank = 0; rank < c.ranks; ++rank) {
    TensorSpec spec = tensor(name_on_rank("x", rank, c.ranks), r.tensor, {count(rank)}, Role::gradient, fill);
    spec.placement = Placement::shard(0, rank, c.ranks);
    x.push_back(p.add(std::move(spec)));
  }
  return x;
}

std::vector<ValueId> on_each(Program& p, const Case& c, const Recipe& r, std::int64_t count, Fill fill) {
  return on_each(
      p, c, r, [count](int) { return count; }, fill);
}

template <Reduction reduction>
Program reduced_everywhere(const Case& c, const Recipe& r) {
  Program p;
  const Fill fill = c.has_mode("normal") ? Fill::normal(1.0) : whole_numbers(r.tensor);
  const std::vector<ValueId> x = on_each(p, c, r, elements(c, r), fill);
  all_reduce(p, {c.ranks, reduction}, r.math, "y", x, c.has_mode("in_place"));
  return p;
}

Program gathered(const Case& c, const Recipe& r) {
  Program p;
  const std::int64_t part = elements_of_each(c, r);
  if (c.has_mode("in_place")) {
    all_gather_in_place(p, {c.ranks}, "y", on_each(p, c, r, part * c.ranks, Fill::normal(1.0)));
  } else {
    all_gather(p, {c.ranks}, "y", on_each(p, c, r, part, Fill::normal(1.0)));
  }
  return p;
}

Program scattered(const Case& c, const Recipe& r) {
  Program p;
  const std::vector<ValueId> x = on_each(p, c, r, elements_of_each(c, r) * c.ranks, whole_numbers(r.tensor));
  reduce_scatter(p, {c.ranks}, r.math, "y", x, c.has_mode("in_place"));
  return p;
}

Program sent_to_all(const Case& c, const Recipe& r) {
  Program p;
  const int root = c.ranks / 2;  // not 0, so that the check notices an ignored root
  TensorSpec spec =
      tensor(name_on_rank("x", root, c.ranks), r.tensor, {elements(c, r)}, Role::parameter, Fill::normal(1.0));
  spec.placement = Placement::on(root, c.ranks);
  broadcast(p, {c.ranks, root}, "y", p.add(std::move(spec)));
  return p;
}

AllToAll even(const Case& c, const Recipe& r) {
  const auto pairs = static_cast<std::size_t>(c.ranks) * static_cast<std::size_t>(c.ranks);
  return {c.ranks, std::vector<std::int64_t>(pairs, elements_of_each(c, r))};
}

/// Different shares per peer, as of tokens sent to experts. The half shares between ranks are empty instead.
AllToAll uneven(const Case& c, const Recipe& r) {
  AllToAll exchange = even(c, r);
  const std::int64_t each = elements_of_each(c, r);
  for (int from = 0; from < c.ranks; ++from) {
    for (int to = 0; to < c.ranks; ++to) {
      const int share = (3 * from + 2 * to + 1) % 4;  // half, one, one and a half or two even shares
      exchange.counts[static_cast<std::size_t>(from * c.ranks + to)] =
          share == 0 && from != to ? 0 : each * (share + 1) / 2;
    }
  }
  return exchange;
}

template <AllToAll (*counts)(const Case&, const Recipe&)>
Program exchanged(const Case& c, const Recipe& r) {
  Program p;
  const AllToAll exchange = counts(c, r);
  const auto sent = [&](int rank) {
    std::int64_t sum = 0;
    for (int peer = 0; peer < c.ranks; ++peer) sum += exchange.count(rank, peer);
    return sum;
  };
  all_to_all(p, exchange, "y", on_each(p, c, r, sent, Fill::normal(1.0)));
  return p;
}

Program passed_round(const Case& c, const Recipe& r) {
  Program p;
  send_recv(p, {c.ranks, 1}, "y", on_each(p, c, r, elements(c, r), Fill::normal(1.0)));
  return p;
}

Program passed_in_pairs(const Case& c, const Recipe& r) {
  Program p;
  send_recv(p, {c.ranks, 1, static_cast<int>(c.dim("round"))}, "y",
            on_each(p, c, r, elements(c, r), Fill::normal(1.0)));
  return p;
}

/// Rows per expert on each rank, routed from random logits by set-up ops.
std::vector<ValueId> routed_sizes(Program& p, const Case& c, const Recipe& r) {
  p.begin(Phase::setup);
  std::vector<ValueId> sizes;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const auto named = [&](const char* what) { return name_on_rank(what, rank, c.ranks); };
    TensorSpec logits =
        tensor(named("logits"), r.tensor, {c.dim("t"), c.dim("experts")}, Role::activation, Fill::normal(1.0));
    logits.placement = Placement::shard(0, rank, c.ranks);
    const RoutingForward routed =
        routing_forward(p, {.k = c.dim("k")}, r.math, named("routing"), p.add(std::move(logits)));
    sizes.push_back(group_tokens(p, {.experts = c.dim("experts")}, named("groups"), routed.indices).sizes);
  }
  p.begin(Phase::timed);
  return sizes;
}

/// Rows in order of their experts: `times` as many as one rank's tokens need.
std::vector<ValueId> expert_rows(Program& p, const Case& c, const Recipe& r, int times) {
  std::vector<ValueId> rows;
  for (int rank = 0; rank < c.ranks; ++rank) {
    TensorSpec spec = tensor(name_on_rank("x", rank, c.ranks), r.tensor, {times * c.dim("t") * c.dim("k"), c.dim("h")},
                             Role::activation, Fill::normal(1.0));
    spec.placement = Placement::shard(0, rank, c.ranks);
    rows.push_back(p.add(std::move(spec)));
  }
  return rows;
}

Program dispatched(const Case& c, const Recipe& r) {
  Program p;
  const std::vector<ValueId> sizes = routed_sizes(p, c, r);
  dispatch_tokens(p, {c.ranks}, "y", expert_rows(p, c, r, 1), sizes);
  return p;
}

Program returned(const Case& c, const Recipe& r) {
  Program p;
  const std::vector<ValueId> sizes = routed_sizes(p, c, r);
  return_tokens(p, {c.ranks}, "y", expert_rows(p, c, r, c.ranks), sizes);
  return p;
}

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = kib * kib;

std::string size_text(std::int64_t bytes) {
  if (bytes % mib == 0) return std::to_string(bytes / mib) + " MiB";
  if (bytes % kib == 0) return std::to_string(bytes / kib) + " KiB";
  return std::to_string(bytes) + " bytes";
}

/// `what`: the label; empty: the size.
Point message(std::int64_t bytes, const std::string& what, Tier tier, std::vector<std::string> recipes = {},
              std::vector<std::string> modes = {}, Cadence cadence = Cadence::streaming) {
  return {
      {{"bytes", bytes}}, what.empty() ? size_text(bytes) : what, tier, std::move(recipes), std::move(modes), cadence};
}

Grid sizes(std::vector<std::string> recipes = {"f32", "bf16", "f16"}) {
  Grid grid;
  grid.recipes = std::move(recipes);
  grid.points = {
      message(64 * kib, "", Tier::smoke, {"f32"}),
      message(64 * mib, "", Tier::quick, {"f32"}),
      message(64 * mib, "", Tier::standard),
      message(8, "", Tier::standard),
      message(kib, "", Tier::standard),
      message(32 * kib, "", Tier::standard),
      message(mib, "", Tier::standard),
      message(8 * mib, "", Tier::standard),
      message(256 * mib, "", Tier::standard),
      message(1024 * mib, "", Tier::large),
      message(8, "latency", Tier::standard, {"f32"}, {}, Cadence::isolated),
      message(32 * kib, "latency", Tier::standard, {"f32"}, {}, Cadence::isolated),
  };
  return grid;
}

Grid with(Grid grid, std::vector<Point> more) {
  grid.points.insert(grid.points.end(), more.begin(), more.end());
  return grid;
}

Grid reductions() {
  return with(sizes({"f64", "f32", "bf16", "f16"}),
              {
                  message(64 * kib, "", Tier::smoke, {"bf16"}),
                  message(8, "latency", Tier::quick, {"f32"}, {}, Cadence::isolated),
                  message(4, "edge: one element", Tier::quick, {"f32"}),
                  message(1000004, "edge: odd count", Tier::quick, {"f32", "bf16"}),
                  message(25 * 1000 * 1000, "pytorch ddp bucket", Tier::quick, {"f32"}),
                  message(mib, "values that round", Tier::quick, {"f32", "bf16"}, {"normal"}),
              });
}

Grid in_place_too(Grid grid) {
  return with(std::move(grid), {
                                   message(64 * kib, "", Tier::quick, {"f32"}, {"in_place"}),
                                   message(64 * mib, "", Tier::standard, {}, {"in_place"}),
                               });
}

/// Bandwidth and latency of links, for every round of the pairing of max_ranks ranks.
Grid rounds_of_all_pairs() {
  Grid grid;
  grid.recipes = {"f32"};
  for (Point point : {message(64 * kib, "", Tier::smoke), message(64 * mib, "", Tier::quick),
                      message(8, "latency", Tier::standard, {}, {}, Cadence::isolated)}) {
    point.dims.emplace_back("round", 0);
    for (int round = 1; round <= rounds_of_pairs(max_ranks); ++round) {
      point.dims.back().second = round;
      grid.points.push_back(point);
    }
  }
  return grid;
}

/// t tokens per rank, to k experts each: DeepSeek-V3 (arXiv 2412.19437) with the batches of DeepEP's README, Mixtral
/// 8x7B (arXiv 2401.04088), Qwen3-30B-A3B (arXiv 2505.09388).
Grid tokens_of_experts() {
  const auto tokens = [](std::int64_t t, std::int64_t experts, std::int64_t k, std::int64_t h, std::string label,
                         Tier tier, std::vector<std::string> recipes = {}) {
    return Point{{{"t", t}, {"experts", experts}, {"k", k}, {"h", h}}, std::move(label), tier, std::move(recipes)};
  };
  Grid grid;
  grid.recipes = {"f32", "bf16"};
  grid.points = {tokens(64, 8, 2, 1024, "mixtral-8x7b, a quarter of its width", Tier::smoke, {"f32"}),
                 tokens(512, 128, 8, 2048, "qwen3-30b-a3b", Tier::quick),
                 tokens(33, 16, 3, 77, "edge: rows that fill no pack", Tier::standard),
                 tokens(4096, 8, 2, 4096, "mixtral-8x7b", Tier::standard),
                 tokens(128, 256, 8, 7168, "deepseek-v3, one token of each sequence", Tier::standard),
                 tokens(4096, 256, 8, 7168, "deepseek-v3", Tier::large)};
  return grid;
}

WorkloadInfo of_ranks(std::string name, std::string description) {
  WorkloadInfo info{std::move(name), std::move(description), "", PrimaryMetric::bytes_per_s,
                    "messages",      CacheMode::cold};
  info.min_ranks = 2;
  info.max_ranks = max_ranks;
  return info;
}

std::shared_ptr<const Workload> collective(std::string name, std::string description, Grid grid,
                                           Program (*build)(const Case&, const Recipe&)) {
  return declare(
      {of_ranks(std::move(name), std::move(description)), std::move(grid), build, [](const Case&) { return 1.0; }});
}

std::shared_ptr<const Workload> pairs(std::string name, std::string description) {
  WorkloadInfo info = of_ranks(std::move(name), std::move(description));
  info.fits = [](const Dims& dims, int ranks) { return dims.back().second <= rounds_of_pairs(ranks); };
  return declare({std::move(info), rounds_of_all_pairs(), passed_in_pairs, [](const Case&) { return 1.0; }});
}

std::shared_ptr<const Workload> exchange(std::string name, std::string description,
                                         Program (*build)(const Case&, const Recipe&)) {
  WorkloadInfo info = of_ranks(std::move(name), std::move(description));
  info.fits = [](const Dims& dims, int ranks) { return dims[1].second % ranks == 0; };
  return declare({std::move(info), tokens_of_experts(), build, [](const Case&) { return 1.0; }});
}

}  // namespace

Suite collectives() {
  return {"collectives",
          "what several ranks do together, from one element up",
          {
              collective("all_reduce", "the sum over all ranks, on every rank", reductions(),
                         reduced_everywhere<Reduction::sum>),
              collective("all_reduce_avg", "the average over all ranks, on every rank", in_place_too(sizes()),
                         reduced_everywhere<Reduction::average>),
              collective("all_reduce_max", "the maximum over all ranks, on every rank", sizes(),
                         reduced_everywhere<Reduction::maximum>),
              collective("all_gather", "the parts of all ranks, on every rank", in_place_too(sizes()), gathered),
              collective("reduce_scatter", "the sum over all ranks, a part of it on each", in_place_too(sizes()),
                         scattered),
              collective("broadcast", "one rank's tensor, on every rank", sizes(), sent_to_all),
              collective("all_to_all", "a block from each rank to each", sizes(), exchanged<even>),
              collective("all_to_all_uneven", "blocks of different sizes, some empty", sizes(), exchanged<uneven>),
              exchange("dispatch_tokens", "rows of tokens to the ranks of their experts", dispatched),
              exchange("return_tokens", "rows of tokens back from the ranks of their experts", returned),
              collective("send_recv", "from each rank to the next, around the ring", sizes(), passed_round),
              pairs("send_recv_pairs", "exchanges in pairs, all pairs of a round at once"),
          }};
}

}  // namespace gpubench::suites
