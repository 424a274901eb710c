#include "harness/measure/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr int min_ranks = 3;  // two have one link and no comparison

std::string name_without_round(const CaseRecord& record) {
  Case c = record.c;
  std::erase_if(c.dims, [](const auto& dim) { return dim.first == "round"; });
  return c.id();
}

// The lower of two middle ones: if half of a rank's links go to slow ranks, the other half shows its speed.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_links(LinkMap& map, const CaseRecord& record) {
  const std::vector<int>& partners = *record.derived.ranks->partners;
  for (int a = 0; a < map.ranks; ++a) {
    const int b = partners.at(static_cast<std::size_t>(a));
    if (b <= a || b >= map.ranks || map.between(a, b) != nullptr) continue;
    Link link{a, b, 0.0, {}, {}};
    const auto runs = static_cast<double>(std::max<std::int64_t>(record.batch, 1));
    std::vector<double> all;
    for (const RoundRecord& round : record.rounds) {
      if (!round.valid || !round.times.ranks || round.times.ranks->size() != partners.size()) continue;
      const std::vector<double>& of_a = (*round.times.ranks)[static_cast<std::size_t>(a)].ns;
      const std::vector<double>& of_b = (*round.times.ranks)[static_cast<std::size_t>(b)].ns;
      std::vector<double> samples;
      for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
        samples.push_back(std::max(of_a[i], of_b[i]) / runs);
      if (samples.empty()) continue;
      link.rounds_ns.push_back(median(samples));
      all.insert(all.end(), samples.begin(), samples.end());
    }
    if (all.empty()) continue;
    link.median_ns = median(all);
    link.lateness.unreliable = timing_unreliable(record.summary);
    map.links.push_back(std::move(link));
  }
}

Lateness lateness_of(double ns, std::span<const double> rounds_ns, double middle_ns, bool unreliable) {
  Lateness lateness{ns / middle_ns - 1.0, 0, static_cast<int>(rounds_ns.size()), unreliable};
  for (const double round : rounds_ns) lateness.rounds_late += round > (1.0 + alike) * middle_ns ? 1 : 0;
  return lateness;
}

std::vector<const Link*> links_of(const LinkMap& map, int rank) {
  std::vector<const Link*> links;
  for (const Link& link : map.links) {
    if (link.a == rank || link.b == rank) links.push_back(&link);
  }
  return links;
}

template <class Value>
double median_over(std::span<const Link* const> links, const Value& value) {
  std::vector<double> values;
  for (const Link* link : links) values.push_back(value(*link));
  return lower_median(std::move(values));
}

Lateness of_rank(const LinkMap& map, int rank) {
  const std::vector<const Link*> links = links_of(map, rank);
  if (links.empty()) return {};
  std::size_t rounds = links.front()->rounds_ns.size();
  for (const Link* link : links) rounds = std::min(rounds, link->rounds_ns.size());
  std::vector<double> rounds_ns;
  for (std::size_t round = 0; round < rounds; ++round)
    rounds_ns.push_back(median_over(links, [round](const Link& link) { return link.rounds_ns[round]; }));
  const auto unreliable = std::ranges::count_if(links, [](const Link* link) { return link->lateness.unreliable; });
  return lateness_of(median_over(links, [](const Link& link) { return link.median_ns; }), rounds_ns, map.middle_ns,
                     2 * unreliable >= std::ssize(links));
}

void compare(LinkMap& map) {
  std::sort(map.links.begin(), map.links.end(),
            [](const Link& x, const Link& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  std::vector<double> middles;
  for (int rank = 0; rank < map.ranks; ++rank) {
    const std::vector<const Link*> links = links_of(map, rank);
    if (!links.empty()) middles.push_back(median_over(links, [](const Link& link) { return link.median_ns; }));
  }
  map.middle_ns = lower_median(std::move(middles));
  for (Link& link : map.links)
    link.lateness = lateness_of(link.median_ns, link.rounds_ns, map.middle_ns, link.lateness.unreliable);
  for (int rank = 0; rank < map.ranks; ++rank) map.of_rank.push_back(of_rank(map, rank));
}

}  // namespace

bool Lateness::is_reliable() const { return !unreliable && late > alike && rounds_late > nearly_always * rounds; }

const Link* LinkMap::between(int a, int b) const {
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& link) {
    return link.a == std::min(a, b) && link.b == std::max(a, b);
  });
  return found == links.end() ? nullptr : &*found;
}

double LinkMap::rate(double ns) const { return message_bytes / (ns * 1e-9); }

std::vector<LinkMap> link_maps(std::span<const CaseRecord> records) {
  std::vector<LinkMap> maps;
  for (const CaseRecord& record : records) {
    const Derived& derived = record.derived;
    if (record.verdict != Verdict::pass || record.c.has_mode("virtual") || !derived.ranks || !derived.ranks->partners ||
        !derived.collective)
      continue;
    const auto ranks = static_cast<int>(derived.ranks->partners->size());
    if (ranks < min_ranks) continue;
    const std::string name = name_without_round(record);
    auto map = std::ranges::find(maps, name, &LinkMap::name);
    if (map == maps.end()) {
      maps.push_back({ranks, name, derived.collective->message_bytes, 0.0, {}, {}});
      map = maps.end() - 1;
    }
    if (map->ranks == ranks) add_links(*map, record);
  }
  std::erase_if(maps, [](const LinkMap& map) { return map.links.empty(); });
  for (LinkMap& map : maps) compare(map);
  return maps;
}

std::string rank_text(int rank, std::span<const RankPlace> places) {
  const auto at = static_cast<std::size_t>(rank);
  return at < places.size() ? fmt::format("{} ({})", rank, places[at].to_string()) : std::to_string(rank);
}

std::vector<LatePart> late_parts(const LinkMap& map, std::span<const RankPlace> places) {
  std::vector<LatePart> parts;
  const auto is_late = [&](int rank) { return map.of_rank[static_cast<std::size_t>(rank)].is_reliable(); };
  for (int rank = 0; rank < map.ranks; ++rank) {
    if (is_late(rank))
      parts.push_back({"rank " + rank_text(rank, places), map.of_rank[static_cast<std::size_t>(rank)]});
  }
  for (const Link& link : map.links) {
    if (link.lateness.is_reliable() && !is_late(link.a) && !is_late(link.b))
      parts.push_back(
          {fmt::format("ranks {} and {}", rank_text(link.a, places), rank_text(link.b, places)), link.lateness});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const LatePart& x, const LatePart& y) { return x.lateness.late > y.lateness.late; });
  return parts;
}

}  // namespace gpubench
