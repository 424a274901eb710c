#include "reference/ops/collective.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/reference/ops/rank_tensors.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace collective_test {

using Rows = std::vector<std::vector<double>>;

Rows results(const Program& program, const std::vector<ValueId>& x, const Rows& values) {
  TextbookRun run(program);
  for (std::size_t i = 0; i < x.size(); ++i) run.set(x[i], values[i]);
  run.run(0);
  Rows held;
  for (const ValueId y : program.op(0).outputs) held.push_back(run.get(y));
  return held;
}

TEST(AllReduce, SumsAveragesAndTakesTheLargestOverTheRanks) {
  const Rows x{{1, -5, 8}, {2, 7, -1}, {6, 1, -4}};
  const std::array expected{std::pair{Reduction::sum, std::vector<double>{9, 3, 3}},
                            std::pair{Reduction::average, std::vector<double>{3, 1, 1}},
                            std::pair{Reduction::maximum, std::vector<double>{6, 7, 8}}};
  for (const auto& [reduction, want] : expected) {
    for (const bool in_place : {false, true}) {
      Program p;
      const std::vector<ValueId> ids = on_ranks(p, 3, DType::f32, {3});
      (void)all_reduce(p, {3, reduction}, f32_math, "y", ids, in_place);
      EXPECT_EQ(results(p, ids, x), (Rows{want, want, want})) << name(reduction);
    }
  }
}

TEST(AllReduce, AMaximumIsNanWhicheverRankHasTheNan) {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    Program p;
    const std::vector<ValueId> ids = on_ranks(p, 3, DType::f32, {1});
    (void)all_reduce(p, {3, Reduction::maximum}, f32_math, "y", ids);
    Rows x{{1}, {5}, {3}};
    x[rank][0] = std::nan("");
    for (const std::vector<double>& held : results(p, ids, x)) EXPECT_TRUE(std::isnan(held[0])) << rank;
  }
}

TEST(AllReduce, TakesSeveralTensorsOfEachRankAtOnce) {
  Program p;
  std::vector<ValueId> ids;
  for (int rank = 0; rank < 2; ++rank) {
    for (const auto& [name, type, n] : {std::tuple{"a", DType::f32, 2}, {"b", DType::bf16, 1}}) {
      TensorSpec spec = tensor(name_on_rank(name, rank, 2), type, {n}, Role::gradient);
      spec.placement = Placement::on(rank, 2);
      ids.push_back(p.add(std::move(spec)));
    }
  }
  (void)all_reduce(p, {2}, f32_math, "y", ids, true);

  EXPECT_EQ(results(p, ids, {{1, 2}, {3}, {10, 20}, {30}}), (Rows{{11, 22}, {33}, {11, 22}, {33}}));
  const std::vector<std::vector<int>> alike = definition(all_reduce_kind).identical_outputs(p.op(0));
  EXPECT_EQ(alike, (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
}

TEST(AllGather, PutsTheRanksPartsSideBySide) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 3, DType::f32, {2});
  (void)all_gather(p, {3}, "y", ids);
  const std::vector<double> all{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(results(p, ids, {{1, 2}, {3, 4}, {5, 6}}), (Rows{all, all, all}));
}

TEST(AllGather, InPlaceLeavesEachRanksOwnPartWhereItIs) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 2, DType::f32, {4});
  (void)all_gather_in_place(p, {2}, "y", ids);
  // Rank 0's part is the first half, rank 1's the second; the rest is overwritten.
  EXPECT_EQ(results(p, ids, {{1, 2, -9, -9}, {-8, -8, 3, 4}}), (Rows{{1, 2, 3, 4}, {1, 2, 3, 4}}));
}

TEST(ReduceScatter, LeavesEachRankItsPartOfTheSum) {
  for (const bool in_place : {false, true}) {
    Program p;
    const std::vector<ValueId> ids = on_ranks(p, 2, DType::f32, {4});
    (void)reduce_scatter(p, {2}, f32_math, "y", ids, in_place);
    EXPECT_EQ(results(p, ids, {{1, 2, 3, 4}, {10, 20, 30, 40}}), (Rows{{11, 22}, {33, 44}}));
  }
}

