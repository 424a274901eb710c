// The tuner: its scratch data, and its check of candidates' results. Kernels, streams and cuBLASLt are emulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "harness/core/error.h"
#include "harness/parity/judge.h"
#include "reference/cuda/autotune.h"
#include "reference/cuda/cublaslt.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/block_scaled_programs.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_cublaslt.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace gpubench::cuda {
namespace tuner_test {

using ::testing::AllOf;
using testing::CublasLtTrouble;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using testing::spins;
using ::testing::StartsWith;
using testing::WithTrouble;

struct Device {
  Device() {
    traits.compute_capability = 90;
    traits.multiprocessors = 3;
  }
  [[nodiscard]] CudaContext context(const ResultJudge* judge, std::function<void()> alive = {}) const {
    return {traits,
            cublaslt,
            reinterpret_cast<const Cudnn&>(no_library),
            stream.get(),
            {.judge = judge, .alive = std::move(alive)}};
  }
  DeviceTraits traits;
  CublasLt cublaslt;
  Stream stream = make_stream();
  alignas(64) std::byte no_library[64] = {};
};

std::vector<TensorSpec> tensors_of(const Program& program) {
  std::vector<ValueId> ids = program.op(0).inputs;
  ids.insert(ids.end(), program.op(0).outputs.begin(), program.op(0).outputs.end());
  return specs_of(program, ids);
}

using Planner = Plan (*)(const OpCall&, std::span<const TensorSpec>, const CudaContext&);

Plan planned(Planner plan, const Program& program) {
  const Device device;
  const CandidateJudge judge(program, 0);
  return plan(program.op(0), tensors_of(program), device.context(&judge));
}

/// A layer with GELU, or its gradient: [32, 32], sums over 16.
Program product(DType type, Gemm::Epilogue epilogue, const Math& math) {
  Program program;
  const bool gradient = epilogue == Gemm::Epilogue::gelu_gradient;
  const ValueId a = program.add(tensor("a", type, Shape{32, 16}, Role::activation));
  const ValueId b = program.add(tensor("b", type, Shape{16, 32}, Role::parameter));
  GemmOperands operands;
  if (gradient) operands.pre = program.add(tensor("pre", type, Shape{32, 32}, Role::activation));
  if (!gradient) operands.bias = program.add(tensor("bias", type, Shape{32}, Role::parameter));
  (void)gemm(program, {.bias = !gradient, .epilogue = epilogue}, math, "op", a, b, operands);
  return program;
}

TEST(CudaTuner, AnApproximateTanhOfTheLibraryIsNeverChosenAndTheRecordNamesIt) {
  const WithTrouble trouble({.approximate_tanh = true});
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const Gemm::Epilogue epilogue : {Gemm::Epilogue::gelu, Gemm::Epilogue::gelu_gradient}) {
      const Plan plan = planned(implementation_of(gemm_kind).plan, product(type, epilogue, Math{}));
      EXPECT_THAT(plan->implementation(), ::testing::EndsWith("+gpubench:sm90:gelu"));
      EXPECT_EQ(plan->choice(), Choice::timed);
      EXPECT_THAT(plan->rejected(),
                  AllOf(SizeIs(2), Each(StartsWith("cublaslt:algo=")), Each(Not(HasSubstr("gpubench"))),
                        Each(HasSubstr("outside their bound, by up to "))));
    }
  }
}

TEST(CudaTuner, TheSameHoldsForTheGradientWithABiasGradientBesideIt) {
  const WithTrouble trouble({.approximate_tanh = true});
  Program program;
  const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{32, 16}, Role::gradient));
  const ValueId w = program.add(tensor("w", DType::bf16, Shape{16, 32}, Role::parameter));
  const ValueId pre = program.add(tensor("pre", DType::bf16, Shape{32, 32}, Role::activation));
  (void)gemm_gelu_bias_gradient(program, {.epilogue = Gemm::Epilogue::gelu_gradient}, Math{}, "op", dy, w, pre);

  const Plan plan = planned(implementation_of(gemm_gelu_bias_gradient_kind).plan, program);
  EXPECT_THAT(plan->implementation(), ::testing::EndsWith(":slope_and_sum"));
  EXPECT_THAT(plan->rejected(), Not(IsEmpty()));
}

