// check_case(): consistency within a case.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "harness/core/recipe.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

bool counts(double sample) { return std::isfinite(sample) && sample > 0.0; }

class CaseConsistency {
 public:
  CaseConsistency(const CaseRecord& record, const Node& node, Problems& problems)
      : record_(record), node_(node), problems_(problems) {}

  void check() {
    identity();
    verdict();
    for (std::size_t i = 0; i < record_.parity.ops.size(); ++i)
      op(record_.parity.ops[i], node_.at("parity").at("ops").at(i));
    std::set<std::string> kinds;
    for (std::size_t i = 0; record_.parity.passed && i < record_.parity.passed->size(); ++i) {
      const Node node = node_.at("parity").at("passed").at(i);
      passed_ops((*record_.parity.passed)[i], node);
      require(kinds.insert((*record_.parity.passed)[i].kind).second, node.at("kind"), "is there twice");
    }
    parity();
    const bool countable = rounds(record_.rounds, record_.batch, node_);
    if (countable) summary();
    if (countable && record_.verdict == Verdict::pass) rates();
    if (record_.unfinished) unfinished(*record_.unfinished, node_.at("unfinished"));
  }

 private:
  [[nodiscard]] bool passed() const { return record_.verdict == Verdict::pass; }

  void say(const Node& place, std::string_view why) { problems_.add(place.complaint(why)); }

  void require(bool holds, const Node& place, std::string_view why) {
    if (!holds) say(place, why);
  }

  void compare(const Node& place, double told, double found, std::string_view source, double scale = 0.0) {
    if (!nearly(told, found, scale)) say(place, fmt::format("is {}, but {} {}", told, source, found));
  }

  void part(const char* key, const std::string& text) {
    require(text.find('/') == std::string::npos, node_.at(key),
            fmt::format("is \"{}\", which cannot be a part of an id", visible(text)));
  }

  void identity() {
    const Case& c = record_.c;
    part("suite", c.suite);
    part("workload", c.workload);
    part("recipe", c.recipe);
    for (const std::string& mode : c.modes) part("modes", mode);
    for (const auto& [name, extent] : c.dims) {
      require(!name.empty() && name.find_first_of("/=,") == std::string::npos, node_.at("params"),
              fmt::format("has a member \"{}\", which cannot be a part of an id", visible(name)));
    }
  }

  void verdict() {
    const Node place = node_.at("status");
    Verdict worst = record_.verdict;
    for (const OpParity& op : record_.parity.ops) worst = worse(worst, op.verdict);
    for (const PlanArithmetic& plan : arithmetic()) worst = worse(worst, plan.verdict);
    require(worst == record_.verdict, place,
            fmt::format("is {}, but an op's is {}", name(record_.verdict), name(worst)));
    require(passed() == record_.reason.empty(), node_.at("reason"),
            passed() ? "is not empty, although the case passed" : "is empty, although the case did not pass");
    if (!passed()) return;
    require(!record_.parity.ops.empty(), node_.at("parity").at("ops"),
            "is empty: a case without judged ops cannot pass");
    require(record_.batch >= 1, node_.at("batch"), "is 0, although the case passed");
    require(record_.copies >= 1, node_.at("copies"), "is 0, although the case passed");
    require(!record_.rounds.empty(), node_.at("rounds"), "is empty, although the case passed");
  }

  [[nodiscard]] std::vector<PlanArithmetic> arithmetic() const {
    return record_.parity.arithmetic.value_or(std::vector<PlanArithmetic>{});
  }

