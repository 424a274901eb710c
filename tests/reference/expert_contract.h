// What softmax, routing, token groups and grouped products have to keep on every backend: programs of one op each, on
// extents that fill packs and tiles or don't, with empty groups, large ones, and rows that belong to none.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "reference/ops/tensor_checks.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

struct ExpertProgram {
  std::string what;
  Program program;
  std::vector<std::function<void(ProgramRun&)>> fills;

  /// A source of bell-shaped numbers.
  ValueId data(const std::string& name, DType type, const Shape& shape) {
    const ValueId id = program.add(tensor(name, type, shape, Role::input));
    fills.push_back([id, seed = fills.size() + 1](ProgramRun& run) { run.set_random(id, seed); });
    return id;
  }
  ValueId values(const std::string& name, DType type, const Shape& shape, std::vector<double> held) {
    const ValueId id = program.add(tensor(name, type, shape, Role::input));
    fills.push_back([id, held = std::move(held)](ProgramRun& run) { run.set(id, held); });
    return id;
  }
};

inline void fill(ProgramRun& run, const ExpertProgram& p) {
  for (const auto& fill : p.fills) fill(run);
}

/// Of one type of data.
class ExpertPrograms {
 public:
  explicit ExpertPrograms(DType type)
      : type_(type), wide_(type == DType::f64 ? DType::f64 : DType::f32), math_(math_for(type)) {}

  std::vector<ExpertProgram> softmax() {
    for (const Shape& x : {Shape{5, 1}, Shape{3, 77}, Shape{2, 3, 256}, Shape{2, 2500}}) {
      ExpertProgram& forward = next("softmax_forward", x);
      (void)softmax_forward(forward.program, math_, "y", forward.data("x", type_, x));
      ExpertProgram& backward = next("softmax_backward", x);
      const ValueId y = backward.data("y", type_, x);
      (void)softmax_backward(backward.program, math_, "dx", y, backward.data("dy", type_, x));
    }
    return std::move(all_);
  }

  std::vector<ExpertProgram> routing() {
    using Scores = Routing::Scores;
    for (const Routing& routing :
         {Routing{.k = 1}, Routing{.k = 2, .normalize = true}, Routing{.k = 8, .scale = 0.75},
          Routing{.k = 3, .scores = Scores::sigmoid},
          Routing{.k = 8, .scores = Scores::sigmoid, .normalize = true, .bias = true, .scale = 2.5}}) {
      for (const Shape& logits : {Shape{9, 8}, Shape{5, 64}, Shape{3, 301}}) {
        ExpertProgram& forward = next("routing_forward " + describe(routing), logits);
        const ValueId x = forward.data("logits", type_, logits);
        std::optional<ValueId> bias;
        if (routing.bias) bias = forward.data("bias", wide_, {logits[1]});
        (void)routing_forward(forward.program, routing, math_, "routing", x, bias);
        // Few different logits, so that most are equal to others.
        ExpertProgram& ties = next("routing_forward, ties, " + describe(routing), logits);
        const ValueId equal = ties.values("logits", type_, logits, indices(logits.elements(), 4, 3));
        if (routing.bias) bias = ties.values("bias", wide_, {logits[1]}, indices(logits[1], 2, 4));
        (void)routing_forward(ties.program, routing, math_, "routing", equal, bias);
        ExpertProgram& backward = next("routing_backward " + describe(routing), logits);
        const Shape chosen{logits[0], routing.k};
        const ValueId given = backward.data("logits", type_, logits);
        const ValueId experts = backward.values("indices", DType::i32, chosen, distinct(chosen, logits[1]));
        (void)routing_backward(backward.program, routing, math_, "dlogits", given, experts,
                               backward.data("dweights", wide_, chosen));
      }
    }
    return std::move(all_);
  }

