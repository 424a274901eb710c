// Every op with every attribute of the covering, with wrong results.
#include "harness/parity/likely_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "harness/parity/end_to_end.h"
#include "harness/parity/judge.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace likely_cause_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// Judges each op of a program on outputs that `change` has changed, and calls look(op, reason).
void judge_changed(const Program& program, const std::function<void(HostTensor&)>& change,
                   const std::function<void(const OpCall&, const std::string&)>& look) {
  TextbookMachine machine(program);
  machine.fill_sources("test/case", 42, program);
  JudgePolicy policy{CheckMode::full};
  policy.cause_flop = usual_cause_flop;
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    const OpCall& call = program.op(op);
    std::vector<HostTensor> in, out;
    for (const ValueId id : call.inputs) in.emplace_back(machine.view(id));
    machine.run_op(op);
    for (const ValueId id : call.outputs) change(out.emplace_back(machine.view(id)));
    const std::vector<TensorView> read = views_of(in), written = views_of(out);
    look(call, judge(program, op, {read, written}, policy, "check").reason);
  }
}

TEST(LikelyCauseOfEveryOp, NoiseHasNone) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int judged = 0;
  for (const Variants& one : all_variants()) {
    for (const std::string& name : one.recipes) {
      judge_changed(
          program_of(one, 7, recipe(name)).program,
          [&](HostTensor& tensor) {
            for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, normal(random));
          },
          [&](const OpCall& call, const std::string& reason) {
            EXPECT_THAT(reason, Not(HasSubstr("looks like"))) << one.name << " " << call.label;
            ++judged;
          });
    }
  }
  EXPECT_GT(judged, 1000);
}

}  // namespace likely_cause_test
}  // namespace gpubench::variants
