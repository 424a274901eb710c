// Rows of tokens brought to the ranks that have their experts, and back: an all_to_all whose counts are data. Lepikhin
// et al., "GShard", arXiv 2006.16668; without a capacity, as in Gale et al., "MegaBlocks", arXiv 2211.15841.
//
// The experts are in equal parts on the ranks of a collective, in order. A message's size, S, is what a rank has of its
// own rows; (n - 1) / n of it are counted as on the wire, which is so on average where routing is even: how many rows
// cross is data.
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
x: [n, h], on each rank rows in order of their experts, as permute_tokens leaves them
sizes: i32 [experts], how many of its rows are for each
y: [ranks n, h], the rows for the rank's own experts
own_sizes: i32 [experts / ranks], how many of them are for each of these

Rank r has experts r experts / ranks and on. y has one expert's rows behind the other's, and of an expert what came from
rank 0, from rank 1, ...; rows beyond are 0. A negative size, or more rows than x has, has no right answer.

Source: Lepikhin et al., "GShard", arXiv 2006.16668; Gale et al., "MegaBlocks", arXiv 2211.15841)"};

inline constexpr OpKind return_tokens_kind{"return_tokens", "y* sizes*", "x*", defaults_of<TokenExchange>, R"(
Every rank gets its rows back: what dispatch_tokens did, undone. Each of the two is the other's gradient.
y: [ranks n, h], on each rank rows for its own experts
sizes: i32 [experts], as dispatch_tokens read them
x: [n, h], in the order that dispatch_tokens read them in; rows beyond those of `sizes` are 0

Source: as dispatch_tokens)"};

[[nodiscard]] bool exchanges_tokens(OpKind kind);

struct DispatchedTokens {
  std::vector<ValueId> y, own_sizes;  ///< by rank that the program holds
};
/// `x`, `sizes`: one of each rank that the program holds. `group`, and errors thrown, as those of all collectives.
DispatchedTokens dispatch_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                 std::span<const ValueId> x, std::span<const ValueId> sizes,
                                 const RankGroup& group = {});
std::vector<ValueId> return_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                   std::span<const ValueId> y, std::span<const ValueId> sizes,
                                   const RankGroup& group = {});

// For backends; the textbook does not use it.

/// What one member of an exchange has.
struct ExchangeOperands {
  bool dispatches = true;                 ///< or returns
  Tensor rows, sizes, result, own_sizes;  ///< own_sizes: of a dispatch
  std::int64_t own_rows = 0;              ///< that every member has of its own
  std::int64_t row_bytes = 0;
};
/// `inputs`, `outputs`: of all members.
[[nodiscard]] ExchangeOperands exchange_operands(const OpCall& call, std::span<const Tensor> inputs,
                                                 std::span<const Tensor> outputs, int member);

/// Rows of one expert that go from a member's own rows to the rank that has it.
struct RowRun {
  int member = 0;          ///< at the other end
  std::int64_t own = 0;    ///< the first, among those that a member has of its own
  std::int64_t there = 0;  ///< and among those for the experts of a rank
  std::int64_t rows = 0;
};

/// Which rows go where, for sizes that are there. Sizes below 0 are as 0, and rows beyond those that a member has are
/// left out: whatever the data are, nothing is read or written elsewhere.
class TokenRoutes {
 public:
  /// `sizes`: by member, by expert; `rows`: what each member has of its own.
  TokenRoutes(std::span<const std::int32_t> sizes, int members, std::int64_t rows);

  /// What `member` sends, by expert, and what it gets, by its own experts and then by member. No run is empty.
  [[nodiscard]] std::vector<RowRun> sent(int member) const;
  [[nodiscard]] std::vector<RowRun> received(int member) const;
  /// How many rows of a member's result there are; the rest of them are 0.
  [[nodiscard]] std::int64_t result_rows(bool dispatches, int member) const;
  /// How many rows `member` gets for each of its experts.
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

/// What a member does once all inputs are ready, between ranks that can read each other's memory.
struct ExchangeTasks {
  std::vector<CopyTask> copies;
  std::span<std::byte> cleared;  ///< becomes 0
};
/// `tensors`: those of the call's inputs, then of its outputs, in the host's memory. Reads all sizes, and writes the
/// member's own_sizes.
[[nodiscard]] ExchangeTasks exchange_tasks(const OpCall& call, std::span<const Tensor> tensors, int member);

}  // namespace gpubench