TEST(CudaTuner, WhatTheRecipeDeclaresIsNotRejected) {
  const WithTrouble trouble({.approximate_tanh = true});
  for (const Gemm::Epilogue epilogue : {Gemm::Epilogue::gelu, Gemm::Epilogue::gelu_gradient})
    EXPECT_THAT(planned(implementation_of(gemm_kind).plan, product(DType::bf16, epilogue, {.approximate_tanh = true}))
                    ->rejected(),
                IsEmpty());
}

TEST(CudaTuner, ALibraryWhoseTanhIsExactIsNotRejected) {
  for (const Gemm::Epilogue epilogue : {Gemm::Epilogue::gelu, Gemm::Epilogue::gelu_gradient})
    EXPECT_THAT(planned(implementation_of(gemm_kind).plan, product(DType::bf16, epilogue, Math{}))->rejected(),
                IsEmpty());
}

struct Onlooker final : ResultJudge {
  [[nodiscard]] std::string objection(std::span<const TensorView> /*inputs*/,
                                      std::span<const TensorView> outputs) const override {
    std::vector<double> c(static_cast<std::size_t>(outputs[0].shape().elements()));
    outputs[0].read(0, c);
    for (const double value : c) sum += std::fabs(value) / static_cast<double>(c.size());
    return {};
  }
  mutable double sum = 0.0;
};

// Scale codes are about one: products of random bytes would be zeros, infinities or NaN.
TEST(CudaTuner, BlockScaledOperandsAreOrdinaryNumbers) {
  for (const testing::BlockScaledTypes& types : {testing::mxfp8, testing::nvfp4}) {
    const testing::BlockScaledProgram p(types, {.m = 16, .n = 16, .k = 64});
    Device device;
    device.traits.compute_capability = 100;
    const Onlooker judge;
    const Plan plan = implementation_of(gemm_kind).plan(p.program.op(0), tensors_of(p.program), device.context(&judge));
    EXPECT_EQ(plan->choice(), Choice::timed) << p.what();
    EXPECT_GT(judge.sum, 1.0) << p.what();
    EXPECT_LT(judge.sum, 1e5) << p.what();
  }
}

// Candidates and their memory, in order of runs; "-" for a spin.
struct Turn {
  std::string who;
  const std::byte* memory = nullptr;
};

struct Log {
  std::vector<Turn> runs;
  std::size_t spins_seen = spins().size();

  void add(const std::string& who, const std::byte* memory) {
    for (; spins_seen < spins().size(); ++spins_seen) runs.push_back({"-"});
    runs.push_back({who, memory});
  }
};

// y = a + b of 4096 numbers, by candidates of the test.
struct Sums {
  Sums() { (void)add(program, Math{}, "y", a, b); }

  /// `off`: error of every sum. `host_time`: duration of enqueueing.
  void offer(const std::string& name, float off, std::chrono::microseconds host_time = {}) {
    candidates.push_back(plan_of(name, 0, [=, this](std::span<const Tensor> bound, Workspace) {
      return [=, this, x = bound[0].data, y = bound[1].data, z = bound[2].data](cudaStream_t stream) {
        log.add(name, x);
        const auto begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begin < host_time) continue;
        emulation::on_stream(stream, [=] {
          for (int i = 0; i < 4096; ++i) at(z, i) = at(x, i) + at(y, i) + off;
        });
      };
    }));
  }
  [[nodiscard]] Plan fastest(bool judged, std::function<void()> alive = {}) const {
    const CandidateJudge judge(program, 0);
    return fastest_of(program.op(0), candidates, tensors_of(program), {},
                      device.context(judged ? &judge : nullptr, std::move(alive)));
  }
  static float& at(std::byte* data, int i) { return reinterpret_cast<float*>(data)[i]; }

  Device device;
  Program program;
  ValueId a = program.add(tensor("a", DType::f32, {4096}, Role::input));
  ValueId b = program.add(tensor("b", DType::f32, {4096}, Role::input));
  std::vector<Plan> candidates;
  Log log;
};

