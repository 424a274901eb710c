// Data for attention that reveal its faults: one key, and scores far from 0.
//
// One key. Data on which each query of attention attends to one key that is known beforehand: its row of o is that
// key's row of v, and the gradients have few terms, so that every element of a large output is judged at the cost of
// making the data. A key that is left out, taken twice or not allowed to be seen, another head's, a tile in the wrong
// place: all show.
//
// Keys are named by signs: with n bits that tell t keys apart, element x of key j is k or -k as bit x mod n of j says,
// turned by signs of its head's own. A query has the signs of its key, so that scores of others are less by at least
// 2 |scale q k| floor(d / n). That is made 110 or more: exp(-110) is 0 in f32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// Keys [first, end).
struct KeyRange {
  std::int64_t first = 0, end = 0;
  [[nodiscard]] bool contains(std::int64_t key) const { return first <= key && key < end; }
};

/// The keys that a query sees by causal and window.
[[nodiscard]] KeyRange keys_before(const Attention& attention, const AttentionExtents& e, std::int64_t query);

/// The key that a query attends to on these data: any that it sees, -1 where it sees none; with documents, which begin
/// anywhere, its own.
[[nodiscard]] std::int64_t one_key(const Attention& attention, const AttentionExtents& e, std::int64_t batch,
                                   std::int64_t query);

/// The data, for a forward (q, k, v) or a backward (the saved o and lse, and do, too). None where scores can't be told
/// apart by so much: with softcap, scale 0, or heads too narrow for so many keys.
[[nodiscard]] std::vector<RevealingData> one_key_data(const CallSpecs& op);

/// Data for a forward or a backward on which scores are 140 to 280 above 0 for every other query and below it for the
/// rest, where softcap lets them: a key past the end, read as zeros, has a score of 0 and with it all the weight; a
/// running maximum that does not start at minus infinity, or is missing, leaves sums of 0 or infinity. In a backward,
/// which is given the log-sum-exp, the keys of a query have equal scores. None with documents in a backward.
[[nodiscard]] std::vector<RevealingData> scores_far_from_zero(const CallSpecs& op);

/// -3, -1, 1 or 3, as a hash says.
[[nodiscard]] inline double odd_number(std::uint64_t hash) { return 2.0 * static_cast<double>(hash % 4) - 3.0; }

/// Adds to bounds what the textbook, which then adds up the one key alone, leaves out: of each of `terms` terms at most
/// a product with the smallest normal number of f32, where exponentials may stop, and with numbers below 2^20.
void allow_for_what_is_left_out(std::span<Expected> judged, std::int64_t terms);

}  // namespace gpubench