  void op(const OpParity& op, const Node& node) {
    const bool pass = op.verdict == Verdict::pass;
    require(op.judged <= op.elements, node.at("judged"), fmt::format("is {} of {} elements", op.judged, op.elements));
    if (op.projected) {
      require(*op.projected <= op.elements, node.at("projected"),
              fmt::format("is {} of {} elements", *op.projected, op.elements));
    }
    require(op.bad <= op.judged, node.at("bad"), fmt::format("is {} of {} judged elements", op.bad, op.judged));
    require(op.mutations_rejected <= op.mutations, node.at("mutations_rejected"),
            fmt::format("is {} of {} mutations", op.mutations_rejected, op.mutations));
    require(pass == op.reason.empty(), node.at("reason"),
            pass ? "is not empty, although the op passed" : "is empty, although the op did not pass");
    if (!pass) return;
    require(op.judged > 0, node.at("judged"), "is 0, although the op passed");
    require(op.bad == 0, node.at("bad"), fmt::format("is {}, although the op passed", op.bad));
    require(op.error_over_bound <= 1.0, node.at("error_over_bound"),
            fmt::format("is {}, although the op passed", op.error_over_bound));
    require(op.mutations > 0 && op.mutations_rejected == op.mutations, node.at("mutations_rejected"),
            fmt::format("is {} of {}: the check must reject all", op.mutations_rejected, op.mutations));
    if (op.worst) worst(op, node.at("worst"));
  }

  void passed_ops(const PassedOps& sums, const Node& node) {
    require(sums.judged >= sums.ops && sums.judged <= sums.elements, node.at("judged"),
            fmt::format("is {} of {} elements of {} ops", sums.judged, sums.elements, sums.ops));
    require(sums.mutations >= sums.ops, node.at("mutations"),
            fmt::format("is {}, expected at least {}: one for each op", sums.mutations, sums.ops));
    const bool bounded = std::ranges::any_of(record_.parity.ops, [&](const OpParity& op) {
      return op.phase == sums.phase && !(op.error_over_bound < sums.error_over_bound);
    });
    require(
        bounded && sums.error_over_bound <= 1.0, node.at("error_over_bound"),
        fmt::format("is {}, expected at most 1 and at most the largest of its phase in ops", sums.error_over_bound));
  }

  // The narrowest type that an op of the case may store; of all types for unknown recipes, casts and quantizing ops.
  [[nodiscard]] DType narrowest(const OpParity& op) const {
    const auto all = recipes();
    const auto known = std::ranges::find(all, record_.c.recipe, &Recipe::name);
    if (known == all.end() || op.kind.starts_with("quantize") || op.kind == "cast") return DType::f4_e2m1;
    return std::max({known->tensor, known->operand, known->gradient_operand},
                    [](DType a, DType b) { return unit_roundoff(a) < unit_roundoff(b); });
  }

  // The worst element of a passing op must be within its bound, except for the rounding to its type.
  void worst(const OpParity& op, const Node& node) {
    const Worst& w = *op.worst;
    if (std::isnan(w.want) || std::isinf(w.want) || std::isinf(w.got) || !std::isfinite(w.bound)) return;
    const DType type = narrowest(op);
    if (std::isnan(w.got) && bits_of(type) <= 8) return;  // overflow in e4m3
    const double rounding =
        2.0 * unit_roundoff(type) * std::max({std::fabs(w.got), std::fabs(w.want), smallest_normal(type)});
    require(std::fabs(w.got - w.want) <= w.bound + rounding, node.at("got"),
            fmt::format("is {}, which is not within {} of {}, although the op passed", w.got, w.bound, w.want));
  }

