// Attention in tiles, forward and backward, on the CUDA backend's kernels, against the textbook.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/reference/attention_programs.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace cuda_attention_test {

using testing::AttentionProgram;
using testing::ProgramRun;
using Variant = testing::AttentionVariant;

void expect_right(const Variant& x, DType type) {
  for (const AttentionProgram& made : {testing::forward_program(x, type), testing::backward_program(x, type)}) {
    EXPECT_EQ(testing::run_in_every_order(made.program, [&](ProgramRun& run) { testing::fill(run, made, x); }), "")
        << x.name << ", " << made.program.op(0).kind.name << " in " << name(type);
  }
}

// A tile has 64 queries and 64 keys: lengths that fill none, one, or one and a bit; masks that begin and end in the
// middle of one.
std::vector<Variant> variants() {
  const double scale = 0.25;
  return {
      {"one query, one key", {1, 1, 1, 1, 8, 1}, {.scale = scale}},
      {"whole tiles", {1, 64, 1, 1, 16, 64}, {.scale = scale}},
      {"grouped queries", {2, 67, 6, 2, 16, 67}, {.scale = scale}},
      {"full", {1, 70, 2, 2, 16, 70}, {.causal = false, .scale = scale}},
      {"window", {1, 140, 1, 1, 16, 140}, {.scale = scale, .window = 70}},
      {"window of one", {1, 70, 2, 1, 16, 70}, {.scale = scale, .window = 1}},
      {"fewer queries", {1, 33, 2, 1, 16, 100}, {.scale = scale}},
      {"one query", {2, 1, 4, 2, 16, 130}, {.scale = scale}},
      {"keys that no query sees", {1, 20, 1, 1, 16, 150}, {.scale = scale, .window = 30}},
      {"more queries than keys", {1, 140, 2, 1, 16, 33}, {.scale = scale}},
      {"more queries than keys, window", {1, 140, 1, 1, 16, 20}, {.scale = scale, .window = 7}},
      {"more queries than keys, sinks", {1, 140, 2, 2, 16, 33}, {.scale = scale}, true},
      {"full, fewer keys", {1, 100, 1, 1, 16, 33}, {.causal = false, .scale = scale}},
      {"softcap", {1, 70, 2, 1, 16, 70}, {.scale = scale, .softcap = 1.5}},
      {"softcap of Gemma", {1, 70, 1, 1, 16, 70}, {.scale = 4.0, .softcap = 50.0}},
      {"sinks", {2, 70, 4, 2, 16, 70}, {.scale = scale}, true},
      {"documents, of which one is empty", {1, 140, 1, 1, 16, 140}, {.scale = scale}, false, {0, 1, 65, 65, 90, 140}},
      {"full documents", {1, 140, 1, 1, 16, 140}, {.causal = false, .scale = scale}, false, {0, 50, 100, 140}},
      {"boundaries outside", {1, 70, 1, 1, 16, 70}, {.scale = scale}, false, {-5, 30, 4000}},
      {"narrower values", {1, 70, 2, 1, 72, 70, 40}, {.scale = scale}},
      {"wider values", {1, 33, 2, 2, 24, 100, 70}, {.scale = scale}},
      {"all of them", {2, 70, 4, 2, 24, 70}, {.scale = scale, .window = 40, .softcap = 3.0}, true, {0, 45, 70}},
  };
}

TEST(CudaAttentionMerge, OddAndPackedWidthsLieWithinTheirBounds) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 9, 3, 40}, Shape{1, 5, 2, 37}}) {
      const testing::MergeProgram made(type, shape);
      EXPECT_EQ(testing::run_in_every_order(made.program, [&](ProgramRun& run) { fill(run, made); }), "")
          << name(type) << ' ' << shape.to_string();
    }
  }
}

// A weight of 0 times a value that is NaN is NaN: of a tile that causality, a window or a document cuts, masked values
// must not be multiplied. Packs of four, and single elements.
TEST(CudaAttentionVariants, LetANanOrInfiniteValueReachOnlyTheQueriesThatSeeIt) {
  const std::int64_t s = 140, bad = 70;
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend({});
  for (const std::int64_t d : {16, 15}) {
    for (const Variant& x :
         std::vector<Variant>{{"causal", {1, s, 1, 1, d, s}, {.scale = 0.25}},
                              {"full", {1, s, 1, 1, d, s}, {.causal = false, .scale = 0.25}},
                              {"window", {1, s, 1, 1, d, s}, {.scale = 0.25, .window = 20}},
                              {"document", {1, s, 1, 1, d, s}, {.scale = 0.25}, false, {0, 68, 90}}}) {
      for (const double wrong : {std::nan(""), HUGE_VAL}) {
        const AttentionProgram made = testing::forward_program(x, DType::bf16);
        const ValueId o = made.program.op(0).output("o");
        ProgramRun right(*backend, made.program), run(*backend, made.program);
        fill(right, made, x);
        fill(run, made, x);
        std::vector<double> v = run.get(made.v);
        v[static_cast<std::size_t>(bad * d + 3)] = wrong;
        run.set(made.v, v);
        right.run();
        run.run();
        std::vector<double> want = right.get(o);
        for (std::int64_t i = 0; i < s; ++i) {
          const bool sees = !x.attention.causal ||
                            (i >= bad && (x.attention.window == 0 || i < bad + 20) && (x.documents.empty() || i < 90));
          if (sees) want[static_cast<std::size_t>(i * d + 3)] = wrong;
        }
        EXPECT_TRUE(std::ranges::equal(run.get(o), want,
                                       [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }))
            << x.name << ", heads of " << d << ", " << wrong;
      }
    }
  }
}

