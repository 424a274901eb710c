#include "reference/ops/transform/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "harness/core/error.h"
#include "reference/ops/gemm.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {
namespace pipeline_test {

/// A stage's units, "F0 F1 B0 ...": forwards and backwards by micro-batch, "F0.2" of part 2.
std::string of_stage(const PipelineParallel& options, int micro_batches, int stage) {
  std::string text;
  for (const PipelineUnit& unit : pipeline_order(options, micro_batches)) {
    if (unit.part % options.stages != stage) continue;
    text += (text.empty() ? "" : " ") + std::string(unit.backward ? "B" : "F") + std::to_string(unit.micro);
    if (options.parts > 1) text += "." + std::to_string(unit.part);
  }
  return text;
}

/// The makespan if a forward takes 1 and a backward 2.
int length(const PipelineParallel& options, int micro_batches) {
  std::map<PipelineUnit, int> ends;
  std::map<int, int> free;
  int latest = 0;
  const int last = options.stages * options.parts - 1;
  for (const PipelineUnit& unit : pipeline_order(options, micro_batches)) {
    const bool begins = unit.backward ? unit.part == last : unit.part == 0;
    PipelineUnit before{unit.micro, unit.part + (unit.backward ? 1 : -1), unit.backward};
    if (unit.backward && begins) before = {unit.micro, unit.part, false};
    int& stage = free[unit.part % options.stages];
    stage = std::max(stage, begins && !unit.backward ? 0 : ends.at(before)) + (unit.backward ? 2 : 1);
    ends[unit] = stage;
    latest = std::max(latest, stage);
  }
  EXPECT_EQ(ends.size(), static_cast<std::size_t>(2 * micro_batches * (last + 1)));
  return latest;
}

TEST(PipelineOrder, IsOneForwardOneBackwardOnceTheFirstIsBack) {
  EXPECT_EQ(of_stage({.stages = 3}, 5, 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(of_stage({.stages = 3}, 5, 1), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(of_stage({.stages = 3}, 5, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(PipelineOrder, PassesRoundsOfMicroBatchesPartByPart) {
  EXPECT_EQ(of_stage({.stages = 2, .parts = 2}, 4, 0).substr(0, 19), "F0.0 F1.0 F0.2 F1.2");
}

// Narayanan et al., 2.2: a bubble of (stages - 1) micro-batches, divided by the parts per stage.
TEST(PipelineOrder, LeavesTheBubbleThatTheScheduleIsKnownFor) {
  for (const int stages : {2, 3, 4}) {
    for (const int micro : {stages, 2 * stages, 4 * stages}) {
      EXPECT_EQ(length({.stages = stages}, micro), 3 * (micro + stages - 1)) << stages << " " << micro;
      for (const int parts : {2, 3})
        EXPECT_EQ(length({.stages = stages, .parts = parts}, micro), 3 * (parts * micro + stages - 1))
            << stages << " " << parts << " " << micro;
    }
  }
}

TEST(PipelineOrder, EndsForAnyNumberOfMicroBatches) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int parts = 1; parts <= 3; ++parts) {
      for (int micro = 1; micro <= 7; ++micro) (void)length({.stages = stages, .parts = parts}, micro);
    }
  }
}

Program two_products() {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 2});
  const ValueId w0 = source(p, "block0.w", DType::f32, {2, 2}, Role::parameter);
  const ValueId w1 = source(p, "block1.w", DType::f32, {2, 2}, Role::parameter);
  const ValueId y = gemm(p, {}, f32_math, "block0.y", x, w0).c;
  gemm(p, {}, f32_math, "block1.z", y, w1);
  return p;
}

TEST(PipelineParallel, SendsWhatTheNextStageReadsAndNothingElse) {
  const Program staged = pipeline_parallel(two_products(), {.stages = 2}, {}).program;
  std::vector<std::string> labels;
  for (const OpCall& op : staged.ops()) labels.push_back(std::string(op.kind.name) + " " + op.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"gemm block0.y@0", "broadcast block0.y.sent", "gemm block1.z@1"}));
  EXPECT_EQ(staged.mesh(), Mesh({{"pp", 2}}));
  for (const Value& value : staged.values()) {
    if (!value.source) continue;
    EXPECT_EQ(value.spec.placement.rank, value.spec.name == "block1.w@1" ? 1 : 0) << value.spec.name;
  }
}

TEST(PipelineParallel, RefusesMorePartsThanThereAreBlocks) {
  const auto refusal = [](const PipelineParallel& options) -> std::string {
    return thrown_text<ProgramError>([&] { (void)pipeline_parallel(two_products(), options, {}); }, "none");
  };
  EXPECT_EQ(refusal({.stages = 3}), "pipeline: the step has 2 blocks; expected at least one for each of 3 parts");
  EXPECT_EQ(refusal({.stages = 2, .parts = 2}),
            "pipeline: the step has 2 blocks; expected at least one for each of 4 parts");
  EXPECT_EQ(refusal({.stages = 2}), "none");
}

}  // namespace pipeline_test
}  // namespace gpubench::testing
