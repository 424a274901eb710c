// The order in which a plan adds up its products (harness/parity/summation_tree.h). Row i of a has a huge number at k =
// i, column j of b its opposite at k = j, and all other numbers are ones: of the sum at (i, j) those ones are left that
// are not in the smallest subtree which holds both i and j. One launch gives all pairs.
//
// Types of a small range can't hold numbers so far apart in one operand. There each pair has a row and a column of its
// own, and both operands share the huge number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/parity/probe_data.h"
#include "harness/parity/probe_sums.h"
#include "harness/parity/summation_tree.h"

namespace gpubench {

/// No tree is read of more positions of k.
inline constexpr std::int64_t most_ordered = 512;

/// The order of some positions of k.
struct OrderReading {
  std::vector<std::int64_t> places;   ///< along k, ascending
  std::optional<SummationTree> tree;  ///< none where no tree explains the results
  [[nodiscard]] std::string words() const;
};

/// Its part of a launch: lines of both sides, from a first one on.
class OrderProbe {
 public:
  /// `data` must outlive it. `sums`: what was read of the sums: how huge a number must be. `denormals`: those of the
  /// inputs are kept. `most`: positions of k.
  OrderProbe(ProbeData& data, std::int64_t first_line, const SumReading& sums, bool denormals, std::int64_t most);
  ~OrderProbe();
  OrderProbe(OrderProbe&&) noexcept;
  OrderProbe& operator=(OrderProbe&&) = delete;

  /// Whether there is something to launch, and neither too few lines nor no number that is huge enough.
  [[nodiscard]] bool usable() const { return design_ != nullptr; }
  /// Whether lines from this one on are as good as all: as many as there are positions, or still many where all are
  /// fewer than that.
  [[nodiscard]] static bool suffice(const ProbeData& data, std::int64_t first_line, std::int64_t most);
  /// Call once the launch's results have been taken. All of k if it fits; else the first ones, and some of all of k.
  [[nodiscard]] std::vector<OrderReading> read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

/// What the readings say of one product: "in order of k"; "the first 64: 16 at once, in order; every 16th: in order".
[[nodiscard]] std::string order_words(const std::vector<OrderReading>& readings, std::int64_t k);

}  // namespace gpubench
