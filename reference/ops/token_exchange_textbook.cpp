// Places of rows follow from all ranks' sizes; rows move bit for bit.
#include <algorithm>
#include <limits>

#include "reference/ops/collective_textbook.h"
#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

struct ExpertRows {
  std::int64_t begin = 0, count = 0;
  int input = 0;           ///< their source
  std::int64_t first = 0;  ///< their first row there
};

class ExpertSizes {
 public:
  ExpertSizes(const OpCall& call, std::span<const TensorView> inputs) : ranks_(ranks_of(call)) {
    const std::int64_t rows = inputs[0].shape()[0] / (call.kind == return_tokens_kind ? ranks_ : 1);
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<double> of_rank(static_cast<std::size_t>(inputs[1].shape()[0]));
      inputs[static_cast<std::size_t>(2 * rank + 1)].read(0, of_rank);
      double all = 0.0;
      for (const double size : of_rank) {
        make_sense_ = make_sense_ && size >= 0.0;
        all += size;
      }
      make_sense_ = make_sense_ && all <= static_cast<double>(rows);
      sizes_.emplace_back(of_rank.begin(), of_rank.end());
    }
  }

  [[nodiscard]] bool make_sense() const { return make_sense_; }
  [[nodiscard]] std::int64_t of(int rank, int expert) const {
    return sizes_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(expert)];
  }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int experts() const { return static_cast<int>(sizes_[0].size()); }
  [[nodiscard]] int each() const { return experts() / ranks_; }

  [[nodiscard]] std::int64_t own_begin(int rank, int expert) const {
    std::int64_t begin = 0;
    for (int before = 0; before < expert; ++before) begin += of(rank, before);
    return begin;
  }
  /// The same among the rows for all experts of the expert's rank.
  [[nodiscard]] std::int64_t begin_there(int rank, int expert) const {
    std::int64_t begin = 0;
    for (int before = expert / each() * each(); before < expert; ++before) {
      for (int sender = 0; sender < ranks_; ++sender) begin += of(sender, before);
    }
    for (int sender = 0; sender < rank; ++sender) begin += of(sender, expert);
    return begin;
  }

 private:
  int ranks_;
  bool make_sense_ = true;
  std::vector<std::vector<std::int64_t>> sizes_;
};

MoveSources from_rows(std::vector<ExpertRows> all, std::int64_t h) {
  std::erase_if(all, [](const ExpertRows& rows) { return rows.count == 0; });
  return [all = std::move(all), h](std::int64_t linear) {
    const std::int64_t row = linear / h;
    const auto behind = std::ranges::upper_bound(all, row, {}, &ExpertRows::begin);
    if (behind == all.begin() || row >= (behind - 1)->begin + (behind - 1)->count) return MoveSource{-1, 0};
    const ExpertRows& rows = *(behind - 1);
    return MoveSource{rows.input, (rows.first + row - rows.begin) * h + linear % h};
  };
}

MoveSources dispatched(const OpCall& call, std::span<const TensorView> inputs, int output) {
  const ExpertSizes sizes(call, inputs);
  const int rank = output / 2;
  std::vector<ExpertRows> all;
  for (int expert = rank * sizes.each(); expert < (rank + 1) * sizes.each(); ++expert) {
    for (int sender = 0; sender < sizes.ranks(); ++sender)
      all.push_back(
          {sizes.begin_there(sender, expert), sizes.of(sender, expert), 2 * sender, sizes.own_begin(sender, expert)});
  }
  return from_rows(std::move(all), inputs[0].shape()[1]);
}

MoveSources returned(const OpCall& call, std::span<const TensorView> inputs, int output) {
  const ExpertSizes sizes(call, inputs);
  std::vector<ExpertRows> all;
  for (int expert = 0; expert < sizes.experts(); ++expert)
    all.push_back({sizes.own_begin(output, expert), sizes.of(output, expert), 2 * (expert / sizes.each()),
                   sizes.begin_there(output, expert)});
  return from_rows(std::move(all), inputs[0].shape()[1]);
}

Cost exchange_cost(const TensorSpec& own_rows, int ranks) {
  return move_cost(bytes_moved(own_rows), (ranks - 1.0) / ranks);
}

class TokenExchangeDefinition final : public MoveDefinition {
 public:
  explicit TokenExchangeDefinition(const MoveRules& rules) : MoveDefinition(rules) {}

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    expect_all_held(operands.call);
    const ExpertSizes sizes(operands.call, operands.inputs);
    if (!sizes.make_sense()) {
      std::ranges::fill(judged, Expected{std::numeric_limits<double>::quiet_NaN(), 0.0});
    } else if (is_sizes(operands.call, output)) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::int64_t rows = 0;
        for (int rank = 0; rank < sizes.ranks(); ++rank)
          rows += sizes.of(rank, output / 2 * sizes.each() + static_cast<int>(wanted[i]));
        judged[i] = moved(static_cast<double>(rows));
      }
    } else {
      MoveDefinition::evaluate(operands, output, wanted, judged);
    }
  }

  std::string explain(const Operands& operands, int output, std::span<const Mismatch> wrong) const override {
    if (is_sizes(operands.call, output) || !ExpertSizes(operands.call, operands.inputs).make_sense()) return {};
    return MoveDefinition::explain(operands, output, wrong);
  }

  void derivative(Program& program, const OpCall& forward, GradientTape& tape) const override {
    const OpCall call = forward;  // appending to the program may move the original
    const bool dispatches = call.kind == dispatch_tokens_kind;
    std::vector<ValueId> incoming, sizes;
    for (std::size_t i = 0; i < call.inputs.size(); i += 2) {
      const ValueId output = call.outputs[dispatches ? i : i / 2];
      incoming.push_back(required_gradient(program, call, tape, output));
      sizes.push_back(call.inputs[i + 1]);
    }
    const TokenExchange& attributes = call.attributes.as<TokenExchange>();
    const std::string label = tape.label(call, "backward");
    const std::vector<ValueId> gradients =
        dispatches ? return_tokens(program, attributes, label, incoming, sizes, call.group)
                   : dispatch_tokens(program, attributes, label, incoming, sizes, call.group).y;
    for (std::size_t i = 0; i < gradients.size(); ++i) tape.contribute(call.inputs[2 * i], gradients[i]);
  }

 private:
  static bool is_sizes(const OpCall& call, int output) { return call.kind == dispatch_tokens_kind && output % 2 == 1; }
};

}  // namespace

Definitions token_exchange_definitions() {
  static const TokenExchangeDefinition dispatch(
      {dispatch_tokens_kind, dispatched,
       [](const CallSpecs& op) { return exchange_cost(op.inputs[0], ranks_of(op.call)); }, nullptr, false, 2});
  static const TokenExchangeDefinition back(
      {return_tokens_kind, returned,
       [](const CallSpecs& op) { return exchange_cost(op.outputs[0], ranks_of(op.call)); }, nullptr, false, 2});
  return {&dispatch, &back};
}

}  // namespace gpubench