TEST(CudaTuner, WhereEveryCandidateIsWrongOneIsTakenForTheCheckToFailAndAllAreNamed) {
  Sums sums;
  sums.offer("first", 0.5F);
  sums.offer("second", -1.0F);

  const Plan plan = sums.fastest(true);
  EXPECT_THAT(plan->implementation(), ::testing::AnyOf("first", "second"));
  EXPECT_THAT(plan->rejected(), ::testing::UnorderedElementsAre(StartsWith("first: "), StartsWith("second: ")));
}

TEST(CudaTuner, OnlyWrongCandidatesAreLeftOut) {
  Sums sums;
  sums.offer("wrong", 0.5F);
  sums.offer("right", 0.0F);

  const Plan plan = sums.fastest(true);
  EXPECT_EQ(plan->implementation(), "right");
  EXPECT_THAT(plan->rejected(), ElementsAre(StartsWith("wrong: 4096 of 4096 judged elements of 'y' outside")));
}

TEST(CudaTuner, TellsThatItGoesOnBeforeItTriesAndBeforeItJudgesACandidate) {
  Sums sums;
  sums.offer("one", 0.0F);
  sums.offer("other", 0.0F);
  int told = 0;

  (void)sums.fastest(true, [&] { ++told; });

  EXPECT_EQ(told, 4);
}

TEST(CudaTuner, BetweenTwoUsesOfTheSameMemoryThreeCachesPassBy) {
  Sums sums;
  sums.device.traits.l2_bytes = 160 * 1024;
  sums.offer("a", 0.0F);
  sums.offer("b", 0.0F);
  (void)sums.fastest(false);

  constexpr std::int64_t set_bytes = std::int64_t{3} * 4096 * 4;
  std::map<const std::byte*, std::size_t> last;
  std::size_t uses = 0;
  std::string who;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  const auto spin = [](const Turn& run) { return run.who == "-"; };
  const auto first = std::find_if(sums.log.runs.begin(), sums.log.runs.end(), spin);  // start of the timed samples
  for (auto run = first; run != sums.log.runs.end(); ++run) {
    if (spin(*run)) continue;
    if (const auto before = last.find(run->memory); before != last.end())
      shortest = std::min(shortest, static_cast<std::int64_t>(uses - before->second - 1) * set_bytes);
    last[run->memory] = uses++;
  }
  EXPECT_GE(shortest, 3 * sums.device.traits.l2_bytes);
  EXPECT_LT(shortest, 4 * sums.device.traits.l2_bytes);
}

TEST(CudaTuner, EverySampleComesRightBehindUntimedRunsOfItsCandidateAndCandidatesTakeTurns) {
  Sums sums;
  sums.offer("a", 0.0F);
  sums.offer("b", 0.0F);
  (void)sums.fastest(false);

  std::string order;
  for (const Turn& run : sums.log.runs) order += run.who;
  order = order.substr(order.find('-'));
  std::string expected;  // one set: one untimed run and one timed
  for (int turn = 0; turn < 3; ++turn) expected += "-aa-bb";
  EXPECT_EQ(order.substr(0, expected.size()), expected);
  const std::string rest = order.substr(expected.size());
  EXPECT_EQ(rest.size(), std::size_t{15} * 6);  // ordered by the median of the first samples
  for (std::size_t i = 0; i < rest.size(); i += 6) EXPECT_EQ(rest.substr(i, 6), rest.substr(0, 6));
}

TEST(CudaTuner, TheSpinLastsLongerThanTheHostNeedsToQueueASample) {
  constexpr std::chrono::microseconds slow(300);
  Sums sums;
  const std::size_t before = spins().size();
  sums.offer("many kernels", 0.0F, slow);
  sums.offer("one kernel", 0.0F);
  (void)sums.fastest(false);

  ASSERT_GE(spins().size(), before + 6);
  const std::uint64_t two_runs = std::uint64_t{2} * 300000;  // one untimed, one timed
  EXPECT_GE(spins()[before], two_runs);
  EXPECT_GE(spins()[before + 2], two_runs);
}

}  // namespace tuner_test
}  // namespace gpubench::cuda
