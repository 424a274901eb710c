// What the links between ranks reach, from cases in which ranks exchange in pairs: a case is a round, in which all
// pairs exchange at once, so that all links take as many cases as there are rounds, not as there are pairs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Ranks, and links, that are no further apart than this are alike; and what is so in this share of all looks is so.
inline constexpr double alike = 0.05, nearly_always = 0.8;

/// How late something is: its time over that of the middle link, less 1.
struct Lateness {
  double late = 0.0;
  int rounds_late = 0;  ///< in which it was not alike
  int rounds = 0;
  bool unreliable = false;  ///< the timing says nothing (timing_unreliable()); of a rank: of half of its links
  /// Late, nearly always so, and by a timing that says so.
  [[nodiscard]] bool is_reliable() const;
};

/// Two ranks, the lower first, that sent each other the message at the same time.
struct Link {
  int a = 0, b = 0;
  double median_ns = 0.0;         ///< per run, of the samples, each the longer of both ranks' times
  std::vector<double> rounds_ns;  ///< per run, the median of each valid round
  Lateness lateness;
};

/// The links between the ranks of a run at one size of message.
struct LinkMap {
  int ranks = 0;
  std::string name;  ///< the key of their cases without the round
  double message_bytes = 0.0;
  /// Half of the ranks have a middle link of at most this time. Ranks, not links: where one of four ranks is slow, half
  /// of all links are.
  double middle_ns = 0.0;
  std::vector<Link> links;  ///< by ranks, ascending
  /// Of each rank: the median over its links.
  std::vector<Lateness> of_rank;

  [[nodiscard]] const Link* between(int a, int b) const;
  /// Bytes per second each way of a link that takes so long.
  [[nodiscard]] double rate(double ns) const;
};

/// Those of all passing cases that have RankSpread::partners and at least three ranks, in the order of the cases. None
/// of virtual ranks, which have no links.
[[nodiscard]] std::vector<LinkMap> link_maps(std::span<const CaseRecord> records);

struct LatePart {
  std::string name;  ///< "rank 5 (b, GPU 1)", "ranks 0 (a) and 3 (b)"
  Lateness lateness;
};
/// Ranks whose links are surely late, and other links that are; the latest first. `places`: where ranks are, as far as
/// that is known.
[[nodiscard]] std::vector<LatePart> late_parts(const LinkMap& map, std::span<const RankPlace> places = {});

/// "5 (b, GPU 1)"; "5" where it is not known where it is.
[[nodiscard]] std::string rank_text(int rank, std::span<const RankPlace> places);

}  // namespace gpubench