TEST(Broadcast, CopiesTheRootsTensor) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 3, DType::f32, {2});
  (void)broadcast(p, {3, 2}, "y", ids[2]);
  EXPECT_EQ(results(p, {ids[2]}, {{7, 8}}), (Rows{{7, 8}, {7, 8}, {7, 8}}));
}

TEST(AllToAll, GivesEachRankItsBlockOfEveryOther) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 2, DType::f32, {2});
  (void)all_to_all(p, {2, {1, 1, 1, 1}}, "y", ids);
  EXPECT_EQ(results(p, ids, {{1, 2}, {3, 4}}), (Rows{{1, 3}, {2, 4}}));
}

TEST(AllToAll, BlocksMayDifferAndBeEmpty) {
  Program p;
  const std::vector<ValueId> ids{on_ranks(p, 2, DType::f32, {3})[0], [&] {
                                   TensorSpec spec = tensor("z@1", DType::f32, {2}, Role::gradient);
                                   spec.placement = Placement::on(1, 2);
                                   return p.add(std::move(spec));
                                 }()};
  // Rank 0 sends nothing to itself and 3 to rank 1, which sends 2 to rank 0 and nothing to itself.
  (void)all_to_all(p, {2, {0, 3, 2, 0}}, "y", ids);
  EXPECT_EQ(results(p, ids, {{1, 2, 3}, {4, 5}}), (Rows{{4, 5}, {1, 2, 3}}));
}

TEST(SendRecv, PassesRoundTheRing) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 3, DType::f32, {1});
  (void)send_recv(p, {3, 1}, "y", ids);
  EXPECT_EQ(results(p, ids, {{1}, {2}, {3}}), (Rows{{3}, {1}, {2}}));
}

TEST(SendRecv, HasEachTwoMeetOnceAndOnlyOneOfAnOddNumberAlone) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::map<std::pair<int, int>, int> met;
    for (int round = 1; round <= rounds_of_pairs(ranks); ++round) {
      int alone = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const SendRecv pairs{ranks, 1, round};
        const int other = pairs.receiver(rank);
        EXPECT_EQ(pairs.receiver(other), rank);
        EXPECT_EQ(pairs.sender(rank), other);
        alone += other == rank ? 1 : 0;
        ++met[{rank, other}];
      }
      EXPECT_EQ(alone, ranks % 2) << ranks << " ranks, round " << round;
    }
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        if (a != b) {
          EXPECT_EQ((met[{a, b}]), 1) << a << " and " << b << " of " << ranks;
        }
      }
    }
  }
}

// Of four: 0 + 1 = 1 mod 3; 2 + 2 = 1 mod 3, so 2 meets the last.
TEST(SendRecv, ExchangesInPairs) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 4, DType::f32, {1});
  (void)send_recv(p, {4, 1, 1}, "y", ids);
  EXPECT_EQ(results(p, ids, {{1}, {2}, {3}, {4}}), (Rows{{2}, {1}, {4}, {3}}));
}

TEST(SendRecv, RefusesARoundThatThereIsNot) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 4, DType::f32, {1});
  EXPECT_THROW((void)send_recv(p, {4, 1, 4}, "y", ids), ProgramError);
  EXPECT_THROW((void)send_recv(p, {4, 1, -1}, "y", ids), ProgramError);
}

