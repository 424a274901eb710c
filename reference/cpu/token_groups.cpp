// Moves tokens to experts and back: a stable counting sort of pairs, copies of rows, f32 sums of a token's rows.
#include "reference/ops/token_groups.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

/// Single-threaded: a few integers per token, compared with the rows of thousands of numbers that follow.
struct GroupPairs {
  std::int64_t pairs = 0;
  TokenGrouping grouping;
  const std::int32_t* indices = nullptr;
  std::int32_t *sizes = nullptr, *order = nullptr, *places = nullptr;
  std::int32_t* next = nullptr;  ///< [experts]: place of each expert's next pair

  void operator()() const {
    const std::int64_t experts = grouping.experts;
    const auto group_of = [this](std::int64_t pair) { return indices[pair] - grouping.first; };
    const auto is_grouped = [experts](std::int64_t group) { return group >= 0 && group < experts; };
    std::fill_n(sizes, experts, 0);
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      if (is_grouped(group_of(pair))) ++sizes[group_of(pair)];
    }
    std::int32_t total = 0;
    for (std::int64_t g = 0; g < experts; ++g) {
      next[g] = total;
      total += sizes[g];
    }
    std::fill(order + total, order + pairs, -1);
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const std::int64_t group = group_of(pair);
      places[pair] = is_grouped(group) ? next[group]++ : -1;
      if (places[pair] >= 0) order[places[pair]] = static_cast<std::int32_t>(pair);
    }
  }
};

/// Shared by the three moves: t tokens of k pairs, n rows of h elements.
struct PairRows {
  int threads = 1;
  std::int64_t t = 0, k = 1, n = 0, h = 0;
  Source x;
  const std::int32_t* pairs = nullptr;  ///< order or places
  const float* weights = nullptr;       ///< null: 1

  [[nodiscard]] bool is_row(std::int32_t row) const { return row >= 0 && row < n; }
  template <class RunRow>
  void over_rows(std::int64_t rows, const RunRow& run_row) const {
    parallel_rows(threads, rows, h, run_row);
  }
  template <class Visit>
  void over_blocks(const Visit& visit) const {
    in_blocks(h, block_elements, visit);
  }
};

struct CopyToExperts : PairRows {
  std::int64_t element_bytes = 0;
  const std::byte* from = nullptr;
  Target to;

  void operator()() const {
    over_rows(n, [this, bytes = h * element_bytes](std::int64_t row) {
      if (is_row(pairs[row])) return to.store(row * bytes, from + pairs[row] / k * bytes, bytes);
      std::memset(to.data + row * bytes, 0, static_cast<std::size_t>(bytes));
    });
  }
};

struct ScaleToExperts : PairRows {
  Sink y;

  void operator()() const {
    over_rows(n, [this](std::int64_t row) {
      const std::int32_t pair = pairs[row];
      BlockBuffer in, out;
      over_blocks([&](std::int64_t i, std::int64_t count) {
        float* block = y.place(row * h + i, out);
        if (is_row(pair)) {
          runs().scale(x.gather(pair / k * h + i, count, in), weights[pair], count, block);
        } else {
          std::fill_n(block, count, 0.0F);
        }
        y.commit(row * h + i, count, block);
      });
    });
  }
};

struct SumOfExperts : PairRows {
  Sink y;

  void operator()() const {
    over_rows(t, [this](std::int64_t token) {
      BlockBuffer in, out;
      over_blocks([&](std::int64_t i, std::int64_t count) {
        float* block = y.place(token * h + i, out);
        bool any = false;
        for (std::int64_t pair = token * k; pair < (token + 1) * k; ++pair) {
          if (pair + k < t * k && is_row(pairs[pair + k])) x.prefetch(pairs[pair + k] * h + i, count);
          if (!is_row(pairs[pair])) continue;
          const float weight = weights != nullptr ? weights[pair] : 1.0F;
          (any ? runs().add_scaled : runs().scale)(x.gather(pairs[pair] * h + i, count, in), weight, count, block);
          any = true;
        }
        if (!any) std::fill_n(block, count, 0.0F);
        y.commit(token * h + i, count, block);
      });
    });
  }
};

