// Choosing among implementations of a product: each is right, and choices are kept, remembered or pinned.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "harness/core/error.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/usable_isa.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace autotune_test {

using testing::ProgramRun;
using testing::shared_backend;

Program product(std::int64_t size, const Gemm& attributes) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f32, {size, size}, Role::activation));
  const ValueId b = program.add(tensor("b", DType::f32, {size, size}, Role::parameter));
  (void)gemm(program, attributes, Math{}, "gemm", a, b);
  return program;
}

// 2^29 operations, the threshold for trying candidates.
constexpr std::int64_t h = 64, channels = 256;

Program pointwise_convolution(OpKind kind, DType type) {
  Program program;
  const auto add = [&](const char* name, Shape shape) {
    return program.add(tensor(name, type, std::move(shape), Role::activation));
  };
  const Shape image{1, h, h, channels}, filter{channels, 1, 1, channels};
  if (kind == conv2d_forward_kind) {
    (void)conv2d_forward(program, {}, Math{}, "conv", add("x", image), add("filter", filter));
  } else if (kind == conv2d_backward_data_kind) {
    (void)conv2d_backward_data(program, {}, Math{}, "conv", add("dy", image), add("filter", filter), h, h);
  } else {
    (void)conv2d_backward_filter(program, {}, Math{}, "conv", add("x", image), add("dy", image), 1, 1);
  }
  return program;
}

std::vector<TensorSpec> specs_of(const Program& program) {
  std::vector<TensorSpec> specs;
  for (const auto* ids : {&program.op(0).inputs, &program.op(0).outputs}) {
    for (const ValueId id : *ids) specs.push_back(program.spec(id));
  }
  return specs;
}

/// Names of all candidates, from a refusal.
std::set<std::string> ways_of(const Program& program) {
  const std::string text = testing::refusal(shared_backend(), program, "none"), before = "expected one of ",
                    between = ", ";
  std::set<std::string> names;
  if (text.empty()) return names;
  std::size_t begin = text.find(before);
  if (begin == std::string::npos) throw std::runtime_error(text);
  for (begin += before.size(); begin < text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    names.insert(text.substr(begin, end - begin));
    begin = end + between.size();
  }
  return names;
}

/// oneDNN 2 has one candidate for f32 products below AVX-512.
bool has_one_way_of_a_product() {
  (void)shared_backend();  // limits oneDNN to usable instruction sets
  return !cpu::onednn_isa().starts_with("avx512") && ways_of(product(704, {})).size() < 2;
}

void expect_all_ways_right(const Program& program) {
  const std::set<std::string> ways = ways_of(program);
  EXPECT_GE(ways.size(), 2U) << program.to_string();
  for (const std::string& way : ways) {
    ProgramRun run(shared_backend(), program);
    for (const ValueId input : program.op(0).inputs) run.set_random(input, 1 + static_cast<std::uint64_t>(input.index));
    run.pin(way);
    EXPECT_EQ(testing::run_and_judge(run, 991), "") << program.to_string() << " by " << way;
    EXPECT_EQ(run.implementation(0), way);
  }
}

TEST(CpuAutotune, EveryWayOfAProductIsRight) {
  if (has_one_way_of_a_product()) GTEST_SKIP() << "oneDNN has one way of an f32 product here";
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true})
      expect_all_ways_right(product(704, {.transpose_a = transpose_a, .transpose_b = transpose_b}));
  }
}

/// Extents that end inside the own products' blocks in every direction.
Program bf16_product(DType sums, const Gemm& attributes) {
  constexpr std::int64_t m = 352, n = 1056, k = 800;
  Program program;
  const Shape a = attributes.transpose_a ? Shape{k, m} : Shape{m, k},
              b = attributes.transpose_b ? Shape{n, k} : Shape{k, n};
  const ValueId av = program.add(tensor("a", DType::bf16, a, Role::activation));
  const ValueId bv = program.add(tensor("b", DType::bf16, b, Role::parameter));
  const ValueId c = program.reserve(tensor("c", sums, {m, n}, Role::activation));
  (void)gemm(program, attributes, Math{}, "gemm", av, bv, {}, c);
  return program;
}