// nccl-tests, doc/PERFORMANCE.md: of S bytes on n ranks, all_reduce 2 (n - 1) / n; all_gather, reduce_scatter (S over
// all ranks) and all_to_all (n - 1) / n; broadcast and send_recv 1.
TEST(CollectiveCost, CountsBytesOnTheWireAsNcclTestsDo) {
  const auto cost = [](const auto& build) {
    Program p;
    build(p);
    return cost_of(p, p.op(0));
  };
  const Cost reduce =
      cost([](Program& p) { (void)all_reduce(p, {4}, f32_math, "y", on_ranks(p, 4, DType::f32, {10})); });
  EXPECT_EQ(reduce.message_bytes, 40.0);
  EXPECT_EQ(reduce.bytes, 60.0);
  EXPECT_EQ(reduce.flop, 30.0);  // three additions for each of ten elements
  const Cost gather = cost([](Program& p) { (void)all_gather(p, {4}, "y", on_ranks(p, 4, DType::f32, {10})); });
  EXPECT_EQ(gather.message_bytes, 160.0);
  EXPECT_EQ(gather.bytes, 120.0);
  const Cost scatter =
      cost([](Program& p) { (void)reduce_scatter(p, {4}, f32_math, "y", on_ranks(p, 4, DType::f32, {40})); });
  EXPECT_EQ(scatter.message_bytes, 160.0);
  EXPECT_EQ(scatter.bytes, 120.0);
  const Cost exchange = cost([](Program& p) {
    (void)all_to_all(p, {4, std::vector<std::int64_t>(16, 10)}, "y", on_ranks(p, 4, DType::f32, {40}));
  });
  EXPECT_EQ(exchange.message_bytes, 160.0);
  EXPECT_EQ(exchange.bytes, 120.0);
  const Cost passed = cost([](Program& p) { (void)send_recv(p, {4, 1}, "y", on_ranks(p, 4, DType::f32, {10})); });
  EXPECT_EQ(passed.bytes, 40.0);
  const Cost sent = cost([](Program& p) { (void)broadcast(p, {4, 0}, "y", on_ranks(p, 4, DType::f32, {10})[0]); });
  EXPECT_EQ(sent.bytes, 40.0);
}

double bound_of_sum(DType type, const std::vector<double>& values, Reduction reduction = Reduction::sum) {
  Program p;
  const auto ranks = static_cast<int>(values.size());
  const std::vector<ValueId> ids = on_ranks(p, ranks, type, {1});
  (void)all_reduce(p, {ranks, reduction}, f32_math, "y", ids);
  TextbookRun run(p);
  for (std::size_t i = 0; i < ids.size(); ++i) run.set(ids[i], {values[i]});
  return run.judge(0, 0).front().bound;
}

TEST(CollectiveBound, IsBitwiseWhereNoOrderOfAddingRounds) {
  EXPECT_EQ(bound_of_sum(DType::bf16, {128, 127, -1}), 0.0);       // 256 in all: bf16 has every whole number up to 256
  EXPECT_GT(bound_of_sum(DType::bf16, {128, 128, 1}), 0.0);        // 257
  EXPECT_EQ(bound_of_sum(DType::bf16, {0.5, 0.25, -0.125}), 0.0);  // 7 eighths
  EXPECT_EQ(bound_of_sum(DType::f32, {1, 1e7}), 0.0);
  EXPECT_GT(bound_of_sum(DType::f32, {1, 1e8}), 0.0);
  EXPECT_EQ(bound_of_sum(DType::f32, {1e8, 3.3}, Reduction::maximum), 0.0);
  EXPECT_EQ(bound_of_sum(DType::f32, {1, 2, 3, 4}, Reduction::average), 0.0);
  EXPECT_GT(bound_of_sum(DType::f32, {1, 2, 3}, Reduction::average), 0.0);  // a third is not a binary number
}

TEST(CollectiveBound, HoldsARingThatRoundsAtEveryHop) {
  // 2 u sqrt(2) (|s| + Q) = 2 2^-8 sqrt(2) (1.03 + 0.7...): a few ulps of bf16 near one.
  const std::vector<double> values{0.34, -0.0137, 0.7};
  const double bound = bound_of_sum(DType::bf16, values);
  double ring = round_to(DType::bf16, values[0]);
  double exact = ring;
  for (std::size_t i = 1; i < values.size(); ++i) {
    ring = round_to(DType::bf16, ring + round_to(DType::bf16, values[i]));
    exact += round_to(DType::bf16, values[i]);
  }
  EXPECT_LE(std::fabs(ring - exact), bound);
  EXPECT_LT(bound, 0.03);
}

/// The explanation of a `wrong` result on rank 0, if rank r holds x[r].
std::string explained(Reduction reduction, const Rows& x, const std::vector<double>& wrong) {
  Program p;
  const auto ranks = static_cast<int>(x.size());
  const auto n = static_cast<std::int64_t>(x[0].size());
  const std::vector<ValueId> ids = on_ranks(p, ranks, DType::f32, {n});
  (void)all_reduce(p, {ranks, reduction}, f32_math, "y", ids);
  TextbookRun run(p);
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    run.set(ids[i], x[i]);
    views.push_back(run.view(ids[i]));
  }
  const std::vector<Expected> right = run.judge(0, 0);
  std::vector<Mismatch> mismatches;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    if (wrong[i] != right[i].value) mismatches.push_back({static_cast<std::int64_t>(i), wrong[i]});
  }
  const std::vector<TensorSpec> outputs = specs_of(p, p.op(0).outputs);
  return definition(all_reduce_kind).explain({p.op(0), views, outputs}, 0, mismatches);
}

