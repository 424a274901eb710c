#include "reference/ops/token_exchange.h"

#include <algorithm>
#include <utility>

#include "reference/ops/collective_members.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

OpCall exchange_call(const Program& program, OpKind kind, const TokenExchange& attributes, std::string label,
                     const Members& members, std::span<const ValueId> rows, std::span<const ValueId> sizes) {
  expect_equal_specs(program, kind, members, rows);
  expect_equal_specs(program, kind, members, sizes);
  if (rows.size() != members.held.size() || sizes.size() != rows.size())
    throw ProgramError(std::string(kind.name) + ": " + std::to_string(rows.size()) + " tensors of rows and " +
                       std::to_string(sizes.size()) + " of sizes; expected one each of " +
                       std::to_string(members.held.size()) + " ranks");
  const TensorSpec &first = program.spec(rows[0]), &of_experts = program.spec(sizes[0]);
  expect_axes(kind, first, 2, "[rows, h]");
  expect_axes(kind, of_experts, 1, "[experts]");
  if (bits_of(first.dtype) < 8)
    throw ProgramError(std::string(kind.name) + ": tensor '" + first.name + "' is " + std::string(name(first.dtype)) +
                       "; expected elements of whole bytes");
  expect_dtype(kind, of_experts, DType::i32);
  if (of_experts.shape[0] % attributes.ranks != 0)
    refuse_shape(kind, of_experts.name, of_experts.shape, "",
                 "a multiple of " + std::to_string(attributes.ranks) + " experts");
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < rows.size(); ++i) inputs.insert(inputs.end(), {rows[i], sizes[i]});
  return call_of(kind, attributes, Math{}, std::move(label), members, inputs);
}

}  // namespace

bool exchanges_tokens(OpKind kind) { return kind == dispatch_tokens_kind || kind == return_tokens_kind; }

DispatchedTokens dispatch_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                 std::span<const ValueId> x, std::span<const ValueId> sizes, const RankGroup& group) {
  const Members members = members_of(program, dispatch_tokens_kind, attributes.ranks, group);
  OpCall call = exchange_call(program, dispatch_tokens_kind, attributes, label, members, x, sizes);
  DispatchedTokens made;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Shape own = program.spec(x[i]).shape, experts = program.spec(sizes[i]).shape;
    made.y.push_back(reserve_replicated(program, label, members, x[i], {attributes.ranks * own[0], own[1]}));
    made.own_sizes.push_back(
        reserve_replicated(program, label + ".sizes", members, sizes[i], {experts[0] / attributes.ranks}));
    call.outputs.insert(call.outputs.end(), {made.y.back(), made.own_sizes.back()});
  }
  program.append(std::move(call));
  return made;
}

std::vector<ValueId> return_tokens(Program& program, const TokenExchange& attributes, std::string label,
                                   std::span<const ValueId> y, std::span<const ValueId> sizes, const RankGroup& group) {
  const Members members = members_of(program, return_tokens_kind, attributes.ranks, group);
  OpCall call = exchange_call(program, return_tokens_kind, attributes, label, members, y, sizes);
  for (const ValueId id : y) {
    const TensorSpec& rows = program.spec(id);
    if (rows.shape[0] % attributes.ranks != 0)
      refuse_shape(return_tokens_kind, rows.name, rows.shape, "",
                   "a multiple of " + std::to_string(attributes.ranks) + " rows");
    call.outputs.push_back(
        reserve_replicated(program, label, members, id, {rows.shape[0] / attributes.ranks, rows.shape[1]}));
  }
  return appended(program, std::move(call));
}

ExchangeOperands exchange_operands(const OpCall& call, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                   int member) {
  const auto at = static_cast<std::size_t>(member);
  ExchangeOperands operands;
  operands.dispatches = call.kind == dispatch_tokens_kind;
  operands.rows = inputs[2 * at];
  operands.sizes = inputs[2 * at + 1];
  operands.result = outputs[operands.dispatches ? 2 * at : at];
  if (operands.dispatches) operands.own_sizes = outputs[2 * at + 1];
  const TensorSpec& own = operands.dispatches ? operands.rows.spec : operands.result.spec;
  operands.own_rows = own.shape[0];
  operands.row_bytes = own.bytes() / own.shape[0];
  return operands;
}

TokenRoutes::TokenRoutes(std::span<const std::int32_t> sizes, int members, std::int64_t rows)
    : members_(members), experts_(static_cast<int>(sizes.size()) / members), sizes_(sizes.begin(), sizes.end()) {
  for (int member = 0; member < members; ++member) {
    std::int64_t left = rows;
    for (int expert = 0; expert < experts_; ++expert) {
      std::int64_t& size = sizes_[static_cast<std::size_t>(member * experts_ + expert)];
      size = std::clamp<std::int64_t>(size, 0, left);
      left -= size;
    }
  }
}

std::vector<RowRun> TokenRoutes::sent(int member) const {
  std::vector<RowRun> runs;
  std::int64_t own = 0;
  for (int peer = 0; peer < members_; ++peer) {
    std::int64_t there = 0;
    for (int expert = peer * own_experts(); expert < (peer + 1) * own_experts(); ++expert) {
      for (int sender = 0; sender < members_; ++sender) {
        const std::int64_t rows = size(sender, expert);
        if (sender == member) {
          if (rows > 0) runs.push_back({peer, own, there, rows});
          own += rows;
        }
        there += rows;
      }
    }
  }
  return runs;
}

std::vector<RowRun> TokenRoutes::received(int member) const {
  const int first = member * own_experts();
  std::vector<std::int64_t> own(static_cast<std::size_t>(members_));  // by sender: its rows for earlier experts
  for (int sender = 0; sender < members_; ++sender) {
    for (int expert = 0; expert < first; ++expert) own[static_cast<std::size_t>(sender)] += size(sender, expert);
  }
  std::vector<RowRun> runs;
  std::int64_t there = 0;
  for (int expert = first; expert < first + own_experts(); ++expert) {
    for (int sender = 0; sender < members_; ++sender) {
      const std::int64_t rows = size(sender, expert);
      std::int64_t& next = own[static_cast<std::size_t>(sender)];
      if (rows > 0) runs.push_back({sender, next, there, rows});
      next += rows;
      there += rows;
    }
  }
  return runs;
}

std::int64_t TokenRoutes::result_rows(bool dispatches, int member) const {
  std::int64_t rows = 0;
  for (const RowRun& run : dispatches ? received(member) : sent(member)) rows += run.rows;
  return rows;
}

std::vector<std::int32_t> TokenRoutes::own_sizes(int member) const {
  std::vector<std::int32_t> sizes;
  for (int expert = member * own_experts(); expert < (member + 1) * own_experts(); ++expert) {
    std::int64_t rows = 0;
    for (int sender = 0; sender < members_; ++sender) rows += size(sender, expert);
    sizes.push_back(static_cast<std::int32_t>(rows));
  }
  return sizes;
}

}  // namespace gpubench