  void parity() {
    const Node node = node_.at("parity");
    double largest = 0.0;
    for (const OpParity& op : record_.parity.ops) {
      if (!(op.error_over_bound <= largest)) largest = op.error_over_bound;
    }
    compare(node.at("error_over_bound"), record_.parity.error_over_bound, largest, "the largest of its ops is");
    require(!record_.parity.implementations || record_.parity.passed, node,
            "has implementations of ops in passed, but lacks \"passed\"");
    if (const auto& tensors = record_.parity.end_to_end) {
      for (std::size_t i = 0; i < tensors->size(); ++i) {
        const EndToEndTensor& tensor = (*tensors)[i];
        require(!passed() || tensor.error <= tensor.allowed, node.at("end_to_end").at(i).at("error"),
                "is more than was allowed, although the case passed");
      }
    }
    const std::vector<PlanArithmetic> plans = arithmetic();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const bool pass = plans[i].verdict == Verdict::pass;
      require(pass == plans[i].reason.empty(), node.at("arithmetic").at(i).at("status"),
              pass ? "is pass, although there is a reason" : "is not pass, although there is no reason");
    }
    const bool named = std::ranges::any_of(record_.parity.ops, [&](const OpParity& op) {
      return op.label == record_.parity.worst_op && !(op.error_over_bound < largest);
    });
    require(named || (record_.parity.ops.empty() && record_.parity.worst_op.empty()), node.at("worst_op"),
            fmt::format("is \"{}\", which is not an op with the largest error", visible(record_.parity.worst_op)));
  }

  void unfinished(const Unfinished& left, const Node& node) {
    require(record_.verdict == Verdict::skipped, node, "is set, although the case was not skipped");
    (void)rounds(left.rounds, left.batch, node);
  }

  // Checks rounds; false if there is nothing to summarize. `node`: contains them and the batch.
  bool rounds(const std::vector<RoundRecord>& all, std::int64_t batch, const Node& node) {
    const std::size_t before = problems_.count();
    bool any = false;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (!all[r].valid) {
        require(!all[r].note.empty(), node.at("rounds").at(r).at("note"), "is empty: an invalid round needs a reason");
        continue;
      }
      any = true;
      samples(all[r], node.at("rounds").at(r));
    }
    if (!any) return false;
    if (batch < 1) say(node.at("batch"), "is 0, although there are rounds");
    return problems_.count() == before && batch >= 1;
  }

  void samples(const RoundRecord& round, const Node& node) {
    const std::vector<double>& device = round.times.device_ns;
    const std::vector<double>& wall = round.times.wall_ns;
    require(!device.empty(), node.at("device_ns"), "is empty, although the round is valid");
    require(wall.size() == device.size(), node.at("wall_ns"),
            fmt::format("has {} samples, device_ns has {}", wall.size(), device.size()));
    all_count(device, node.at("device_ns"));
    all_count(wall, node.at("wall_ns"));
    if (round.times.ranks) ranks(*round.times.ranks, device, node.at("ranks"));
  }

  void all_count(const std::vector<double>& samples, const Node& node) {
    const auto bad = std::find_if_not(samples.begin(), samples.end(), counts);
    if (bad == samples.end()) return;
    say(node.at(static_cast<std::size_t>(bad - samples.begin())),
        fmt::format("is {}, which cannot be a time of a valid round", *bad));
  }

  void ranks(const std::vector<RankTimes>& ranks, const std::vector<double>& longest, const Node& node) {
    require(ranks.size() == static_cast<std::size_t>(record_.c.ranks), node,
            fmt::format("has {} elements, the case has {} ranks", ranks.size(), record_.c.ranks));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      all_count(ranks[rank].ns, node.at(rank).at("ns"));
      if (ranks[rank].ns.size() == longest.size()) continue;
      say(node.at(rank).at("ns"),
          fmt::format("has {} samples, device_ns has {}", ranks[rank].ns.size(), longest.size()));
      return;
    }
    for (std::size_t i = 0; i < longest.size(); ++i) {
      double most = 0.0;
      for (const RankTimes& rank : ranks) most = std::max(most, rank.ns[i]);
      if (nearly(most, longest[i])) continue;
      say(node, fmt::format("has {} ns as the longest of sample {}, device_ns has {}", most, i, longest[i]));
      return;
    }
  }

  void summary() {
    const Summary& told = record_.summary;
    const Node node = node_.at("summary");
    const bool concluded = passed() || record_.verdict == Verdict::unverified || told.rounds > 0;
    if (!concluded) return;  // ended before its rounds were summarized
    const Summary found = summarize(record_.rounds, record_.batch);
    constexpr std::string_view source = "its samples make";
    const auto count = [&](const char* key, std::int64_t is, std::int64_t should) {
      require(is == should, node.at(key), fmt::format("is {}, but {} {}", is, source, should));
    };
    count("rounds", told.rounds, found.rounds);
    count("samples", told.samples, found.samples);
    count("severe", told.severe, found.severe);
    const double ns = found.median_ns;
    for (const auto& [key, member] : {std::pair{"median_ns", &Summary::median_ns},
                                      {"ci95_low_ns", &Summary::ci95_low_ns},
                                      {"ci95_high_ns", &Summary::ci95_high_ns},
                                      {"mad_ns", &Summary::mad_ns},
                                      {"min_ns", &Summary::min_ns},
                                      {"p10_ns", &Summary::p10_ns},
                                      {"p90_ns", &Summary::p90_ns},
                                      {"mean_ns", &Summary::mean_ns}}) {
      compare(node.at(key), told.*member, found.*member, source, ns);
    }
    compare(node.at("round_sd"), told.round_sd, found.round_sd, source, 1.0);
    compare(node.at("drift"), told.drift, found.drift, source, 1.0);
    for (const std::string& flag : found.flags) {
      require(std::find(told.flags.begin(), told.flags.end(), flag) != told.flags.end(), node.at("flags"),
              fmt::format("lacks \"{}\", which its samples make true", flag));
    }
  }

  void rates() {
    const Derived& d = record_.derived;
    const Node node = node_.at("derived");
    const double seconds = record_.summary.median_ns * 1e-9;
    if (!(seconds > 0.0)) return;
    const auto rate = [&](const char* key, double told, double work) {
      compare(node.at(key), told, work / seconds, "work and median make");
    };
    if (d.ranks && d.ranks->partners) partners(*d.ranks->partners, node.at("ranks").at("partners"));
    rate("flop_per_s", d.flop_per_s, d.flop);
    rate("bytes_per_s", d.bytes_per_s, d.bytes);
    const std::string& unit = d.headline_unit;
    const double headline = unit == "FLOP/s" ? d.flop_per_s : unit == "B/s" ? d.bytes_per_s : d.items_per_s;
    require(unit == "FLOP/s" || unit == "B/s" || unit == d.item + "/s", node.at("headline_unit"),
            fmt::format("is \"{}\", expected FLOP/s, B/s or {}/s", visible(unit), visible(d.item)));
    compare(node.at("headline"), d.headline, headline, "the rate of that unit is");
    double alone_ns = 0.0;
    for (const OpShare& op : d.breakdown) alone_ns += op.median_ns;
    if (alone_ns > 0.0) {
      compare(node.at("remainder"), d.remainder, 1.0 - alone_ns / record_.summary.median_ns, "the medians make", 1.0);
    }
    for (std::size_t i = 0; i < d.breakdown.size(); ++i) {
      if (!node.at("breakdown").at(i).has("share")) continue;  // computed by the reader
      compare(node.at("breakdown").at(i).at("share"), d.breakdown[i].share,
              d.breakdown[i].median_ns / record_.summary.median_ns, "the medians make", 1.0);
    }
    if (d.peak && d.peak->peak && d.peak->of_peak) {
      compare(node.at("peak").at("of_peak"), *d.peak->of_peak, d.peak->rate / *d.peak->peak, "rate over peak is", 1.0);
    }
  }

  void partners(const std::vector<int>& with, const Node& node) {
    bool mutual = with.size() == static_cast<std::size_t>(record_.c.ranks);
    for (std::size_t rank = 0; mutual && rank < with.size(); ++rank) {
      const auto other = static_cast<std::size_t>(with[rank]);
      mutual = with[rank] >= 0 && other < with.size() && static_cast<std::size_t>(with[other]) == rank;
    }
    require(mutual, node, fmt::format("is not a valid pairing of {} ranks", record_.c.ranks));
  }

  const CaseRecord& record_;
  const Node& node_;
  Problems& problems_;
};

}  // namespace

bool nearly(double a, double b, double scale) {
  constexpr double relative = 1e-9;
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
  return std::fabs(a - b) <= relative * std::max({std::fabs(a), std::fabs(b), std::fabs(scale)});
}

void check_case(const CaseRecord& record, const Node& node, Problems& problems) {
  CaseConsistency(record, node, problems).check();
}

}  // namespace gpubench