  std::vector<ExpertProgram> groups() {
    for (const auto& [pairs, grouping] : {std::pair{Shape{7, 1}, TokenGrouping{.experts = 1}},
                                          {Shape{300, 2}, TokenGrouping{.experts = 8}},
                                          {Shape{130, 8}, TokenGrouping{.experts = 300}},
                                          {Shape{90, 3}, TokenGrouping{.experts = 4, .first = 2}}}) {
      ExpertProgram& one = next("group_tokens " + describe(grouping), pairs);
      const std::int64_t experts = grouping.experts + 2 * grouping.first;
      const ValueId given = one.values("indices", DType::i32, pairs, indices(pairs.elements(), experts, 5));
      (void)group_tokens(one.program, grouping, "groups", given);
    }
    return std::move(all_);
  }

  std::vector<ExpertProgram> moves() {
    for (const auto& [t, k, h] : std::vector<std::array<std::int64_t, 3>>{{6, 2, 64}, {3, 1, 5}, {5, 4, 777}}) {
      const Shape pairs{t, k}, tokens{t, h}, rows{t * k, h};
      const auto shuffled = [&, n = t * k](std::int64_t step) {  // every fifth one is missing
        std::vector<double> places;
        for (std::int64_t i = 0; i < n; ++i)
          places.push_back(i % 5 == 4 ? -1.0 : static_cast<double>((i * step + 1) % n));
        return places;
      };
      for (const bool weighted : {false, true}) {
        const std::string how = weighted ? "weighted " : "";
        const auto weights = [&](ExpertProgram& one) {
          return weighted ? std::optional(one.data("weights", wide_, pairs)) : std::nullopt;
        };
        ExpertProgram& there = next(how + "permute_tokens", pairs);
        const ValueId x = there.data("x", type_, tokens);
        const ValueId order = there.values("order", DType::i32, {t * k}, shuffled(7));
        (void)permute_tokens(there.program, math_, "y", x, order, weights(there));
        ExpertProgram& back = next(how + "unpermute_tokens", pairs);
        const ValueId of_experts = back.data("x", type_, rows);
        const ValueId places = back.values("places", DType::i32, pairs, shuffled(11));
        (void)unpermute_tokens(back.program, math_, "y", of_experts, places, weights(back));
      }
      ExpertProgram& gradient = next("unpermute_backward_weights", pairs);
      const ValueId x = gradient.data("x", type_, rows);
      const ValueId places = gradient.values("places", DType::i32, pairs, shuffled(11));
      (void)unpermute_backward_weights(gradient.program, math_, "dweights", x, places,
                                       gradient.data("dy", type_, tokens));
    }
    return std::move(all_);
  }

  /// `weight_type`: of weight gradients.
  std::vector<ExpertProgram> products(DType weight_type) {
    struct Sizes {
      std::int64_t rows, k, n;
      std::vector<double> groups;
    };
    for (const Sizes& s :
         {Sizes{1, 3, 2, {1}}, Sizes{24, 16, 32, {5, 0, 13, 2}}, Sizes{150, 33, 70, {0, 131, 7, 0, 12}},
          Sizes{150, 72, 136, {0, 131, 7, 0, 12}}, Sizes{70, 64, 64, {0, 0}}}) {
      const auto groups = static_cast<std::int64_t>(s.groups.size());
      for (const bool transpose_b : {false, true}) {
        ExpertProgram& one = next(transpose_b ? "grouped_gemm transpose_b" : "grouped_gemm", {s.rows, s.k, s.n});
        const ValueId a = one.data("a", type_, {s.rows, s.k});
        const ValueId b = one.data("b", type_, transpose_b ? Shape{groups, s.n, s.k} : Shape{groups, s.k, s.n});
        const ValueId sizes = one.values("sizes", DType::i32, {groups}, s.groups);
        (void)grouped_gemm(one.program, {transpose_b}, math_, "c", a, b, sizes);
      }
      ExpertProgram& one = next("grouped_gemm_backward_weight", {s.rows, s.k, s.n});
      const ValueId a = one.data("a", type_, {s.rows, s.k}), b = one.data("b", type_, {s.rows, s.n});
      const ValueId sizes = one.values("sizes", DType::i32, {groups}, s.groups);
      const ValueId c = one.program.reserve(tensor("c", weight_type, {groups, s.k, s.n}, Role::gradient));
      (void)grouped_gemm_backward_weight(one.program, math_, "c", a, b, sizes, c);
    }
    return std::move(all_);
  }

