// Losses and embeddings at the ends of ranges, special values, casts and collectives.
#include <limits>
#include <string>

#include "reference/ops/collective.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/token_exchange.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/reference/ops/rank_tensors.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/reference/pointwise_programs.h"

namespace gpubench::testing {
namespace {

ValueId of(Program& p, const std::string& name, const Shape& shape, Fill fill = {}) {
  return p.add(tensor(name, DType::f32, shape, Role::input, fill));
}
ValueId tokens(Program& p, const std::string& name, std::int64_t count, std::int64_t kinds) {
  return p.add(tensor(name, DType::i32, {count}, Role::input, Fill::integers(0, kinds - 1)));
}

}  // namespace

void add_row_programs(OraclePrograms& all) {
  add_differentiated(all, "cross_entropy of far logits", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {9, 31}, Fill::normal(4096));
    return {{cross_entropy_forward(p, f32_math, "loss", logits, tokens(p, "labels", 9, 31)).loss}, {logits}, true};
  });
  add_differentiated(all, "cross_entropy of one class", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {3, 1});
    return {{cross_entropy_forward(p, f32_math, "loss", logits, tokens(p, "labels", 3, 1)).loss}, {logits}, true};
  });
  add_differentiated(all, "embedding, every token alike", [](Program& p) -> OracleForward {
    const ValueId table = of(p, "table", {2, 5});
    return {{embedding_forward(p, "y", table, tokens(p, "tokens", 6, 1))}, {table}};
  });
}

namespace {

// Tails, zeros, infinities and NaN, compared element by element.
OracleProgram special_values() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values{
      -30,  -10, -5,     -1,    -1e-3,    -1e-10,    -1e-300,
      -0.0, 0.0, 1e-300, 1e-10, 1e-3,     1,         5,
      10,   30,  1e5,    -1e5,  infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  OracleProgram one{"special values", {}};
  Program& p = one.program;
  const auto n = static_cast<std::int64_t>(values.size());
  const ValueId x = p.add(tensor("x", DType::f64, {n}, Role::input));
  const ValueId dy = p.add(tensor("dy", DType::f64, {n}, Role::input, Fill::constant(1)));
  one.given[x] = values;
  for (const PointwiseCase& op : pointwise_cases()) (void)op.build(p, x, dy);
  (void)scale(p, {0.0}, f64_math, "scale by 0", x);
  return one;
}

}  // namespace

void add_element_programs(OraclePrograms& all) {
  all.push_back(special_values());
  for (const DType to : {DType::bf16, DType::f16}) {
    add_program(
        all, "cast to " + std::string(name(to)),
        [&](Program& p) {
          for (const double scale : {1.0, 0x1p-16, 0x1p-24, 0x1p14})
            (void)cast(p, to, "y" + std::to_string(scale),
                       of(p, "x" + std::to_string(scale), {64, 65}, Fill::normal(scale)));
        },
        true);
  }
}

void add_collective_programs(OraclePrograms& all) {
  const auto differentiated = [&](const std::string& name, int ranks, const Shape& shape, const auto& collective) {
    add_differentiated(all, name, [&](Program& p) -> OracleForward {
      const std::vector<ValueId> x = on_ranks(p, ranks, DType::f32, shape);
      return {collective(p, x), x};
    });
  };
  for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
    for (const int ranks : {2, 3}) {
      const std::string text = " " + std::string(name(reduction)) + " x" + std::to_string(ranks);
      add_program(all, "all_reduce" + text, [&](Program& p) {
        (void)all_reduce(p, {ranks, reduction}, f32_math, "y", on_ranks(p, ranks, DType::f32, {5}));
        (void)all_reduce(p, {ranks, reduction}, f32_math, "updated", on_ranks(p, ranks, DType::f32, {7}, "z"), true);
      });
      add_program(all, "reduce_scatter" + text, [&](Program& p) {
        (void)reduce_scatter(p, {ranks, reduction}, f32_math, "y", on_ranks(p, ranks, DType::f32, {6}));
      });
      if (reduction == Reduction::maximum) continue;
      differentiated("all_reduce, differentiated" + text, ranks, {5}, [&](Program& p, const auto& x) {
        return all_reduce(p, {ranks, reduction}, f32_math, "y", x);
      });
      if (reduction == Reduction::average) continue;  // only reduce_scatter's sum has a derivative
      differentiated("reduce_scatter, differentiated" + text, ranks, {6}, [&](Program& p, const auto& x) {
        return reduce_scatter(p, {ranks, reduction}, f32_math, "y", x);
      });
    }
  }
  differentiated("all_gather", 3, {2}, [](Program& p, const auto& x) { return all_gather(p, {3}, "y", x); });
  differentiated("all_to_all", 3, {6}, [](Program& p, const auto& x) {
    return all_to_all(p, {3, std::vector<std::int64_t>(9, 2)}, "y", x);
  });
  differentiated("all_to_all, uneven", 2, {4}, [](Program& p, const auto& x) {
    return all_to_all(p, {2, {4, 0, 1, 3}}, "y", x);
  });
  for (const int ranks : {2, 3}) {
    constexpr std::int64_t tokens = 7, h = 3;
    const std::int64_t experts = 2 * ranks;
    const auto sizes_of = [&](Program& p) {
      std::vector<ValueId> sizes;
      for (int rank = 0; rank < ranks; ++rank) {
        TensorSpec indices = tensor(name_on_rank("indices", rank, ranks), DType::i32, {tokens, 2}, Role::input,
                                    Fill::integers(0, experts));
        indices.placement = Placement::shard(0, rank, ranks);
        sizes.push_back(
            group_tokens(p, {.experts = experts}, name_on_rank("groups", rank, ranks), p.add(std::move(indices)))
                .sizes);
      }
      return sizes;
    };
    const std::string text = " x" + std::to_string(ranks);
    differentiated("dispatch_tokens" + text, ranks, {2 * tokens + 1, h},
                   [&](Program& p, const auto& x) { return dispatch_tokens(p, {ranks}, "y", x, sizes_of(p)).y; });
    differentiated("return_tokens" + text, ranks, {2 * tokens * ranks, h},
                   [&](Program& p, const auto& y) { return return_tokens(p, {ranks}, "x", y, sizes_of(p)); });
  }
  for (const int shift : {1, 2}) {
    const int ranks = 2 + shift;
    differentiated("send_recv " + std::to_string(shift), ranks, {4}, [&](Program& p, const auto& x) {
      return send_recv(p, {ranks, shift}, "y", x);
    });
  }
  for (const int ranks : {4, 5}) {
    differentiated("send_recv in pairs of " + std::to_string(ranks), ranks, {4}, [&](Program& p, const auto& x) {
      return send_recv(p, {ranks, 1, 2}, "y", x);
    });
  }
  for (const int root : {0, 2}) {
    add_program(all, "broadcast from " + std::to_string(root), [&](Program& p) {
      const int ranks = 3 + root;
      (void)broadcast(p, {ranks, root}, "y", on_ranks(p, ranks, DType::f32, {4})[static_cast<std::size_t>(root)]);
    });
  }
  add_program(all, "all_gather in place",
              [](Program& p) { (void)all_gather_in_place(p, {2}, "y", on_ranks(p, 2, DType::f32, {6})); });
}

}  // namespace gpubench::testing
