// Rates of the links between ranks, from cases in which ranks exchange in pairs. A case is a round of disjoint pairs,
// so the number of cases is the number of rounds, not of pairs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Times within 5% are alike; a property of 80% of all rounds counts as constant.
inline constexpr double alike = 0.05, nearly_always = 0.8;

/// Lateness: time over that of the middle link, minus 1.
struct Lateness {
  double late = 0.0;
  int rounds_late = 0;  ///< in which it was not alike
  int rounds = 0;
  bool unreliable = false;  ///< by timing_unreliable(); of a rank: of half of its links
  /// Late in nearly all rounds, by a reliable timing.
  [[nodiscard]] bool is_reliable() const;
};

/// Two ranks, the lower first, that sent each other the message at the same time.
struct Link {
  int a = 0, b = 0;
  double median_ns = 0.0;         ///< per run; each sample is the longer of both ranks' times
  std::vector<double> rounds_ns;  ///< per run, the median of each valid round
  Lateness lateness;
};

struct LinkMap {
  int ranks = 0;
  std::string name;  ///< the key of their cases without the round
  double message_bytes = 0.0;
  /// Half of the ranks have a middle link of at most this time. Counted by ranks, because one slow rank of four slows
  /// half of all links.
  double middle_ns = 0.0;
  std::vector<Link> links;  ///< by ranks, ascending
  /// Of each rank: the median over its links.
  std::vector<Lateness> of_rank;

  [[nodiscard]] const Link* between(int a, int b) const;
  /// Bytes per second in each direction, for a link of this time.
  [[nodiscard]] double rate(double ns) const;
};

/// Maps of all passing cases with RankSpread::partners and at least three ranks, in case order. None for virtual ranks,
/// which have no links.
[[nodiscard]] std::vector<LinkMap> link_maps(std::span<const CaseRecord> records);

struct LatePart {
  std::string name;  ///< "rank 5 (b, GPU 1)", "ranks 0 (a) and 3 (b)"
  Lateness lateness;
};
/// Ranks with surely late links, then other surely late links; the latest first. `places`: known places of ranks.
[[nodiscard]] std::vector<LatePart> late_parts(const LinkMap& map, std::span<const RankPlace> places = {});

/// "5 (b, GPU 1)"; "5" if its place is unknown.
[[nodiscard]] std::string rank_text(int rank, std::span<const RankPlace> places);

}  // namespace gpubench