class CudaAttention : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, ::testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(CudaAttentionVariants, WithEveryMaskSoftcapAndSinksKeepTheirBounds) {
  for (const Variant& x : variants()) {
    expect_right(x, DType::f32);
    expect_right(x, DType::bf16);
  }
}

// A kernel each for heads of up to 64, 128 and 256 elements; single elements where packs of four don't fit.
TEST_P(CudaAttention, OfEveryHeadSizeKeepsItsBounds) {
  for (const std::int64_t d : {1, 33, 64, 72, 128, 130, 200, 256}) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(d));
    expect_right({"head size", {1, 20, 2, 1, d, 20}, {.scale = scale}}, GetParam());
  }
}

// Parts of packed tokens, at addresses that packs fit and don't; nothing between them may be touched.
TEST_P(CudaAttention, OfPartsOfPackedTokensKeepsItsBounds) {
  constexpr std::int64_t b = 2, s = 40, d = 16;
  for (const std::int64_t first : {16, 17}) {
    Program program;
    const std::int64_t width = 8 * d + first;
    const ValueId packed = program.add(tensor("packed", GetParam(), {b, s, width}, Role::activation));
    const ValueId gradient = program.reserve(tensor("gradient", GetParam(), {b, s, width}, Role::gradient));
    const auto part = [&](ValueId whole, const char* name, std::int64_t heads, std::int64_t head) {
      TensorSpec spec = tensor(name, GetParam(), {b, s, heads, d}, Role::activation);
      spec.layout.strides = {s * width, width, d, 1};
      return program.part(whole, spec, first + head * d);
    };
    const ValueId q = part(packed, "q", 4, 0), k = part(packed, "k", 2, 4), v = part(packed, "v", 2, 6);
    const ValueId d_o = program.add(tensor("do", GetParam(), {b, s, 4, d}, Role::gradient));
    const ValueId o = program.add(tensor("o", GetParam(), {b, s, 4, d}, Role::activation));
    const ValueId lse = program.add(tensor("lse", DType::f32, {b, 4, s}, Role::statistic));
    attention_backward(program, {.scale = 0.25}, Math{}, "backward", d_o, q, k, v, o, lse, {},
                       {part(gradient, "dq", 4, 0), part(gradient, "dk", 2, 4), part(gradient, "dv", 2, 6), {}});

    EXPECT_EQ(testing::run_in_every_order(program,
                                          [&](ProgramRun& run) {
                                            run.set_random(packed, 1);
                                            run.set_random(d_o, 2);
                                            run.set_random(o, 3);
                                            run.set(lse, std::vector<double>(b * 4 * s, 3.0));
                                          }),
              "")
        << "parts that begin at element " << first;
  }
}

std::string refusal(const Variant& x, const Math& math, DType type) {
  Program program;
  const AttentionExtents& e = x.extents;
  const auto heads = [&](const char* name, std::int64_t count) {
    return program.add(tensor(name, type, {e.b, e.s, count, e.d}, Role::activation));
  };
  const ValueId q = heads("q", e.hq), k = heads("k", e.hkv), v = heads("v", e.hkv);
  (void)attention_forward(program, x.attention, math, "forward", q, k, v);
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend({});
  ProgramRun run(*backend, program);
  try {
    run.run();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "";
}

// Its kernels know no tensor cores, so a result under tf32 would be of another arithmetic than its name says.
TEST(CudaAttentionRefuses, Tf32F64AndHeadsThatAreTooWide) {
  EXPECT_NE(refusal({"", {1, 4, 1, 1, 8, 4}, {}}, {.inputs = Math::Inputs::tf32}, DType::f32).find("not of tf32"),
            std::string::npos);
  EXPECT_NE(refusal({"", {1, 4, 1, 1, 8, 4}, {}}, {.accumulate = DType::f64}, DType::f64).find("sums in f64"),
            std::string::npos);
  EXPECT_NE(refusal({"", {1, 4, 1, 1, 264, 4}, {}}, {}, DType::f32).find("heads of 264 elements; expected 256"),
            std::string::npos);
}

}  // namespace cuda_attention_test
}  // namespace gpubench