TEST(CollectiveFaults, AreNamedWithTheRankAndThePart) {
  const Rows x{{1, 2, 3, 4}, {10, 20, 30, 50}};
  EXPECT_EQ(explained(Reduction::sum, x, {11, 22, 3, 4}),
            "rank 1's contribution is missing, in chunk 1 of 2 (elements 2 to 3)");
  EXPECT_EQ(explained(Reduction::sum, x, {12, 24, 36, 58}), "rank 0's contribution is doubled, in elements 0 to 3");
  EXPECT_EQ(explained(Reduction::sum, x, {51, 32, 23, 14}), "rank 1's contribution is stale, in elements 0 to 3");
  EXPECT_EQ(explained(Reduction::sum, x, {21, 32, 53, 54}),
            "rank 1's contribution is misplaced by 1 element, in elements 0 to 2");
  EXPECT_EQ(explained(Reduction::average, x, {11, 22, 33, 54}),
            "the sum was not divided by the number of ranks, in elements 0 to 3");
  EXPECT_EQ(explained(Reduction::sum, x, {11, 22, 33, 999}), "in chunk 1 of 2 (element 3)");
}

TEST(CollectiveDerivative, SendsGradientsBackTheWayTheyCame) {
  Program p;
  const std::vector<ValueId> ids = on_ranks(p, 2, DType::f64, {2});
  const std::vector<ValueId> y = all_to_all(p, {2, {2, 0, 1, 1}}, "y", ids);  // rank 0 keeps both of its elements
  const std::vector<ValueId> dy{source(p, "dy0", DType::f64, {3}), source(p, "dy1", DType::f64, {1})};
  SingleOpTape tape(p);
  tape.wanted_inputs = ids;
  for (std::size_t i = 0; i < 2; ++i) tape.given[y[i]] = dy[i];
  // Seed gradients must be on the ranks of the results.
  EXPECT_NE(program_error([&] { definition(all_to_all_kind).derivative(p, p.op(0), tape); }).find("rank"),
            std::string::npos);

  Program q;
  const std::vector<ValueId> x = on_ranks(q, 2, DType::f64, {2});
  const std::vector<ValueId> parts = all_gather(q, {2}, "y", x);
  const std::vector<ValueId> seeds = on_ranks(q, 2, DType::f64, {4}, "dy");
  SingleOpTape gathered(q);
  gathered.wanted_inputs = x;
  for (std::size_t i = 0; i < 2; ++i) gathered.given[parts[i]] = seeds[i];
  definition(all_gather_kind).derivative(q, OpCall(q.op(0)), gathered);
  TextbookRun run(q);
  for (const ValueId id : x) run.set(id, {0, 0});
  run.set(seeds[0], {1, 2, 3, 4});
  run.set(seeds[1], {10, 20, 30, 40});
  run.run();
  // Both ranks have rank r's part, so its gradient is the sum from both.
  EXPECT_EQ(run.get(gathered.contributions.find(x[0])->second), (std::vector<double>{11, 22}));
  EXPECT_EQ(run.get(gathered.contributions.find(x[1])->second), (std::vector<double>{33, 44}));
}

TEST(CollectiveBuilders, RefuseTensorsThatDoNotFitByName) {
  Program p;
  const std::vector<ValueId> x = on_ranks(p, 2, DType::f32, {3});
  const std::vector<ValueId> wide = on_ranks(p, 2, DType::f32, {4}, "wide");
  EXPECT_EQ(program_error([&] {
              (void)all_reduce(p, {2}, f32_math, "y", std::array{x[1], x[0]});
            }),
            "all_reduce: tensor 'x@1' lies on rank 1; expected rank 0");
  EXPECT_NE(program_error([&] {
              (void)all_reduce(p, {2}, f32_math, "y", std::array{x[0], wide[1]});
            }).find("wide@1"),
            std::string::npos);
  EXPECT_NE(program_error([&] { (void)reduce_scatter(p, {2}, f32_math, "y", x); }).find("a multiple of 2"),
            std::string::npos);
  EXPECT_NE(program_error([&] { (void)all_to_all(p, {2, {1, 1, 1}}, "y", x); }).find("3 counts"), std::string::npos);
  EXPECT_NE(program_error([&] { (void)broadcast(p, {2, 2}, "y", x[0]); }).find("root 2"), std::string::npos);
}