TEST(CpuAutotune, OwnBlockProductsAreAWayOfABf16ProductWithAmxAndRight) {
  if (!cpu::amx::has_amx()) GTEST_SKIP() << "no AMX that works";
  for (const DType sums : {DType::bf16, DType::f32}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const Program program = bf16_product(sums, {.transpose_a = transpose_a, .transpose_b = transpose_b});
        EXPECT_TRUE(ways_of(program).contains("gpubench:amx_bf16"));
        expect_all_ways_right(program);
      }
    }
  }
}

TEST(CpuAutotune, OwnBlockProductsGiveTheSameBitsOnAnyNumberOfThreads) {
  if (!cpu::amx::has_amx()) GTEST_SKIP() << "no AMX that works";
  const Program program = bf16_product(DType::f32, {.transpose_a = true});
  std::vector<std::byte> on_one;
  for (const int threads : {1, 2, 3}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    ProgramRun run(*backend, program);
    run.set_random(program.op(0).inputs[0], 1);
    run.set_random(program.op(0).inputs[1], 2);
    run.pin("gpubench:amx_bf16");
    run.run();
    const std::vector<std::byte> bits = run.bytes_of(program.op(0).outputs[0]);
    if (on_one.empty()) on_one = bits;
    EXPECT_EQ(bits, on_one) << threads;
    EXPECT_TRUE(run.canaries_intact());
  }
}

// 12 s: each candidate in all three passes and both types, judged entirely.
TEST(CpuAutotune, EveryWayOfAConvolutionByASinglePixelIsRight) {
  (void)shared_backend();
  for (const DType type : {DType::f32, DType::bf16}) {
    if (type == DType::bf16 && !cpu::onednn_multiplies_bf16()) continue;  // without bf16, candidates are those of f32
    for (const OpKind& kind : {conv2d_forward_kind, conv2d_backward_data_kind, conv2d_backward_filter_kind})
      expect_all_ways_right(pointwise_convolution(kind, type));
  }
}

TEST(CpuAutotune, ASmallProductHasOneWayAndALargeOneIsTimedOnceForAllEqualCalls) {
  if (has_one_way_of_a_product()) GTEST_SKIP() << "oneDNN has one way of an f32 product here";
  const std::unique_ptr<Backend> backend = open_cpu_backend(1);
  const Program small = product(64, {}), large = product(704, {});

  EXPECT_EQ(backend->plan(small.op(0), specs_of(small))->choice(), Choice::only);
  const Plan first = backend->plan(large.op(0), specs_of(large));
  EXPECT_EQ(first->choice(), Choice::timed);
  EXPECT_EQ(backend->plan(large.op(0), specs_of(large)), first);
}

TEST(CpuAutotune, TellsThatItGoesOnBeforeEachRunOfAWay) {
  const Program program = product(704, {});
  const std::size_t ways = ways_of(program).size();
  if (ways < 2) GTEST_SKIP() << "oneDNN has one way of an f32 product here";
  std::size_t told = 0;
  PlanOptions options;
  options.alive = [&] { ++told; };

  (void)open_cpu_backend(1)->plan(program.op(0), specs_of(program), options);

  EXPECT_GE(told, 2 * ways);
}

TEST(CpuAutotune, NothingIsTimedWhereEveryRunIsToGiveTheSameBits) {
  const std::unique_ptr<Backend> backend = open_cpu_backend(1);
  const Program program = product(704, {});
  PlanOptions options;
  options.deterministic = true;

  EXPECT_EQ(backend->plan(program.op(0), specs_of(program), options)->choice(), Choice::only);
}

TEST(CpuAutotune, WhatAnEarlierRunFoundFastestIsTakenUntimed) {
  if (has_one_way_of_a_product()) GTEST_SKIP() << "oneDNN has one way of an f32 product here";
  const Program program = product(704, {});
  for (const std::string& way : ways_of(program)) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(1);
    PlanOptions options;
    options.remembered = way;

    const Plan plan = backend->plan(program.op(0), specs_of(program), options);

    EXPECT_EQ(plan->choice(), Choice::remembered);
    EXPECT_EQ(plan->implementation(), way);
  }
}

}  // namespace autotune_test
}  // namespace gpubench