struct WeightGradients : PairRows {
  Source dy;
  float* dweights = nullptr;

  void operator()() const {
    over_rows(t * k, [this](std::int64_t pair) {
      float sum = 0.0F;
      BlockBuffer of_x, of_dy;
      over_blocks([&](std::int64_t i, std::int64_t count) {
        if (!is_row(pairs[pair])) return;
        sum += runs().dot(x.gather(pairs[pair] * h + i, count, of_x), dy.read(pair / k * h + i, count, of_dy), count);
      });
      dweights[pair] = sum;
    });
  }
};

/// `permutes`: x has a row per token; else a row per place.
template <class Work>
Work moved_rows(const OpCall& call, const Named<TensorSpec>& operand, const CpuContext& context, bool permutes) {
  expect_row_major(call, operand, {"x", "y", "dy", "order", "places", "weights", "dweights"});
  expect_type(call, operand, {"weights", "dweights"}, DType::f32);
  Work work;
  work.threads = context.threads;
  work.h = operand["x"].shape[1];
  work.t = permutes ? operand["x"].shape[0] : operand["places"].shape[0];
  work.n = permutes ? operand["order"].shape[0] : operand["x"].shape[0];
  work.k = permutes ? work.n / work.t : operand["places"].shape[1];
  return work;
}

void expect_sums(const OpCall& call, const Named<TensorSpec>& operand) {
  expect_f32_or_bf16(call, operand, {"x", "y", "dy"});
  expect_f32_sums(call);
}

// Row-major; unweighted moves in any type.
Plan plan_group_tokens(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& /*context*/) {
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  GroupPairs work;
  work.pairs = tensors[0].shape.elements();
  work.grouping = call.attributes.as<TokenGrouping>();
  return own_plan(call, work,
                  {{"indices", to<&GroupPairs::indices>},
                   {"sizes", to<&GroupPairs::sizes>},
                   {"order", to<&GroupPairs::order>},
                   {"places", to<&GroupPairs::places>},
                   {workspace_operand, to<&GroupPairs::next>}},
                  static_cast<std::size_t>(work.grouping.experts) * sizeof(std::int32_t));
}

Plan plan_permute_tokens(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  if (call.attributes.as<TokenMove>().weighted) {
    using Work = ScaleToExperts;
    expect_sums(call, operand);
    return own_plan(
        call, moved_rows<Work>(call, operand, context, true),
        {{"x", to<&Work::x>}, {"order", to<&Work::pairs>}, {"weights", to<&Work::weights>}, {"y", to<&Work::y>}});
  }
  using Work = CopyToExperts;
  Work work = moved_rows<Work>(call, operand, context, true);
  work.element_bytes = static_cast<std::int64_t>(size_of(operand["x"].dtype));
  return own_plan(call, work, {{"x", to<&Work::from>}, {"order", to<&Work::pairs>}, {"y", to<&Work::to>}});
}

Plan plan_unpermute_tokens(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = SumOfExperts;
  const Named<TensorSpec> operand(call, tensors);
  expect_sums(call, operand);
  return own_plan(
      call, moved_rows<Work>(call, operand, context, false),
      {{"x", to<&Work::x>}, {"places", to<&Work::pairs>}, {"weights", to<&Work::weights>}, {"y", to<&Work::y>}});
}

Plan plan_unpermute_backward_weights(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CpuContext& context) {
  using Work = WeightGradients;
  const Named<TensorSpec> operand(call, tensors);
  expect_sums(call, operand);
  return own_plan(
      call, moved_rows<Work>(call, operand, context, false),
      {{"x", to<&Work::x>}, {"places", to<&Work::pairs>}, {"dy", to<&Work::dy>}, {"dweights", to<&Work::dweights>}});
}

}  // namespace

Ops token_groups_ops() {
  return {{group_tokens_kind, plan_group_tokens},
          {permute_tokens_kind, plan_permute_tokens},
          {unpermute_backward_weights_kind, plan_unpermute_backward_weights},
          {unpermute_tokens_kind, plan_unpermute_tokens}};
}

}  // namespace gpubench::cpu