Mesh two_by_two() { return Mesh({{"dp", 2}, {"tp", 2}}); }

ValueId on_rank_of_four(Program& p, const std::string& name, int rank, std::vector<AxisSpread> spread = {},
                        const Shape& shape = {4}) {
  TensorSpec spec = tensor(name_on_rank(name, rank, 4), DType::f32, shape, Role::gradient);
  spec.placement = Placement::on(rank, 4);
  spec.placement.spread = std::move(spread);
  return p.add(std::move(spec));
}

AxisSpread addend(int mesh_axis, int part) { return {AxisSpread::Kind::partial, mesh_axis, -1, part, 2}; }
AxisSpread shard(int mesh_axis, int part) { return {AxisSpread::Kind::sharded, mesh_axis, 0, part, 2}; }

TEST(CollectiveGroups, AnyRanksInAnyOrderReduceWhatTheyHave) {
  Program p(two_by_two());
  const std::vector<ValueId> x{on_rank_of_four(p, "x", 3), on_rank_of_four(p, "x", 1)};
  const RankGroup group({3, 1});
  const std::vector<ValueId> y = reduce_scatter(p, {2}, f32_math, "y", x, false, group);
  TextbookRun run(p);
  run.set(x[0], {1, 2, 3, 4});
  run.set(x[1], {10, 20, 30, 40});
  run.run();
  EXPECT_EQ(run.get(y[0]), (std::vector<double>{11, 22}));  // the first member's part, on rank 3
  EXPECT_EQ(run.get(y[1]), (std::vector<double>{33, 44}));
  EXPECT_EQ(p.spec(y[0]).placement.rank, 3);
  EXPECT_EQ(p.op(0).group, group);
  EXPECT_EQ(rank_of(p, p.op(0)), std::nullopt);
}

TEST(CollectiveGroups, AreInTheTextOfAProgramWhereTheyAreNotAllOfItsRanks) {
  Program p(two_by_two());
  std::vector<ValueId> x;
  for (int rank = 0; rank < 4; ++rank) x.push_back(on_rank_of_four(p, "x", rank));
  (void)all_reduce(p, {4}, f32_math, "all", x);
  (void)all_reduce(p, {2}, f32_math, "tensor", std::array{x[2], x[3]}, false, p.mesh().group(2, "tp"));
  (void)all_reduce(p, {2}, f32_math, "some", std::array{x[0], x[3]}, false, RankGroup({0, 3}));
  const std::string text = p.to_string();
  EXPECT_NE(text.find("-> all@0, all@1, all@2, all@3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-> tensor@2, tensor@3  [tp: 2, 3]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-> some@0, some@3  [ranks: 0, 3]\n"), std::string::npos) << text;
}

// A shard over dp whose sum over tp is pending: tp reduces it, and dp stays.
TEST(CollectiveGroups, WhatIsReducedIsPartialNoLonger) {
  Program p(two_by_two());
  const RankGroup tp = p.mesh().group(2, "tp");
  const std::vector<ValueId> x{on_rank_of_four(p, "x", 2, {shard(0, 1), addend(1, 0)}),
                               on_rank_of_four(p, "x", 3, {shard(0, 1), addend(1, 1)})};
  const std::vector<ValueId> sums = all_reduce(p, {2}, f32_math, "sum", x, false, tp);
  const std::vector<ValueId> parts = reduce_scatter(p, {2}, f32_math, "parts", x, false, tp);
  const std::vector<ValueId> again = all_gather(p, {2}, "again", parts, tp);
  const std::vector<ValueId> in_place = all_reduce(p, {2}, f32_math, "in_place", x, true, tp);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(p.spec(sums[i]).placement.spread, std::vector{shard(0, 1)});
    EXPECT_EQ(p.spec(parts[i]).placement.spread, (std::vector{shard(0, 1), shard(1, static_cast<int>(i))}));
    EXPECT_EQ(p.spec(again[i]).placement.spread, std::vector{shard(0, 1)});
    EXPECT_EQ(p.spec(in_place[i]).placement.spread, std::vector{shard(0, 1)});
  }
}

