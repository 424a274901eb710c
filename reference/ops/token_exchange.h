// Sends rows of tokens to the ranks of their experts, and back: an all_to_all whose counts are data. Lepikhin et al.,
// "GShard", arXiv 2006.16668; without a capacity, as in Gale et al., "MegaBlocks", arXiv 2211.15841. The ranks have
// equal parts of the experts, in order. S, the message size, is a rank's own rows; (n - 1) / n of it counts as on the
// wire, the average for even routing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "reference/ops/collective.h"

namespace gpubench {

struct TokenExchange {
  int ranks = 1;
  static void visit(auto&& attribute) { attribute("ranks", &TokenExchange::ranks); }
};

inline constexpr OpKind dispatch_tokens_kind{"dispatch_tokens", "x* sizes*", "y* own_sizes*",
                                             defaults_of<TokenExchange>, R"(
Every rank gets the rows for its experts from all ranks.
x: [n, h], on each rank rows in order of their experts, as permute_tokens makes them
sizes: i32 [experts], how many of the rank's rows are for each expert
y: [ranks n, h], the rows for the rank's own experts
own_sizes: i32 [experts / ranks], how many rows of y are for each of these experts

Rank r has experts / ranks experts, from r experts / ranks. y has rows in order of experts, and for each expert in
order of the sending ranks; the remaining rows are 0. Negative sizes, or a sum above the rows of x, are invalid.

Source: Lepikhin et al., "GShard", arXiv 2006.16668; Gale et al., "MegaBlocks", arXiv 2211.15841)"};

inline constexpr OpKind return_tokens_kind{"return_tokens", "y* sizes*", "x*", defaults_of<TokenExchange>, R"(
Every rank gets its rows back: what dispatch_tokens did, undone. Each of the two is the other's gradient.
y: [ranks n, h], on each rank rows for its own experts
sizes: i32 [experts], as dispatch_tokens read them
x: [n, h], in the order in which dispatch_tokens read them; rows beyond those of `sizes` are 0

Source: as dispatch_tokens)"};

[[nodiscard]] bool exchanges_tokens(OpKind kind);

struct DispatchedTokens {
  std::vector<ValueId> y, own_sizes;
};
/// `x`, `sizes`: one per rank that the program holds. `group` and errors as for all collectives (collective.h).
DispatchedTokens dispatch_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                 std::span<const ValueId> x, std::span<const ValueId> sizes,
                                 const RankGroup& group = {});
std::vector<ValueId> return_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                   std::span<const ValueId> y, std::span<const ValueId> sizes,
                                   const RankGroup& group = {});

// For backends; the textbook does not use it.

struct ExchangeOperands {
  bool dispatches = true;                 ///< false: returns
  Tensor rows, sizes, result, own_sizes;  ///< own_sizes: of a dispatch
  std::int64_t own_rows = 0;              ///< rows of each member's own tokens
  std::int64_t row_bytes = 0;
};
[[nodiscard]] ExchangeOperands exchange_operands(const OpCall& call, std::span<const Tensor> inputs,
                                                 std::span<const Tensor> outputs, int member);

/// Rows of one expert that move between a member's own rows and the rank of the expert.
struct RowRun {
  int member = 0;          ///< the other end
  std::int64_t own = 0;    ///< first row among a member's own
  std::int64_t there = 0;  ///< first row among those for a rank's experts
  std::int64_t rows = 0;
};

/// Row moves for given sizes. Negative sizes count as 0, and rows beyond a member's are omitted, so that invalid data
/// cause no access out of bounds.
class TokenRoutes {
 public:
  /// `sizes`: by member, then by expert; `rows`: each member's own.
  TokenRoutes(std::span<const std::int32_t> sizes, int members, std::int64_t rows);

  /// Runs that `member` sends, by expert, and receives, by own expert and then member. None is empty.
  [[nodiscard]] std::vector<RowRun> sent(int member) const;
  [[nodiscard]] std::vector<RowRun> received(int member) const;
  /// Filled rows of a member's result; the rest are 0.
  [[nodiscard]] std::int64_t result_rows(bool dispatches, int member) const;
  /// Rows that `member` receives, by own expert.
  [[nodiscard]] std::vector<std::int32_t> own_sizes(int member) const;

 private:
  [[nodiscard]] std::int64_t size(int member, int expert) const {
    return sizes_[static_cast<std::size_t>(member) * static_cast<std::size_t>(experts_) +
                  static_cast<std::size_t>(expert)];
  }
  [[nodiscard]] int own_experts() const { return experts_ / members_; }

  int members_, experts_;
  std::vector<std::int64_t> sizes_;
};

struct ExchangeTasks {
  std::vector<CopyTask> copies;
  std::span<std::byte> cleared;
};
/// `tensors`: the call's inputs, then its outputs, in host memory. Reads all sizes, and writes the member's own_sizes.
[[nodiscard]] ExchangeTasks exchange_tasks(const OpCall& call, std::span<const Tensor> tensors, int member);

}  // namespace gpubench