 private:
  ExpertProgram& next(const std::string& what, const Shape& shape) {
    ExpertProgram& one = all_.emplace_back();
    one.what = what + " " + std::string(name(type_)) + shape.to_string();
    return one;
  }
  static std::vector<double> distinct(const Shape& chosen, std::int64_t experts) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < chosen.elements(); ++i)
      values.push_back(static_cast<double>((i / chosen[1] * 3 + i % chosen[1]) % experts));
    return values;
  }

  DType type_, wide_;
  Math math_;
  std::vector<ExpertProgram> all_;
};

inline void expect_bounds_of_softmax(const BackendContract& on) {
  expect_bounds_in_every_type(on, [](DType type) { return ExpertPrograms(type).softmax(); });
}

inline void expect_bounds_of_routing(const BackendContract& on) {
  expect_bounds_in_every_type(on, [](DType type) { return ExpertPrograms(type).routing(); });
}

inline void expect_bounds_of_token_moves(const BackendContract& on) {
  for (const ExpertProgram& p : ExpertPrograms(DType::f32).groups())
    EXPECT_EQ(on.judge(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << p.what;
  expect_bounds_in_every_type(on, [](DType type) { return ExpertPrograms(type).moves(); });
}

/// Weight gradients are of the type of the data, or f32 where that is narrow.
inline void expect_bounds_of_grouped_products(const BackendContract& on) {
  for (const DType type : on.types) {
    for (const DType weights : std::set{type, statistic_type(type)})
      expect_bounds_of_each(on, ExpertPrograms(type).products(weights));
  }
}

/// Softmax and routing of a row below -88, where exp is 0 in f32, and of one whose first half is a mask's -30000.
inline void expect_bounds_of_rows_far_below_zero(const BackendContract& on) {
  for (const DType dtype : on.types) {
    for (const std::int64_t n : {3, 40, 1000}) {
      for (const bool softmax : {true, false}) {
        Program program;
        const ValueId x = program.add(tensor("x", dtype, Shape{2, n}, Role::activation));
        if (softmax)
          (void)softmax_forward(program, math_for(dtype), "y", x);
        else
          (void)routing_forward(program, {.k = 2}, math_for(dtype), "weights", x);
        const auto fill = [&](ProgramRun& run) {
          run.set_random(x, 1);
          std::vector<double> values = run.get(x);
          for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] -= 100.0;
          for (std::int64_t i = 0; i < n / 2; ++i) values[static_cast<std::size_t>(n + i)] = -30000.0;
          run.set(x, values);
        };
        EXPECT_EQ(on.judge(program, fill), "") << name(dtype) << ", " << n << (softmax ? "" : ", routing");
      }
    }
  }
}

inline void expect_nan_in_its_row_of_softmax(const BackendContract& on) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {2, 3}, Role::input));
  const ValueId y = softmax_forward(program, {}, "y", x);
  ProgramRun run(on.backend, program);
  run.set_random(x, 1);
  spoil(run, x, 1);

  run.run();

  expect_nan_where(run.get(y), [](std::size_t i) { return i < 3; });
}

/// Sizes that reach beyond the rows: nothing is read or written outside of the tensors.
inline void expect_senseless_sizes_to_touch_nothing_else(const BackendContract& on) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f32, {4, 3}, Role::input));
  const ValueId b = program.add(tensor("b", DType::f32, {2, 3, 5}, Role::input));
  const ValueId sizes = program.add(tensor("sizes", DType::i32, {2}, Role::input));
  const ValueId c = grouped_gemm(program, {}, {}, "c", a, b, sizes);
  (void)grouped_gemm_backward_weight(program, {}, "db", a, c, sizes);
  ProgramRun run(on.backend, program);
  run.set_random(a, 1);
  run.set_random(b, 2);
  run.set(sizes, std::vector<double>{-3, 1000000});
  run.run();
  EXPECT_TRUE(run.canaries_intact());
}

}  // namespace gpubench::testing