TEST(CollectiveGroups, AFaultIsToldOfTheMembersRank) {
  Program p(two_by_two());
  const std::vector<ValueId> x{on_rank_of_four(p, "x", 1), on_rank_of_four(p, "x", 3)};
  (void)all_reduce(p, {2}, f32_math, "y", x, false, RankGroup({1, 3}));
  TextbookRun run(p);
  run.set(x[0], {1, 2, 3, 4});
  run.set(x[1], {10, 20, 30, 50});
  const std::vector<TensorView> views{run.view(x[0]), run.view(x[1])};
  const std::vector<TensorSpec> outputs = specs_of(p, p.op(0).outputs);
  EXPECT_EQ(definition(all_reduce_kind).explain({p.op(0), views, outputs}, 0, std::array{Mismatch{2, 3.0}}),
            "rank 3's contribution is missing, in chunk 1 of 2 (element 2)");
}

TEST(CollectiveGroups, AProgramThatHoldsSomeMembersHasTheirTensorsAndNamesAll) {
  Program p(two_by_two(), {2});
  const ValueId x = on_rank_of_four(p, "x", 2);
  const RankGroup dp = p.mesh().group(2, "dp");
  const std::vector<ValueId> y = all_reduce(p, {2}, f32_math, "y", std::array{x}, false, dp);
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(p.op(0).group, RankGroup({0, 2}));
  EXPECT_EQ(p.op(0).held, RankGroup({2}));
  EXPECT_EQ(rank_of(p, p.op(0)), std::nullopt);
  // 2 (n - 1) / n of 16 bytes, also if another process holds a member.
  EXPECT_EQ(cost_of(p, p.op(0)).bytes, 16.0);
  EXPECT_EQ(definition(all_reduce_kind).identical_outputs(p.op(0)), (std::vector<std::vector<int>>{{0}}));

  const RankGroup tp = p.mesh().group(2, "tp");  // rank 3, which is not held, broadcasts; rank 2 has the result
  TensorSpec root = p.spec(x);
  root.placement.rank = 3;
  const std::vector<ValueId> z = broadcast(p, {2, 1}, "z", std::nullopt, root, tp);
  EXPECT_EQ(p.spec(z.at(0)).name, "z@2");
  EXPECT_TRUE(p.op(1).inputs.empty());

  TextbookRun run(p);
  run.set(x, {1, 2, 3, 4});
  EXPECT_EQ(program_error([&] { (void)run.judge(0, 0); }),
            "all_reduce 'y' is between ranks 0, 2, of which this process holds 2 only");
}

TEST(CollectiveGroups, ThatDoNotFitAreRefused) {
  Program p(two_by_two(), {1, 2});
  EXPECT_EQ(program_error([&] { (void)on_rank_of_four(p, "x", 0); }),
            "tensor 'x@0' lies on rank 0; the program holds 1, 2");
  const ValueId x = on_rank_of_four(p, "x", 1);
  EXPECT_EQ(program_error([&] {
              (void)all_reduce(p, {3}, f32_math, "y", std::array{x}, false, RankGroup({0, 1}));
            }),
            "all_reduce: a group of 2 ranks; expected 3");
  EXPECT_EQ(program_error([&] {
              (void)all_reduce(p, {2}, f32_math, "y", std::array{x}, false, RankGroup({0, 3}));
            }),
            "all_reduce: the program holds none of the ranks 0, 3");
  EXPECT_EQ(program_error([&] {
              (void)all_reduce(p, {2}, f32_math, "y", std::array{x}, false, RankGroup({0, 2}));
            }),
            "all_reduce: tensor 'x@1' lies on rank 1; expected rank 2");
  EXPECT_THROW(Program(two_by_two(), {4}), ProgramError);
}

}  // namespace collective_test
}  // namespace gpubench::testing
